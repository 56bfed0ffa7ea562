// A CUDA GPU: memory of LibTorch's caching allocator, copies on streams of their own. Only where LibTorch
// has CUDA (STOWAGE_TORCH_CUDA).
//
// Copies: StreamCopies. Thread-safety as ExecutionDevice.
//
// Memory is counted from what the caching allocator tells (AllocationCount): peaks of LibTorch's user are left alone, blocks
// are sizes rounded up to 512 bytes, and a rest of up to 1 MiB that a block is not split from is only in what is reserved.
// Where the allocator tells nothing its own figures are read, and its peaks are reset with the meter's.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/host_link.h"
#include "client/torch/offload/stream_copies.h"

namespace stowage {

class CudaDevice final : public ExecutionDevice {
 public:
  // GPU number `index`, initialised if nobody has used it. Host memory for copies is the link's, without one
  // `host_memory`; it is page-locked as copies need it (HostPool).
  // INVALID_ARGUMENT as ValidateTransferModel has it; FAILED_PRECONDITION: there is no such GPU; INTERNAL: what else
  // CUDA says.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(
      int index, const std::optional<TransferModel>& link = std::nullopt,
      Bytes host_memory = Bytes(0));

  c10::Device device() const override { return device_; }
  MemoryMeter* meter() override { return meter_.get(); }
  Bytes granularity() const override;
  std::optional<Bytes> FreeMemory() const override;
  void GiveBackUnused() override;
  bool IsCapturing() const override;
  std::unique_ptr<StageTimer> MakeTimer() override;
  Device Hardware() const override;
  // Of CUDA, its driver and cuDNN, and how many multiprocessors there are, of which a partition (MIG) has fewer.
  std::vector<DeviceSetting> Software() const override;
  std::optional<CudaKernels> cuda_kernels() const override;
  const TransferModel* link() const override { return link_.link(); }
  HostPool* host() override { return link_.host(); }
  absl::Status SetLink(const TransferModel& link) override;
  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override;

 private:
  CudaDevice(c10::Device device, const std::optional<TransferModel>& link, Bytes host_memory);
  bool one_channel() const { return link() != nullptr && !link()->full_duplex; }

  const c10::Device device_;
  HostLink link_;
  const std::unique_ptr<MemoryMeter> meter_;
  StreamCopies copies_;  // last: they may still write to the link's host memory
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_DEVICE_H_
