// Work on the thread that autograd has for a device, which lasts until others ask autograd for backwards.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_HELD_BACKWARD_H_
#define STOWAGE_TESTS_CLIENT_TORCH_HELD_BACKWARD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <thread>

namespace stowage {

// A backward of another thread's, begun by the constructor. It holds a tensor of the device while it runs.
class HeldBackward {
 public:
  static constexpr int64_t kElements = 1000;

  // Until that many others are asked for.
  explicit HeldBackward(c10::Device device, int64_t others = 1);
  // Lets it go on, in any case.
  ~HeldBackward();
  HeldBackward(const HeldBackward&) = delete;
  HeldBackward& operator=(const HeldBackward&) = delete;

  // Whether the work is done.
  bool has_ended() const { return ended_; }

 private:
  std::promise<void> begun_;
  std::atomic<bool> ended_{false};
  bool enough_ = false;
  std::thread thread_;
};

// Backwards that anybody in this process has asked for since its first HeldBackward, those not counted.
int64_t BackwardsAsked();

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_HELD_BACKWARD_H_
