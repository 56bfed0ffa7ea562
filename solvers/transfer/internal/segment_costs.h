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
#include "solvers/transfer/internal/segment_replay.h"

namespace stowage {

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
