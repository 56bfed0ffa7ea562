#include "client/torch/repeatable_forward.h"

namespace stowage {

at::Tensor RepeatableForward::Run(const std::vector<at::Tensor>& buffers,
                                  const std::function<at::Tensor()>& forward) {
  if (!before_) {
    before_ = Before{RandomState::Capture(), BufferState::Capture(buffers)};
    return forward();
  }
  const StateGuard guard(buffers);
  before_->random.Restore();
  before_->buffers.Restore();
  return forward();
}

}  // namespace stowage
