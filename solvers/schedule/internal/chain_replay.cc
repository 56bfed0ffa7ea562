#include "solvers/schedule/internal/chain_replay.h"

namespace stowage {

size_t CountParts(const Chain& chain) {
  size_t count = 0;
  for (int l = 1; l <= chain.length() + 1; ++l)
    count += static_cast<size_t>(chain.stage(l).parts());
  return count;
}

SavedParts::SavedParts(const Chain& chain, size_t first) : first_(first), begin_(1, first) {
  for (int l = 1; l <= chain.length() + 1; ++l) {
    begin_.push_back(first_ + bytes_.size());
    const Stage& stage = chain.stage(l);
    if (stage.parts() == 0) continue;
    bytes_.insert(bytes_.end(), stage.saved_tensors.begin(), stage.saved_tensors.end());
    bytes_.push_back(stage.part(stage.parts()));
  }
  begin_.push_back(first_ + bytes_.size());
}

std::vector<size_t> SavedParts::Moved(int l) const {
  const size_t end = begin_[static_cast<size_t>(l) + 1];
  std::vector<size_t> numbers;
  for (auto it = moved_.lower_bound(begin_[static_cast<size_t>(l)]); it != moved_.end(); ++it) {
    if (*it >= end) break;
    numbers.push_back(*it);
  }
  return numbers;
}

}  // namespace stowage
