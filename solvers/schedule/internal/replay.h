// What all replays share: the link to host memory, the communication stream, the tensors that instructions read and
// write, and the loop over a schedule with its books. Internal to the evaluator (../accounting.md has the rules).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_REPLAY_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_REPLAY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// When something runs that does not run on the compute stream.
struct StreamSpan {
  Nanos start;
  Nanos end;
};

// The link to host memory during a replay: which tensors are on their way or away, when their copies
// run, what they take of host memory.
//
// Tensors go by numbers that the evaluator gives them. It checks that an op finds its tensor where the
// op needs it; the link keeps the books.

class LinkReplay {
 public:
  // kNone: nothing of the tensor is on the host. kLeaving and kComing: from the start of a copy to
  // its wait. kOnHost: between the wait of the offload and the start of the prefetch.
  enum class State : uint8_t { kNone, kLeaving, kOnHost, kComing };

  LinkReplay(const TransferModel& transfers, size_t tensors);

  State state(size_t tensor) const { return state_[tensor]; }

  // Starts a copy, to the host of a tensor in kNone, to the device of one in kOnHost: when `now` has
  // come and the copy before it on its channel has ended. INVALID_ARGUMENT if host memory does not
  // hold it, or a sum overflows.
  absl::StatusOr<StreamSpan> Start(Stream direction, size_t tensor, Bytes bytes, Nanos now);
  // Ends the copy of a tensor in kLeaving or kComing: when that is.
  Nanos Wait(size_t tensor, Bytes bytes);
  // Drops what the host holds of a tensor in kOnHost.
  void Drop(size_t tensor, Bytes bytes);

  Bytes host() const { return host_; }
  // Sums over all copies so far, by direction.
  Bytes offloaded() const { return offloaded_; }
  Bytes prefetched() const { return prefetched_; }

 private:
  const TransferModel transfers_;
  std::vector<State> state_;
  std::vector<Nanos> end_;          // of the tensor's last copy
  std::array<Nanos, 2> free_ = {};  // when each channel has done what was started; half duplex: [0]
  Bytes host_;
  Bytes offloaded_;
  Bytes prefetched_;
};

// What an instruction reads and writes: which instructions have to wait for an op on the
// communication stream.
//
// Tensors go by numbers. To make or to drop a tensor is to write it. Instructions that are not valid
// have some uses or none.

struct TensorUse {
  size_t tensor;
  bool writes;
};

using TensorUses = std::vector<TensorUse>;

// `input_held`: whether the plain input of the stage is. The numbers are below 3L + 9.
TensorUses UsesOf(const Chain& chain, const Instruction& instruction, bool input_held);

// `has_run`: whether the vertex has run forward; `output_held`: whether the storage that it owns is.
// The numbers are below 4V. O(inputs).
TensorUses UsesOf(const Graph& graph, const Instruction& instruction, bool has_run,
                  bool output_held);

// The communication stream during a replay: when its ops run, which tensors they hold up, what
// memory they keep.

class CommunicationStream {
 public:
  // What has ended for compute: when it did, and what it kept.
  struct Ended {
    Nanos end;
    Bytes kept;
  };

  // Whether there are ops for which compute has not waited.
  bool busy() const { return ended_ < ops_.size(); }

  // Puts an op behind those before it, when `now` has come. It keeps `kept` until compute has waited
  // for it. INVALID_ARGUMENT if the times overflow. O(uses).
  absl::StatusOr<StreamSpan> Start(const TensorUses& uses, Nanos now, Nanos time, Bytes kept);

  // Lets compute wait for the last op with which `uses` collides, hence for those before it.
  // O(uses), and amortised over all calls the ops.
  Ended WaitFor(const TensorUses& uses);
  Ended WaitForAll() { return WaitForFirst(ops_.size()); }

 private:
  // Ops are counted from 1 on: the last that used it.
  struct LastUse {
    size_t reader = 0;
    size_t writer = 0;
  };

  Ended WaitForFirst(size_t count);

  std::vector<Ended> ops_;
  size_t ended_ = 0;               // those for which compute has waited
  std::vector<LastUse> last_use_;  // by tensor; as far as any op has used
};

// What the replays of chains and of graphs share: the loop over a schedule and its books.

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

  // Of the instruction that runs, a forward that saves.
  AfterSaving WhatFollowsNow() const { return WhatFollows(*schedule_, index_); }
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
  const Schedule* schedule_ = nullptr;  // while it is replayed
  size_t index_ = 0;                    // of the instruction that runs
  Nanos start_;                         // of the instruction, once it has waited for communications
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_REPLAY_H_
