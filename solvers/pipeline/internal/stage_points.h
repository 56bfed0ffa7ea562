// The plans that a stage of a pipeline may have: its Pareto set of stash, peaks and recomputed time. Internal to
// solvers/pipeline.
#ifndef STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_POINTS_H_
#define STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/base/stop_token.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_steps.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// A plan in bytes and nanoseconds.
struct StagePoint {
  int64_t stash = 0;
  int64_t forward_peak = 0;
  int64_t backward_peak = 0;
  int64_t overhead = 0;  // time of what is computed again
  // How it came about. Of the item that ends it: where that starts, what its recompute may use (below 0: it is kept),
  // and the point before it.
  int32_t item = 0;
  int32_t before = 0;
  bool before_runs_again = false;
  int64_t item_memory = -1;
};

// A stage's device has room for a point where, for each of these numbers, so many stashes fit beside it.
struct StageRoom {
  int64_t budget = 0;
  int64_t beside_forward = 0;   // other stashes of the stage while its forward runs
  int64_t beside_backward = 0;  // while its backward runs
  int64_t at_any_time = 0;

  bool Has(const StagePoint& point) const {
    return beside_forward * point.stash + point.forward_peak <= budget &&
           beside_backward * point.stash + point.backward_peak <= budget &&
           at_any_time * point.stash <= budget;
  }
};

// What is looked for: the least time, or the least memory whatever the time.
enum class StageGoal { kTime, kMemory };

// A plan is a row of items: a layer that is kept, or a stretch of layers that keeps its input and runs again as the
// persistent recurrence has it (algorithms.md). Points of stages that are equal, layer by layer, are made once. Not
// thread-safe.
class StagePoints {
 public:
  // Points that fit none of `rooms` are left out. All points may take `most_bytes`. `space` and `steps` must outlive it.
  StagePoints(const PersistentSpace& space, const PersistentSteps& steps, StageGoal goal,
              std::vector<StageRoom> rooms, int64_t most_bytes, const StopToken* stop);

  // Of the layers first..last; with `with_loss`, where last is the last one, the loss behind them. Least overhead
  // first. The pointer lives as long as this. O(n^2 X R) once for n layers, X points and R steps.
  // RESOURCE_EXHAUSTED, CANCELLED, DEADLINE_EXCEEDED.
  absl::StatusOr<const std::vector<StagePoint>*> Of(int first, int last, bool with_loss);

  // The same where nothing else is in flight, of the layers from `first` to the loss: peaks alone are of account.
  std::vector<StagePoint> OfLastAlone(int first) const;

  struct Built {
    Schedule schedule;  // stages numbered from 1
    int forward_instructions = 0;
  };
  // Of a point of Of(first, last, with_loss), or of OfLastAlone(first).
  Built Build(int first, int last, bool with_loss, const StagePoint& point) const;
  Built BuildLastAlone(int first, const StagePoint& point) const;

  // Whether nothing was left out for being too much so far.
  bool exact() const { return exact_; }

 private:
  // Plans of the first layers of a stage, by what their last item is. The stash is with its output.
  struct Points {
    std::vector<StagePoint> keeping, running_again;
  };
  // From one layer on: entry n holds those of its first n layers.
  struct Row {
    std::vector<Points> points;
    std::map<int, std::vector<StagePoint>> whole;  // by last layer: of stages that end there
  };
  using Key = std::pair<int, bool>;  // first layer, with the loss

  Key KeyOf(int* first, int* last, bool with_loss) const;
  absl::Status Extend(int first, int last, int64_t seed, Row* row);
  absl::Status Spend(int64_t steps);
  // Leaves the Pareto set, thinned where it is too large.
  absl::Status Reduce(std::vector<StagePoint>* points);
  // RESOURCE_EXHAUSTED where there is no room for `points` beside all others.
  absl::Status CheckRoom(const Points& points) const;
  bool Fits(const StagePoint& point) const;

  const PersistentSpace& space_;
  const PersistentSteps& steps_;
  const StageGoal goal_;
  const std::vector<StageRoom> rooms_;
  const int64_t most_bytes_;
  StopPoll poll_;
  std::vector<int> class_of_;  // by layer, equal ones equal
  std::map<Key, Row> rows_;
  int64_t work_ = 0;
  int64_t bytes_ = 0;  // of the points of rows_
  bool exact_ = true;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_POINTS_H_
