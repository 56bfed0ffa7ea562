#include "client/torch/buffer_watch.h"

#include <unordered_map>
#include <utility>

#include "client/torch/torch_status.h"

namespace stowage {

BufferWatch::BufferWatch(const ChainModel& model)
    : buffers_(model.buffers()), listed_(static_cast<size_t>(model.length()) + 2) {
  std::unordered_map<const c10::TensorImpl*, size_t> index;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    known_.push_back(Capture(i));
    index[buffers_[i].unsafeGetTensorImpl()] = i;
  }
  for (int l = 1; l <= model.length(); ++l) {
    for (const at::Tensor& buffer : model.stage(l).buffers) {
      listed_[static_cast<size_t>(l)].push_back(index.at(buffer.unsafeGetTensorImpl()));
    }
  }
}

BufferState BufferWatch::Capture(size_t buffer) const {
  return BufferState::Capture({buffers_[buffer]});
}

void BufferWatch::CheckUntouched(int l) const {
  for (const size_t buffer : listed_[static_cast<size_t>(l)]) {
    if (Capture(buffer) == known_[buffer]) continue;
    throw StageRuleError("its buffers are written by a stage that does not list them");
  }
}

bool BufferWatch::TakeChanges(int l) {
  bool changed = false;
  for (const size_t buffer : listed_[static_cast<size_t>(l)]) {
    BufferState now = Capture(buffer);
    if (now == known_[buffer]) continue;
    known_[buffer] = std::move(now);
    changed = true;
  }
  return changed;
}

}  // namespace stowage
