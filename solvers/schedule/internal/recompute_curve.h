// What has to run again at some time step of a chain or graph, for every budget at once: for each of some time steps a
// convex function of memory, of a graph made of hulls of ops that depend on each other (../algorithms.md). Of schedules
// with nothing on the communication stream. Immutable.
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_

#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/model/problem.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/internal/recompute_hull.h"

namespace stowage {

// Of all bytes that may be on the host at once, those beyond `bytes` are there no sooner than `time` after the start of the
// step, or are back no later than `time` before its end.
struct CopyLimit {
  int64_t bytes, time;
};

// How long bytes take one way, at least.
class CopySide {
 public:
  // Limits of rising bytes and times, which must outlive it. O(limits).
  CopySide(const CopyCost& copy, const std::vector<CopyLimit>& limits);

  // Rounded down; what would reach kMaxTimeTotal is that.
  int64_t RoundedDown(int64_t bytes) const { return Time(bytes, 0); }
  // Copies take whole nanoseconds.
  int64_t RoundedUp(int64_t bytes) const { return Time(bytes, copy_.bytes_per_second - 1); }
  const CopyCost& copy() const { return copy_; }

 private:
  int64_t Time(int64_t bytes, int64_t more) const;

  const CopyCost copy_;
  const std::vector<CopyLimit>& limits_;
  std::vector<absl::int128>
      delays_;  // of a limit and those before it: the largest, times the bandwidth
};

// Of one time step.
class TimeStepCurve {
 public:
  // `all`: bytes where nothing runs again, less than kMaxTotal; `before`, `after`: the time of forwards and backwards
  // that end before it for sure, and that start with it or later. O(steps * log).
  TimeStepCurve(int64_t all, Nanos before, Nanos after, std::vector<HullStep> steps);

  // Of forwards, at least, where so many bytes are held, on the device or on the host.
  int64_t Repeated(int64_t bytes) const;
  // Of the whole schedule, with so many bytes on the device.
  int64_t Makespan(int64_t bytes, int64_t ideal_time, const CopySide& to_host,
                   const CopySide& to_device, Bytes host_memory) const;

 private:
  // Giving up the bytes takes the time: sums of steps, in order of time per byte.
  struct Corner {
    int64_t bytes, time;
  };

  // What costs no more than to copy it to the host.
  Corner CheaperThan(const CopyCost& copy) const;

  int64_t all_;
  int64_t before_, after_;
  std::vector<Corner> corners_;
};

class RecomputeCurve {
 public:
  // O(L log L), or O(V log V + E), for each time step that is looked at, of which there are some tens, fewer on very large
  // problems.
  explicit RecomputeCurve(const Problem& problem);

  // No schedule without transfers within the budget repeats forwards for less. Never rises with the budget.
  Nanos RepeatedWithin(Bytes budget) const;
  // No schedule within the budget takes less with the link, which must be valid. Never rises with the budget.
  Nanos MakespanWithin(Bytes budget, const TransferModel& link) const;

 private:
  Nanos ideal_time_;
  std::vector<TimeStepCurve> time_steps_;
  std::vector<CopyLimit> made_, due_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_RECOMPUTE_CURVE_H_
