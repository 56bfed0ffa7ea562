// What the referees of chains and of graphs share: the loop over a schedule and its books.
// Internal to solvers/plan/simulate.h and graph_simulate.h.
#ifndef STOWAGE_SOLVERS_PLAN_REPLAY_H_
#define STOWAGE_SOLVERS_PLAN_REPLAY_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/plan/host_link.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// Replays one schedule, once.
class Replay {
 public:
  virtual ~Replay() = default;

  // As Simulate.
  absl::StatusOr<Simulation> Run(const Schedule& schedule, std::vector<TimelinePoint>* timeline);

 protected:
  // Carries out one instruction; why not, if it is not valid. Finds held_ in running_ and leaves
  // there what the instruction takes while it runs; leaves in copy_ when a copy that it starts runs.
  virtual absl::Status Dispatch(const Instruction& instruction) = 0;
  // Whether the schedule may end here.
  virtual absl::Status Finish() const = 0;

  // Adds the time of a forward, and to what is recomputed if it repeats one.
  void AddForward(Nanos time, bool repeated);
  static absl::Status WrongStream(Op op);
  static absl::Status NoSuchPart();
  // Lets the compute stream wait until `end`.
  void WaitUntil(Nanos end);

  Bytes held_;
  Bytes running_;
  Bytes host_;
  bool moves_parts_ = false;  // transfers may be of a part
  std::optional<CopySpan> copy_;
  Simulation result_;

 private:
  absl::Status Step(size_t index, const Instruction& instruction);
  // Dispatches what is not ordinary: on a copy stream, or of a part.
  absl::Status DispatchUnusual(const Instruction& instruction);
  TimelinePoint Point(Nanos start) const;
  void Note(Bytes memory, size_t index);
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_REPLAY_H_
