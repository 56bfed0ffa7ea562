// What the referees of chains and of graphs share: the loop over a schedule and its books.
// Internal to solvers/plan/simulate.h and graph_simulate.h.
#ifndef STOWAGE_SOLVERS_PLAN_REPLAY_H_
#define STOWAGE_SOLVERS_PLAN_REPLAY_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/plan/communication_stream.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"
#include "solvers/plan/stream_span.h"
#include "solvers/plan/tensor_uses.h"

namespace stowage {

// Replays one schedule, once.
class Replay {
 public:
  virtual ~Replay() = default;

  // As Simulate.
  absl::StatusOr<Simulation> Run(const Schedule& schedule, std::vector<TimelinePoint>* timeline);

 protected:
  // Carries out one instruction; why not, if it is not valid. Finds held_ in running_ and leaves
  // there what the instruction takes while it runs; leaves in beside_ when a copy that it starts runs.
  virtual absl::Status Dispatch(const Instruction& instruction) = 0;
  // Whether the schedule may end here.
  virtual absl::Status Finish() const = 0;
  // Whether the stage of a forward or a backward exists and is collective.
  virtual absl::Status CheckCollective(int stage) const = 0;
  // Before the instruction, whatever its stage; it need not be valid.
  virtual TensorUses UsesNow(const Instruction& instruction) const = 0;

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
  std::optional<StreamSpan> beside_;
  Simulation result_;

 private:
  absl::Status Step(size_t index, const Instruction& instruction);
  // Dispatches what is not ordinary: on another stream, of a part, or beside a communication.
  absl::Status DispatchUnusual(const Instruction& instruction);
  // Puts the instruction on the communication stream.
  absl::Status Communicate(const Instruction& instruction);
  // Lets the compute stream wait for communications.
  void Observe(const CommunicationStream::Ended& ended);
  TimelinePoint Point() const;
  void Note(Bytes memory, size_t index);

  CommunicationStream communication_;
  Nanos start_;  // of the instruction, once it has waited for communications
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_REPLAY_H_
