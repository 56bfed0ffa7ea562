#include "client/torch/model/buffer_watch.h"

#include <unordered_map>
#include <utility>

#include "client/torch/base/torch_status.h"

namespace stowage {

BufferWatch::BufferWatch(const ModelTensors& model,
                         const std::vector<std::vector<at::Tensor>>& listed)
    : buffers_(model.buffers()) {
  std::unordered_map<const c10::TensorImpl*, size_t> index;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    known_.push_back(Capture(i));
    index[buffers_[i].unsafeGetTensorImpl()] = i;
  }
  for (const std::vector<at::Tensor>& part : listed) {
    listed_.emplace_back();
    for (const at::Tensor& buffer : part) {
      listed_.back().push_back(index.at(buffer.unsafeGetTensorImpl()));
    }
  }
}

BufferState BufferWatch::Capture(size_t buffer) const {
  return BufferState::Capture({buffers_[buffer]});
}

void BufferWatch::CheckUntouched(int part) const {
  for (const size_t buffer : listed_[static_cast<size_t>(part)]) {
    if (Capture(buffer) == known_[buffer]) continue;
    throw StageRuleError("its buffers are written by a part of the model that does not list them");
  }
}

bool BufferWatch::TakeChanges(int part) {
  bool changed = false;
  for (const size_t buffer : listed_[static_cast<size_t>(part)]) {
    BufferState now = Capture(buffer);
    if (now == known_[buffer]) continue;
    known_[buffer] = std::move(now);
    changed = true;
  }
  return changed;
}

}  // namespace stowage
