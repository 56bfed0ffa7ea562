// Lets what runs on a thread run for the shapes of its tensors alone.
//
// Within a scope every operation of LibTorch makes tensors that look like those of a device to autograd,
// to autocast and to the code that runs: type, sizes, strides, storage, sharing. Their memory is
// addresses (ShapeMemory), and nothing is computed. What autograd saves and frees is thus what it saves
// and frees in a step, and a profiling pass that looks at storages and at the scope's meter finds the
// structure that it finds in a step.
//
// Real tensors (parameters, buffers, a batch) may be arguments; nobody reads them. An operation that
// would write to one of `buffers` changes its first element instead, to be seen by who compares
// (BufferWatch); an operation that would draw random numbers draws one. Both are for the caller to put
// back (StateGuard). What depends on no such tensor, the masks and positions that are made of numbers,
// is computed for real.
//
// An operation of which nobody can tell what it makes without data throws c10::Error: those whose
// shapes depend on data, item(), other devices, and what neither LibTorch's meta device, which is right for all
// devices, nor shape_rules.h or cuda_shape_rules.h, for the kernels of CPUs and of CUDA, knows. So do, from then on, tensors that somebody keeps beyond the scope.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_SCOPE_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_SCOPE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/base/real_operations.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/shapes/shape_memory.h"

namespace stowage {

class ShapeTracer;

// For the thread that made it, and those that autograd has for devices while they run its backwards. Two do not nest.
class ShapeScope {
 public:
  // `real` measures real memory and outlives the scope. FAILED_PRECONDITION
  // within a scope, or where somebody else uses kShapesKey.
  static absl::StatusOr<std::unique_ptr<ShapeScope>> Begin(const MemoryMeter* real,
                                                           const std::vector<at::Tensor>& buffers,
                                                           const TracedDevice& on = {});
  ~ShapeScope();
  ShapeScope(const ShapeScope&) = delete;
  ShapeScope& operator=(const ShapeScope&) = delete;

  // Real memory and what the scope's tensors would take.
  MemoryMeter* meter() const;

  // To be asked when nothing of what was run is held any more: FAILED_PRECONDITION if somebody read
  // tensors by their pointers, or keeps one.
  absl::Status Check() const;

 private:
  explicit ShapeScope(std::unique_ptr<ShapeTracer> tracer);

  std::unique_ptr<ShapeTracer> tracer_;
  c10::DebugInfoGuard info_;
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_SCOPE_H_
