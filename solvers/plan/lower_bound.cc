#include "solvers/plan/lower_bound.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/plan/bound_needs.h"

namespace stowage {
namespace {

// A stage whose saved tensors may be given up, all or in part.
struct Candidate {
  int64_t saved;
  int64_t time;  // of the forward that has to be repeated
  int64_t given_up = 0;
};

// Whether a's time per byte is larger: the queue's top costs least.
struct CostsMore {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return absl::int128(a.time) * b.saved > absl::int128(b.time) * a.saved;
  }
};

// Sums times in fractions of a nanosecond, each rounded down: a bound stays a bound.
class FractionalTime {
 public:
  void Add(const Candidate& c) {
    if (c.given_up == 0) return;
    const absl::int128 product = absl::int128(c.time) * c.given_up;
    sum_ += (product / c.saved << kFractionBits) + (product % c.saved << kFractionBits) / c.saved;
  }
  // Makespans are whole.
  int64_t RoundedUp() const {
    const absl::int128 one = absl::int128(1) << kFractionBits;
    return static_cast<int64_t>((sum_ + one - 1) / one);
  }

 private:
  static constexpr int kFractionBits = 60;
  absl::int128 sum_ = 0;
};

}  // namespace

Nanos MakespanLowerBound(const Chain& chain, Bytes budget) {
  const std::vector<int64_t> needs = MomentNeeds(chain);
  std::priority_queue<Candidate, std::vector<Candidate>, CostsMore> candidates;
  FractionalTime repeated;
  int64_t held = 0;  // saved tensors of the stages before l that are not given up
  for (int l = 1; l <= chain.length() + 1; ++l) {
    int64_t excess = held + needs[static_cast<size_t>(l)] - budget.value();
    while (excess > 0 && !candidates.empty()) {
      Candidate c = candidates.top();
      candidates.pop();
      const int64_t bytes = std::min(excess, c.saved - c.given_up);
      c.given_up += bytes;
      held -= bytes;
      excess -= bytes;
      if (c.given_up < c.saved) {
        candidates.push(c);
      } else {
        repeated.Add(c);
      }
    }
    const Stage& s = chain.stage(l);
    held += s.saved.value();
    if (s.recomputable() && s.saved > Bytes(0))
      candidates.push({s.saved.value(), s.forward_time.value()});
  }
  for (; !candidates.empty(); candidates.pop()) repeated.Add(candidates.top());
  return chain.ideal_time() + Nanos(repeated.RoundedUp());
}

}  // namespace stowage
