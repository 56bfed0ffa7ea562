// What a ShapeScope does with each operation.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_TRACER_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_TRACER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/torch/shapes/shape_memory.h"
#include "client/torch/shapes/shape_rules.h"

namespace stowage {

// Throws c10::Error.
class ShapeTracer {
 public:
  // As of ShapeScope::Begin.
  ShapeTracer(const MemoryMeter* real, const std::vector<at::Tensor>& buffers,
              const TracedDevice& on);

  // Thread-safe: backwards run on threads that autograd has for devices. The arguments at the end of the stack give way to the results.
  void Run(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  ShapeMemory* memory() const { return memory_.get(); }

 private:
  using Arguments = std::vector<c10::IValue>;
  using Results = std::vector<c10::IValue>;

  // Made of numbers alone, within the scope: has data.
  bool IsConstant(const at::Tensor& tensor) const;
  bool AreConstant(const Arguments& arguments) const;
  Results RunForReal(const c10::OperatorHandle& op, Arguments arguments);
  Results RunForShapes(const c10::OperatorHandle& op, const Arguments& arguments);
  void NoteWrites(const c10::OperatorHandle& op, const Arguments& arguments);
  void NoteWrite(const at::Tensor& tensor);
  void DrawOnDevice() const;
  void ChangeOnDevice(const at::Tensor& buffer) const;

  const TracedDevice on_;
  std::mutex mutex_;
  std::shared_ptr<ShapeMemory> memory_;
  std::unordered_set<const c10::StorageImpl*> buffers_;
  std::unordered_map<c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> constants_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_TRACER_H_
