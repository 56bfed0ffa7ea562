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

// States of one stage and one kind of input, in no more memory than it is given. Not thread-safe.
class StatePool {
 public:
  // Fills in the bound of a state and says whether it may stay.
  using Bound = absl::FunctionRef<bool(JointState*)>;

  explicit StatePool(const StateGrid& grid) : grid_(grid) {}

  // Of the states in one cell the one with the least extra time and backlogs stays. False if there
  // is no room for one more: nothing has changed.
  bool Offer(const JointState& state);

  // What the room for states takes, and what it would take once grown.
  int64_t bytes() const { return BytesFor(room_); }
  int64_t grown_bytes() const { return BytesFor(GrownRoom()); }
  static int64_t least_bytes() { return BytesFor(kLeastRoom); }
  void Grow();
  // Halves the room, where there is more than the least. The states that may not stay go; of the
  // others, if need be, those with the largest bounds.
  void Thin(Bound bound);

  // Empties the pool, its room included: at most `most` states that none other dominates, the least
  // bound first. CANCELLED, DEADLINE_EXCEEDED.
  absl::StatusOr<std::vector<JointState>> Take(size_t most, Bound bound, StopPoll* poll);

  size_t size() const { return states_.size(); }

 private:
  static constexpr size_t kLeastRoom = 16;

  // A state, and at most two places of 17 bytes each in the table of cells.
  static int64_t BytesFor(size_t room) {
    return static_cast<int64_t>(room * (sizeof(JointState) + 40));
  }
  size_t GrownRoom() const { return room_ == 0 ? kLeastRoom : 2 * room_; }
  uint64_t CellOf(const JointState& state) const;

  size_t room_ = 0;  // for so many states
  StateGrid grid_;
  absl::flat_hash_map<uint64_t, uint32_t> cells_;  // index in states_
  std::vector<JointState> states_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_JOINT_STATE_H_
