// A backward through autograd that leaves nothing behind when it throws.
//
// Backwards that were ready to run when another one threw stay in the engine's queue of the thread, with
// the gradients that they were given, until some later backward happens to come across them: memory
// that a step which ran out of it has to give back. And a thread that autograd has for a GPU may hold on to what it ran last
// when the caller goes on: memory that would be counted for what the caller does next.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_RUN_BACKWARD_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_RUN_BACKWARD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <vector>

namespace stowage {

// torch::autograd::backward of `roots` from `gradients`, which are as many or none; uses up the
// graphs. Throws what that throws.
void RunBackward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients);
// The same from places in a graph, all with a gradient.
void RunBackwardAt(const std::vector<torch::autograd::Edge>& roots,
                   const std::vector<at::Tensor>& gradients);
// The same, and nobody holds on to the gradients but their places.
void RunBackwardFrom(std::vector<torch::autograd::Edge> roots, std::vector<at::Tensor> gradients);

// After a backward that somebody else ran and that threw: lets go of what is left of it in the queues of the calling
// thread and of the one that autograd has for the device.
void EmptyQueues(c10::Device device);

// Says that the calling thread, while an object lives, is the one that autograd has for the device, in a node of a backward. Such a
// thread runs the backwards that it begins itself: RunBackward and the others need not wait for another thread to let go of them.
class OnBackwardsThread {
 public:
  explicit OnBackwardsThread(c10::Device device);
  ~OnBackwardsThread();
  OnBackwardsThread(const OnBackwardsThread&) = delete;
  OnBackwardsThread& operator=(const OnBackwardsThread&) = delete;

 private:
  const c10::Device device_;
  const c10::Device* const outer_;
};

// Runs `run` on the thread that autograd has for the device, where recomputes of a planned step run, and waits for it; of the
// CPU that is the calling thread. Throws what `run` throws.
void RunOnBackwardsThread(c10::Device device, const std::function<void()>& run);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_RUN_BACKWARD_H_
