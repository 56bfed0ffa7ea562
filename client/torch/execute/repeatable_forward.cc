#include "client/torch/execute/repeatable_forward.h"

#include <stdexcept>

namespace stowage {
namespace {

thread_local int running_again = 0;

struct RunningAgain {
  RunningAgain() { ++running_again; }
  ~RunningAgain() { --running_again; }
};

}  // namespace

bool IsRecomputing() { return running_again > 0; }

Tensors RepeatableForward::Run(const std::vector<at::Tensor>& buffers, c10::Device device,
                               absl::FunctionRef<Tensors()> forward) {
  if (!has_run_) {
    before_ = std::make_unique<const Before>(
        Before{RandomState::Capture(device), BufferState::Capture(buffers)});
    has_run_ = true;
    return forward();
  }
  if (before_ == nullptr) throw std::logic_error("a forward that was to run once runs again");
  const RunningAgain again;
  const StateGuard guard(buffers, device);
  before_->random.Restore();
  before_->buffers.Restore();
  return forward();
}

Tensors RepeatableForward::RunOnce(absl::FunctionRef<Tensors()> forward) {
  if (has_run_) throw std::logic_error("a forward that was to run once runs again");
  has_run_ = true;
  return forward();
}

}  // namespace stowage
