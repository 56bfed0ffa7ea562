#include "tests/solvers/reference_recurrence.h"

#include <algorithm>

namespace stowage::testing {
namespace {

constexpr int64_t kInfeasible = int64_t{1} << 61;

}  // namespace

ReferenceRecurrence::ReferenceRecurrence(const Chain& chain, int64_t unit, int64_t slots)
    : last_(chain.length() + 1), slots_(slots), ideal_(chain.ideal_time().value()) {
  const auto units = [unit](Bytes size) {
    return size.value() / unit + (size.value() % unit == 0 ? 0 : 1);
  };
  for (int l = 0; l <= last_; ++l) {
    const Stage stage = l == 0 ? Stage() : chain.stage(l);
    activation_.push_back(units(chain.activation(l)));
    gradient_.push_back(units(chain.gradient(l)));
    saved_.push_back(units(stage.saved));
    saving_.push_back(units(stage.forward_saving_overhead));
    plain_.push_back(units(stage.forward_overhead));
    backward_.push_back(units(stage.backward_overhead));
    stopped_.push_back(units(stage.stopped_saved()) +
                       std::max(units(stage.stopped_overhead()), backward_.back()));
    stopped_time_.push_back(stage.stopped_time().value());
    forward_time_.push_back(stage.forward_time.value());
    backward_time_.push_back(stage.backward_time.value());
    recomputable_.push_back(stage.recomputable());
  }
  const size_t last = static_cast<size_t>(last_);
  values_.resize(last * (last + 1) / 2 * static_cast<size_t>(slots + 1));
  for (int s = last_; s >= 1; --s) {
    for (int t = s; t <= last_; ++t) ComputeRow(s, t);
  }
}

int64_t* ReferenceRecurrence::Row(int s, int t) {
  const int64_t rows_before = static_cast<int64_t>(t) * (t - 1) / 2 + s - 1;
  return values_.data() + rows_before * (slots_ + 1);
}

int64_t ReferenceRecurrence::KeepAllNeed(int s, int t) const {
  const size_t i = static_cast<size_t>(s);
  if (s == t) {
    return gradient_[i] + std::min(saved_[i] + std::max(saving_[i], backward_[i]), stopped_[i]);
  }
  return std::max(gradient_[static_cast<size_t>(t)] + saved_[i] + saving_[i],
                  gradient_[i] + saved_[i] + backward_[i]);
}

void ReferenceRecurrence::ComputeRow(int s, int t) {
  const size_t si = static_cast<size_t>(s), ti = static_cast<size_t>(t);
  int64_t* row = Row(s, t);
  std::fill(row, row + slots_ + 1, kInfeasible);
  const int64_t own = (s < t ? forward_time_[si] : stopped_time_[si]) + backward_time_[si];
  if (s == t) {
    for (int64_t m = KeepAllNeed(s, t); m <= slots_; ++m) row[m] = own;
    return;
  }
  const int64_t* inner = Row(s + 1, t);
  for (int64_t m = KeepAllNeed(s, t); m <= slots_; ++m) row[m] = own + inner[m - saved_[si]];
  int64_t run = 0;
  int64_t need = activation_[si] + plain_[si];
  for (int split = s + 1; split <= t; ++split) {
    const size_t before = static_cast<size_t>(split) - 1;
    if (!recomputable_[before]) break;
    run += forward_time_[before];
    if (split > s + 1)
      need = std::max(need, activation_[before - 1] + activation_[before] + plain_[before]);
    const int64_t from = std::max(gradient_[ti] + need, activation_[before]);
    const int64_t kept = activation_[before];
    const int64_t* right = Row(split, t);
    const int64_t* left = Row(s, split - 1);
    for (int64_t m = from; m <= slots_; ++m) {
      const int64_t time = run + right[m - kept] + left[m];
      if (time < row[m]) row[m] = time;
    }
  }
}

std::optional<int64_t> ReferenceRecurrence::Overhead(int64_t memory) const {
  const int64_t inner = memory - activation_[0];
  if (inner < 0) return std::nullopt;
  const int64_t rows_before = static_cast<int64_t>(last_) * (last_ - 1) / 2;
  const int64_t time = values_[static_cast<size_t>(rows_before * (slots_ + 1) + inner)];
  if (time >= kInfeasible) return std::nullopt;
  return time - ideal_;
}

}  // namespace stowage::testing
