// The sum of the losses of a step, without waiting for the device.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <vector>

#include "client/torch/offload/compute_copies.h"
#include "client/torch/offload/device_use.h"

namespace stowage {

// Functions throw what LibTorch throws. Not thread-safe, nor are copies of one.
class LossValue {
 public:
  // Where the device may not have computed it yet, queues a copy to the host, and returns that; else it is undefined.
  at::Tensor Add(const at::Tensor& loss) {
    if (loss.is_cpu()) {
      sum_ += loss.item<double>();
      return at::Tensor();
    }
    at::Tensor on_host = HostBlockFor(loss.device(), loss.sizes(), loss.scalar_type());
    if (const ComputeCopies copy = ComputeCopiesOf(loss)) {
      copy({{on_host.data_ptr(), loss.data_ptr(), loss.nbytes()}}, on_host, loss.device());
    } else {
      on_host.copy_(loss.detach(), /*non_blocking=*/true);
    }
    on_host_.push_back(on_host);
    device_ = loss.device();
    if (!copied_) copied_ = std::make_shared<c10::Event>(device_.type());
    copied_->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    return on_host;
  }

  // Whether it is known; waits for nothing.
  bool Passed() const { return !copied_ || copied_->query(); }

  // Waits for the device where it is not known.
  double Get() const {
    if (!Passed()) WaitFor(device_);
    double sum = sum_;
    for (const at::Tensor& loss : on_host_) sum += loss.item<double>();
    return sum;
  }

 private:
  double sum_ = 0;
  std::vector<at::Tensor> on_host_;
  c10::Device device_ = c10::kCPU;
  std::shared_ptr<c10::Event> copied_;  // all of them
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_LOSS_VALUE_H_
