// A device that says that its kernels are not the CPU's, whatever runs there: for what is told without running.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_OTHER_KERNELS_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_OTHER_KERNELS_H_

#include <optional>
#include <vector>

#include "client/torch/offload/execution_device.h"

namespace stowage {

class OtherKernels final : public ExecutionDevice {
 public:
  // CUDA's, or nobody's. `of` outlives the object.
  explicit OtherKernels(ExecutionDevice* of, std::optional<CudaKernels> cuda = std::nullopt)
      : of_(of), cuda_(cuda) {}

  c10::Device device() const override { return of_->device(); }
  MemoryMeter* meter() override { return of_->meter(); }
  Bytes granularity() const override { return of_->granularity(); }
  Device Hardware() const override { return of_->Hardware(); }
  std::vector<DeviceSetting> Software() const override { return of_->Software(); }
  bool has_cpu_kernels() const override { return false; }
  std::optional<CudaKernels> cuda_kernels() const override { return cuda_; }

 private:
  ExecutionDevice* const of_;
  const std::optional<CudaKernels> cuda_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_OTHER_KERNELS_H_
