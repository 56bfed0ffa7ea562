// What a segment's backward needs and takes, without the steps around it: what the evaluator says of its instructions
// in a whole step, at a fraction of the time (replay_bench). The costs of segments take a million of these.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_REPLAY_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_REPLAY_H_

#include <cstdint>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct SegmentOption {
  int64_t memory = 0;   // that its schedule was made for
  int64_t need = 0;     // bytes, delta^j among them, the input not
  double overhead = 0;  // ns beyond one forward and one backward per stage
  // ns: the most, over its steps, of the link's time for what the step needs less the time from the
  // end of the step to that of the segment. Where r bytes are left for the segment and what is
  // prefetched beside it, and b ns of prefetches must have ended when it does, it waits for
  // max(0, b + rush - the link's time for r).
  double rush = 0;
};

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
  int64_t held_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_SEGMENT_REPLAY_H_
