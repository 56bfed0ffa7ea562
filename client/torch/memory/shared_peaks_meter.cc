#include "client/torch/memory/shared_peaks_meter.h"

#include <algorithm>

namespace stowage {

SharedPeaksMeter::Peaks SharedPeaksMeter::Higher(const Peaks& a,
                                                 const AllocatorFigures::Figures& b) {
  return {std::max(a.requested, b.requested.peak), std::max(a.blocks, b.blocks.peak),
          std::max(a.reserved, b.reserved.peak)};
}

SharedPeaksMeter::Peaks SharedPeaksMeter::Highest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Higher(earlier_, allocator_->Read());
}

void SharedPeaksMeter::ResetPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  earlier_ = {};
  allocator_->ResetPeaks();
}

Bytes SharedPeaksMeter::TakeRecentPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const AllocatorFigures::Figures figures = allocator_->Read();
  earlier_ = Higher(earlier_, figures);
  allocator_->ResetPeaks();
  return figures.requested.peak;
}

}  // namespace stowage
