#include "solvers/chain/revolve_intervals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// What a split takes of one core: something for itself, and for every step of its rows.
constexpr double kNanosPerSplit = 20;
constexpr double kNanosPerStep = 25;
// What the solver aims at, what it takes where that is not enough for kMinSteps, and what it does
// when a caller asks for so many steps.
constexpr double kAimNanos = 3e9;
constexpr double kMostNanos = 8e9;
constexpr double kMostAskedNanos = 4e10;
constexpr int64_t kMinSteps = 4;
constexpr int64_t kMaxSteps = 4096;
// What a row takes without its steps.
constexpr int64_t kRowBytes = 64;

absl::Status TooLong(int stages) {
  return absl::ResourceExhaustedError(
      absl::StrCat("rows for all intervals of ", stages, " stages would take minutes"));
}

}  // namespace

RevolveIntervals::RevolveIntervals(const PersistentSpace& space)
    : repeats_(FindStageRepeats(space)), begin_(static_cast<size_t>(space.last()) + 1) {
  for (int s = 1; s <= space.last(); ++s) {
    const int64_t shared = repeats_[static_cast<size_t>(s)].length;
    const int64_t all = space.last() - s + 1;  // lengths of intervals from s
    begin_[static_cast<size_t>(s)] = count_ - (s + shared);
    count_ += all - shared;
    splits_ += (all * (all - 1) - shared * (shared - 1)) / 2;
  }
}

absl::StatusOr<RevolveIntervals> RevolveIntervals::Find(const PersistentSpace& space,
                                                        const SolveOptions& options) {
  absl::Status status = options.stop == nullptr ? absl::OkStatus() : options.stop->Check();
  if (!status.ok()) return status;
  // At the least there is an interval of every length.
  const double length = space.last();
  if (space.last() > kMaxIntervalStages + 1 ||
      length * length / 2 * (kNanosPerSplit + kMinSteps * kNanosPerStep) > kMostNanos) {
    return TooLong(space.last());
  }
  RevolveIntervals intervals(space);
  if (options.stop != nullptr) status = options.stop->Check();
  if (!status.ok()) return status;
  if (intervals.Nanos(kMinSteps) > kMostNanos) return TooLong(space.last());
  if (intervals.count_ > options.table_limit.value() / kRowBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("rows for ", space.last(),
                                                     " stages are over the limit of ",
                                                     options.table_limit.value(), " bytes"));
  }
  return intervals;
}

size_t RevolveIntervals::operator()(int s, int t) const {
  MoveToDistinct(repeats_, &s, &t);
  return static_cast<size_t>(begin_[static_cast<size_t>(s)] + t);
}

double RevolveIntervals::Nanos(int64_t steps) const {
  return static_cast<double>(splits_) *
         (kNanosPerSplit + kNanosPerStep * static_cast<double>(steps));
}

int64_t RevolveIntervals::AffordableSteps(int64_t step_bytes, const SolveOptions& options) const {
  const double splits = static_cast<double>(std::max<int64_t>(splits_, 1));
  const double by_time = (kAimNanos / splits - kNanosPerSplit) / kNanosPerStep;
  const int64_t bytes = options.table_limit.value() - count_ * kRowBytes;
  const double by_memory = static_cast<double>(std::max<int64_t>(bytes, 0)) / 2 /
                           static_cast<double>(step_bytes * std::max<int64_t>(count_, 1));
  const double steps =
      std::min(std::clamp<double>(by_time, kMinSteps, kMaxSteps), std::max(by_memory, 1.0));
  return static_cast<int64_t>(steps);
}

absl::Status RevolveIntervals::CheckSteps(int64_t steps) const {
  if (steps <= kMinSteps || Nanos(steps) <= kMostAskedNanos) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("rows of ", steps, " steps for ", last(), " stages would take minutes"));
}

}  // namespace stowage
