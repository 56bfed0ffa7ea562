#include "solvers/chain/persistent_guide.h"

#include <algorithm>

namespace stowage {
namespace {

class Guide {
 public:
  Guide(const PersistentSpace& exact, const LeastMemory& least, const PersistentTable& table,
        int64_t unit)
      : exact_(exact), least_(least), table_(table), unit_(unit) {}

  int Choose(int s, int t, int64_t memory) const {
    int best_split = 0;
    int64_t best = kNever;
    if (memory >= exact_.KeepAllNeed(s, t) && Fits(s + 1, t, memory - exact_.saved(s))) {
      best = Estimate(s + 1, t, memory - exact_.saved(s));
    }
    int64_t run_need = exact_.FirstRunNeed(s);
    for (int split = s + 1; split <= t && exact_.Recomputable(s, split - 1); ++split) {
      if (split > s + 1) run_need = exact_.ExtendRunNeed(run_need, split - 1);
      if (memory < exact_.gradient(t) + run_need) break;  // the need grows with the split
      const int64_t run = exact_.ForwardTime(s, split - 1);
      if (run >= best) break;  // so does the time
      const int64_t rest = memory - exact_.activation(split - 1);
      if (!Fits(split, t, rest) || !Fits(s, split - 1, memory)) continue;
      const int64_t total = run + Estimate(split, t, rest) + Estimate(s, split - 1, memory);
      if (total < best) {
        best = total;
        best_split = split;
      }
    }
    return best_split;
  }

 private:
  // Beyond every excess of a table, and some of them still fit 64 bits.
  static constexpr int64_t kUnknown = kNever / 4;

  bool Fits(int s, int t, int64_t memory) const { return memory >= least_.table(s, t).memory; }

  // What the table says, or nearly: it may need a little more than is there.
  int64_t Estimate(int s, int t, int64_t memory) const {
    constexpr int64_t kMore = 8;
    const int64_t slots = memory / unit_ + (memory % unit_ >= unit_ - memory % unit_ ? 1 : 0);
    for (int64_t more = 0; more <= kMore; ++more) {
      const int64_t excess = table_.IntervalExcess(s, t, slots + more);
      if (excess < kNever) return excess;
    }
    return kUnknown;
  }

  const PersistentSpace& exact_;
  const LeastMemory& least_;
  const PersistentTable& table_;
  const int64_t unit_;
};

}  // namespace

Schedule GuidedSchedule(const PersistentSpace& exact, const LeastMemory& least,
                        const PersistentTable& table, int64_t unit, int64_t memory) {
  return GuidedSchedule(exact, least, table, unit, 1, exact.last(), memory);
}

Schedule GuidedSchedule(const PersistentSpace& exact, const LeastMemory& least,
                        const PersistentTable& table, int64_t unit, int s, int t, int64_t memory) {
  const Guide guide(exact, least, table, unit);
  return PersistentBacktrack::Run(exact, s, t, memory, [&guide](int first, int last, int64_t m) {
    return guide.Choose(first, last, m);
  });
}

}  // namespace stowage
