// Memory for tensors of which only the shapes are looked at: addresses that count as so many bytes and
// cost nothing while nobody reads or writes them.
//
// The pages are the system's, all zero until written, so that code which reads a tensor by its pointer
// survives; whether any did can be asked afterwards. Linux: mmap, mincore(2). Where the system cannot
// tell, the answer is that somebody did.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_MEMORY_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_MEMORY_H_

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/cuda_kernels.h"
#include "solvers/model/units.h"

namespace stowage {

// The device that tensors seem to be on; all but the first as of ExecutionDevice.
struct TracedDevice {
  c10::Device device = c10::kCPU;
  bool has_cpu_kernels = true;
  Bytes granularity{1};
  std::optional<CudaKernels> cuda_kernels;
};

// Counts its own bytes on top of those of the meter of real memory, which outlives whoever asks.
// Allocate is for one thread, all else thread-safe.
class ShapeMemory final : public MemoryMeter, public std::enable_shared_from_this<ShapeMemory> {
 public:
  // Its addresses are the host's, whatever device they stand for.
  explicit ShapeMemory(const MemoryMeter* real, const TracedDevice& on = {})
      : real_(real), device_(on.device), granularity_(on.granularity) {}
  ~ShapeMemory() override;

  // Throws c10::Error if the system refuses. What is allocated keeps the object alive. O(1).
  c10::DataPtr Allocate(size_t bytes);

  Bytes current() const override;
  Bytes peak() const override;
  void ResetPeak() override;
  Bytes block_bytes() const override;
  Bytes peak_block_bytes() const override;

  // Allocated and not freed.
  int64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  // Whether anybody has read or written any of it since it was allocated. O(pages).
  bool touched() const;

 private:
  struct Block;
  struct Region {
    std::byte* start = nullptr;
    size_t size = 0;
    size_t used = 0;
  };

  static void Free(void* block);
  void* Place(size_t bytes);

  const MemoryMeter* real_;
  const c10::Device device_;
  const Bytes granularity_;
  std::vector<Region> regions_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> block_bytes_{0};  // rounded up, each block by itself
  std::atomic<int64_t> block_peak_{0};
  std::atomic<int64_t> blocks_{0};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_MEMORY_H_
