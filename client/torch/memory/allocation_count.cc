#include "client/torch/memory/allocation_count.h"

#include <algorithm>
#include <cstdint>

namespace stowage {
namespace {

using CountLock = std::lock_guard<std::mutex>;

}  // namespace

AllocationCount::Mark::Mark(AllocationCount* count) : count_(count) {
  const CountLock lock(count_->mutex_);
  peak_ = count_->sums_;
  count_->marks_.push_back(this);
}

AllocationCount::Mark::~Mark() {
  const CountLock lock(count_->mutex_);
  std::vector<Mark*>& marks = count_->marks_;
  marks.erase(std::remove(marks.begin(), marks.end(), this), marks.end());
}

AllocationCount::Sums AllocationCount::Mark::peak() const {
  const CountLock lock(count_->mutex_);
  return peak_;
}

void AllocationCount::Mark::Reset() {
  const CountLock lock(count_->mutex_);
  peak_ = count_->sums_;
}

void AllocationCount::Add(Bytes requested, Bytes blocks, Bytes reserved) {
  const CountLock lock(mutex_);
  sums_.requested += requested;
  sums_.blocks += blocks;
  sums_.reserved += reserved;
  for (Mark* const mark : marks_) {
    mark->peak_.requested = std::max(mark->peak_.requested, sums_.requested);
    mark->peak_.blocks = std::max(mark->peak_.blocks, sums_.blocks);
    mark->peak_.reserved = std::max(mark->peak_.reserved, sums_.reserved);
  }
}

bool AllocationCount::Start(const Sums& told, const Sums& all) {
  const CountLock lock(mutex_);
  if (!(sums_ == told)) return false;
  sums_ = all;
  for (Mark* const mark : marks_) mark->peak_ = all;
  return true;
}

AllocationCount::Sums AllocationCount::now() const {
  const CountLock lock(mutex_);
  return sums_;
}

Bytes AllocationCount::Block(Bytes bytes) const {
  const int64_t unit = granularity_.value();
  return Bytes((bytes.value() + unit - 1) / unit * unit);
}

}  // namespace stowage
