// The device that a step runs on: how much of its memory tensors hold, and copies between it and host
// memory that run beside compute.
//
// What compute does, it does in order: the calling thread, on a GPU its current stream. Both ends of
// a copy belong to compute, which allocates and frees them. A copy sees what compute did before it
// was started, compute sees the copy after it has waited for it; until then neither end may be
// freed, the source not be written to, the destination not be touched at all.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_EXECUTION_DEVICE_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_EXECUTION_DEVICE_H_

#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/cuda_kernels.h"
#include "client/torch/offload/host_pool.h"
#include "client/torch/offload/stage_timer.h"
#include "solvers/model/device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct CopyPiece {
  void* destination;
  const void* source;
  size_t bytes;
};

// A copy that was started. One that nobody waits for is given up by the destructor: its ends are
// compute's again, what is at the destination is undefined.
class DeviceCopy {
 public:
  virtual ~DeviceCopy() = default;

  // Compute goes on when the copy has ended. Once; throws what made the copy fail.
  virtual void Wait() = 0;
};

Device CpuHardware();

// Of a device's software, for keys: "cudnn", "90100".
struct DeviceSetting {
  std::string name;
  std::string value;
};

// Not thread-safe; outlives its copies.
class ExecutionDevice {
 public:
  virtual ~ExecutionDevice() = default;

  virtual c10::Device device() const = 0;
  virtual MemoryMeter* meter() = 0;
  // Memory comes in blocks of a multiple of this, while the meter counts what was asked for.
  virtual Bytes granularity() const { return Bytes(1); }

  // Of the device's memory, what this process could still have: what is free, and what its allocator holds and nobody uses.
  // Nothing: it is not known.
  virtual std::optional<Bytes> FreeMemory() const { return std::nullopt; }
  // Gives back to the device what its allocator holds and nobody uses. May wait for compute.
  virtual void GiveBackUnused() {}
  // Whether what compute is given now is recorded to be run again as it is, and does not run (CUDA graphs).
  virtual bool IsCapturing() const { return false; }

  // The clock of compute. This device outlives it.
  virtual std::unique_ptr<StageTimer> MakeTimer() { return MakeSteadyTimer(); }
  // Model, granularity and memory, as profiles state them; the rest is left open.
  virtual Device Hardware() const { return CpuHardware(); }
  // Versions and partitions that its kernels depend on, beside LibTorch's version and switches.
  virtual std::vector<DeviceSetting> Software() const { return {}; }

  // Whether operations make there, and autograd saves, what they make and save on the CPU.
  virtual bool has_cpu_kernels() const { return device().is_cpu(); }
  // Those that operations take from now on, where they are CUDA's. Nothing: they are others.
  virtual std::optional<CudaKernels> cuda_kernels() const { return std::nullopt; }

  // What copies cost, whether both directions share a channel, and how much host memory there is. Null:
  // plans copy nothing.
  virtual const TransferModel* link() const { return nullptr; }
  // There where there is a link, and where one can be measured (MeasureTransfers). Null: StartCopy must not be called.
  virtual HostPool* host() { return nullptr; }
  // Makes what was measured the link, for what is planned and run from now on. INVALID_ARGUMENT as ValidateTransferModel
  // has it, or for more host memory than the pool has; FAILED_PRECONDITION: the link of this device is fixed.
  virtual absl::Status SetLink(const TransferModel& link);
  // Puts one copy, of all the pieces, on the channel of its direction: Stream::kToHost from this
  // device to blocks of the host pool, kToDevice back. Throws what LibTorch throws.
  virtual std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                                const std::vector<CopyPiece>& pieces);
};

// `device`, or one without a link that the installed TrackingAllocator measures if it is null;
// FAILED_PRECONDITION if there is neither.
absl::StatusOr<ExecutionDevice*> DeviceOrInstalled(ExecutionDevice* device);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_EXECUTION_DEVICE_H_
