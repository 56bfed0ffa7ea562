// Ways to run the backward of a segment, from little memory to little time. Internal to
// solvers/transfer.
//
// Each is a memory-persistent schedule of the interval, as a discretised table of Beaumont et al.
// 2019, Theorem 1, proposes it (solvers/chain/persistent_table.h). In bytes and nanoseconds it says
// what it needs, what it takes beyond one forward and one backward per stage, and how the prefetches
// of what comes after it may run beside it: towards its end it holds less and less.
//
// Where the last stage has been saved, the others run again before its backward, so that they hold
// their memory beside what it saved.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_COSTS_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_COSTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

struct SegmentOption {
  int64_t memory = 0;  // that its schedule was made for
  int64_t need = 0;    // bytes, delta^j among them, the input not
  double overhead =
      0;  // ns beyond one forward and one backward per stage; that of the last, if it runs, may stop early
  // ns: the most, over its steps, of the link's time for what the step needs less the time from the
  // end of the step to that of the segment. Where r bytes are left for the segment and what is
  // prefetched beside it, and b ns of prefetches must have ended when it does, it waits for
  // max(0, b + rush - the link's time for r).
  double rush = 0;
};

// What a segment's backward needs and takes, without the steps around it: what the evaluator says of its instructions
// in a whole step, in less time (replay_bench in tests/bench).
// Not thread-safe.
class SegmentReplay {
 public:
  // `per_byte`: ns of the link for each byte. `chain` outlives this.
  SegmentReplay(const Chain& chain, double per_byte)
      : chain_(chain), per_byte_(per_byte), plain_(static_cast<size_t>(chain.length()) + 3) {}

  // Of the memory-persistent schedule of stages i..j, of which j has been saved before if `saved`: it keeps every input
  // until its backward, but for those of forwards that free it. `memory` of the result is 0. O(instructions).
  SegmentOption Run(int i, int j, bool saved, const Schedule& schedule);

 private:
  struct Timed {
    int64_t need;
    int64_t end;
  };

  int64_t Time(int l, bool forward) const {
    return (forward ? chain_.stage(l).forward_time : chain_.stage(l).backward_time).value();
  }
  // What the instruction needs; tracks what is held.
  int64_t Step(int i, const Instruction& instruction);

  const Chain& chain_;
  const double per_byte_;
  std::vector<bool> plain_;  // by stage: its input is held as a plain activation
  std::vector<Timed> steps_;
  bool stops_ = false;  // the forward that runs is a recompute that stops early
  int stopped_ = 0;     // the stage whose saved tensors are those of such a one; 0: none
  int64_t held_ = 0;
};

class SegmentCosts {
 public:
  // Memories up to `memory`. Nothing for chains that are too long for all of it to be held within half
  // of the context's memory, and for some seconds of work. CANCELLED, DEADLINE_EXCEEDED.
  static absl::StatusOr<std::optional<SegmentCosts>> Compute(const Chain& chain,
                                                             const TransferModel& transfers,
                                                             Bytes memory,
                                                             const SolveContext& context);

  int last() const { return space_.last(); }

  // What it holds, but for O(L).
  int64_t bytes() const;

  // Whether stages i..j may run twice, the loss not among them. On long chains segments are short.
  bool MayRunTwice(int i, int j) const {
    return j < last() && j - i < longest_ && space_.Recomputable(i, j);
  }
  // Stages of a segment at most.
  int longest() const { return longest_; }
  int64_t ForwardTime(int i, int j) const { return space_.ForwardTime(i, j); }
  // Where backward j follows: the forward of stage j may stop early.
  int64_t RecomputeTime(int i, int j) const { return space_.RecomputeTime(i, j); }
  // Least memory of such stages.
  Bytes LeastMemoryOf(int i, int j) const { return Bytes(least_.table(i, j).memory); }

  struct Options {
    const SegmentOption* begin;
    const SegmentOption* end;
  };
  // Of stages i..j that run twice, or of i..j-1 where j is saved, i < j. Overhead rises, need falls.
  Options OptionsOf(int i, int j, bool saved) const {
    const Span& span = spans_[saved ? 1 : 0](i, j);
    return {options_.data() + span.begin, options_.data() + span.begin + span.count};
  }

  // The second run and the backwards. `memory` is for stages i..j, of i..j-1 where j is saved, and at
  // least their least. O(length^2).
  Schedule SegmentBackward(int i, int j, bool saved, Bytes memory) const;

 private:
  struct Span {
    size_t begin = 0;
    size_t count = 0;
  };

  SegmentCosts(const Chain& chain, int64_t unit, int longest, MinimumMemory least);

  absl::Status FillOptions(const Chain& chain, double per_byte, int64_t slots, size_t most,
                           const SolveContext& context);
  absl::Status AddOptions(int i, int j, bool saved, const std::vector<int64_t>& memories,
                          SegmentReplay* replay, StopPoll* poll);
  // Memories at which the table's value changes, `most` of them at most.
  std::vector<int64_t> MemoriesOf(int i, int j, int64_t slots, size_t most) const;

  PersistentSpace space_;  // in bytes
  int64_t unit_;           // of the table
  int longest_;
  MinimumMemory least_;
  std::optional<PersistentTable> table_;
  std::array<IntervalTable<Span>, 2> spans_;  // by whether the last stage is saved
  std::vector<SegmentOption> options_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_COSTS_H_
