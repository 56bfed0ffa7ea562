// A CUDA GPU: memory of LibTorch's caching allocator, copies on streams of their own. Only where LibTorch
// has CUDA (STOWAGE_TORCH_CUDA).
//
// Compute is the current stream of the calling thread. Copy streams wait for its events and it for theirs,
// the host for neither; both ends of a copy are allocated and freed in the order of compute, so
// that no stream has to be noted with the allocator. Thread-safety as ExecutionDevice.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_

#include <c10/core/Stream.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/offload/execution_device.h"

namespace stowage {

class CudaDevice final : public ExecutionDevice {
 public:
  // GPU number `index`. Allocates the link's host memory, page-locked, at once.
  // INVALID_ARGUMENT as ValidateTransferModel has it; FAILED_PRECONDITION: there is no such GPU;
  // RESOURCE_EXHAUSTED: no host memory; INTERNAL: what else CUDA says.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(int index, const TransferModel& link);
  ~CudaDevice() override;

  c10::Device device() const override { return device_; }
  MemoryMeter* meter() override { return meter_.get(); }
  Bytes granularity() const override { return Bytes(512); }
  std::unique_ptr<StageTimer> MakeTimer() override;
  Device Hardware() const override;
  const TransferModel* link() const override { return &link_; }
  HostPool* host() override { return &host_; }
  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override;

 private:
  CudaDevice(c10::Device device, const TransferModel& link);

  const c10::Device device_;
  const TransferModel link_;
  const std::unique_ptr<MemoryMeter> meter_;
  HostPool host_;
  // One and the same where the link is half duplex.
  const c10::Stream to_host_;
  const c10::Stream to_device_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_
