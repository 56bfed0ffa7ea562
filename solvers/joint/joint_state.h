// States of the joint recurrence, and which of them are kept. Internal to solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_JOINT_STATE_H_
#define STOWAGE_SOLVERS_JOINT_JOINT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/solver.h"

namespace stowage {

// What the stages before stage i leave to it and to those after it.
struct JointState {
  int64_t kept = 0;      // bytes of theirs that stay on the device, the input of i not counted
  int64_t host = 0;      // bytes of theirs that go to the host
  double backlog_f = 0;  // ns that the link needs for offloads not ended when forward i starts
  double backlog_b = 0;  // the same of prefetches due before backward i-1, in reversed time
  double extra = 0;      // ns beyond one forward and one backward per stage: recomputed, or waited
  double bound = 0;      // ns: the extra time of the whole chain is no less

  // The last part begins at stage `first`, where state `parent` was.
  int32_t parent = -1;
  int32_t first = 0;
  bool parent_saved = false;  // the kind of its input
  bool input_away = false;
  Bytes room;  // of a segment's backward
};

// Waiting turns extra time into less backlog, one for one, in each half.
inline bool Dominates(const JointState& a, const JointState& b, bool host_limited) {
  if (a.kept > b.kept || (host_limited && a.host > b.host)) return false;
  const double behind_f = a.backlog_f > b.backlog_f ? a.backlog_f - b.backlog_f : 0.0;
  const double behind_b = a.backlog_b > b.backlog_b ? a.backlog_b - b.backlog_b : 0.0;
  return a.extra + behind_f + behind_b <= b.extra;
}

// How finely states are told apart: the sides of a cell.
struct StateGrid {
  double kept = 1;  // bytes
  double host = 1;
  double backlog = 1;  // ns
  bool host_limited = false;
};

// States of one stage and one kind of input. Not thread-safe.
class StatePool {
 public:
  explicit StatePool(const StateGrid& grid) : grid_(grid) {}

  // Of the states in one cell the one with the least extra time and backlogs stays.
  void Offer(const JointState& state);

  // Empties the pool: at most `most` states that none other dominates, the least bound first.
  // `bound` fills in the bound of a state and says whether it may stay. CANCELLED,
  // DEADLINE_EXCEEDED.
  absl::StatusOr<std::vector<JointState>> Take(size_t most,
                                               absl::FunctionRef<bool(JointState*)> bound,
                                               StopPoll* poll);

 private:
  uint64_t CellOf(const JointState& state) const;

  StateGrid grid_;
  absl::flat_hash_map<uint64_t, uint32_t> cells_;  // index in states_
  std::vector<JointState> states_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_JOINT_STATE_H_
