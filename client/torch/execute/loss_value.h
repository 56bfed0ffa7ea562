// The sum of the losses of a step, without waiting for the device in the middle of it.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace stowage {

// Functions throw what LibTorch throws. Not thread-safe.
class LossValue {
 public:
  // Holds it, without its graph, where the device may not have computed it yet.
  void Add(const at::Tensor& loss) {
    if (loss.is_cpu()) {
      sum_ += loss.item<double>();
    } else {
      on_device_.push_back(loss.detach());
    }
  }

  // Waits for the device.
  double Get() const {
    double sum = sum_;
    for (const at::Tensor& loss : on_device_) sum += loss.item<double>();
    return sum;
  }

 private:
  double sum_ = 0;
  std::vector<at::Tensor> on_device_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_
