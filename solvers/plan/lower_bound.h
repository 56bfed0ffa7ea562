// Lower bounds on the makespan within a budget: no schedule that the referee accepts on the chain,
// of whatever class, and whose peak is within the budget is faster. Schedules are those that put
// nothing on the communication stream: one that does is faster by no more than its time there.
//
// Moments. The forward that last saves stage l, and the backward of stage l, need need_l beside
// what is held of stages below l: a^0 (nothing brings it back, and backward 1 needs it), saved_l, a
// gradient, an overhead. Every stage i < l has run forward before, and its backward comes after.
//
// Kept stages. A stage i whose saved tensors, made by its first forward, are held until its
// backward costs saved_i at every moment of l > i. Every other stage runs forward twice at least.
// MakespanLowerBound is the ideal time and the least time of repeated forwards such that
//     need_l + sum of saved_i over kept i < l <= budget          for every l,
// with fractions of stages allowed. The constraints are nested: prefix by prefix, what is lacking
// is taken from the stages that cost least per byte.
//
// Stages that run exactly twice. Let i and i+1 both do, neither kept. The second forwards save, and
// what they save stays until the backward.
// - i's second forward comes first. Then i and i+1 are in one segment: at the moments of every l of
//   a segment, all stages of the segment below l are held.
// - i+1's comes first. Then what it starts from was made by i's first forward and held since; with
//   what it saves, min(a^i, saved_{i+1}) is held from there until backward i+1.
// StrongMakespanLowerBound takes the stages from 1 to L+1: kept, run twice in a segment, or run
// more often, which is taken to need no memory; and at each moment the input, a^{l-1}, unless it is
// among what is counted already. States are (memory, time, memory in the segment); those of nearly
// equal memory are merged into one that is no worse than any of them. The prices of memory at the
// optimum of MakespanLowerBound (its dual) say what a state has to repeat at least; those that
// cannot end within a limit are left out, and a limit within which nothing ends is a bound.
#ifndef STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_

#include <cstdint>
#include <queue>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

// At least the ideal time; never rises with the budget. Where the budget is too small for any
// schedule it is still finite. O(L log L): microseconds.
Nanos MakespanLowerBound(const Chain& chain, Bytes budget);

// At least MakespanLowerBound, and exact about stages being whole. Where it proves that no schedule
// fits: the ideal time and twice all forwards that may be repeated. The work is limited, to some 20
// milliseconds beside MakespanLowerBound: where that does not do (from some 300 stages on, or where
// budgets are small), it is what is proven by then. At half of store-all 50 stages take 0.5 ms.
Nanos StrongMakespanLowerBound(const Chain& chain, Bytes budget);

// A lower bound on the makespan within a budget: no schedule that SimulateGraph accepts and whose
// peak is within the budget is faster, unless it puts ops on the communication stream, and then by no
// more than their time.
//
// Moments. While v runs backward, and while the forward runs that makes the extras which that
// backward uses (any forward of v if it has none), every ancestor of v has run forward before, and
// runs backward later. What a backward of an ancestor needs (tensors, extras) is held at the moment,
// or the op that makes it runs forward once more: the owner of the tensor's storage, or
// the vertex whose extras they are. Beside it, the moment needs what v itself takes: inputs, output,
// extras, overhead; and while v runs backward, the gradients of its inputs and its own.
//
// Along a path of the graph ancestors become more, and what the moments need later grows: nested
// constraints, solved in fractions of ops by bound_knapsack.h. Here along a longest path. A byte
// costs the op's forward time divided by all bytes it makes that some backward needs, because
// repeating the op brings all of it back.

// At least the ideal time; never rises with the budget. Where the budget is too small for any
// schedule it is still finite. O(V log V + E).
Nanos MakespanLowerBound(const Graph& graph, Bytes budget);

// A lower bound on the makespan within a budget where tensors may go to host memory and back.
//
// Let h be the most bytes that a schedule has on the host at once, between an offload's wait and the
// start of its prefetch. Keep on the device what it offloads and fetches again, and discard what it
// offloads for good: a schedule without transfers, within budget + h and no slower. And the h bytes
// all left before that moment and all return after it, one after the other in each direction. So for
// any x, a schedule with h <= x takes no less than any does without transfers within budget + x, and
// one with h > x no less than x bytes take to the host and back.
//
// On a graph as on a chain: nothing is made anew or written over while it is away, so that what is
// kept instead is there at the same versions, and in nobody's way.

// No schedule that the referee accepts on the chain, or the graph, with a valid `transfers`, and whose
// peak is within the budget, is faster, or by no more than its time on the communication stream. At
// least the ideal time, at most the bound without transfers, and of the complexity of that one times
// the bits of a size.
Nanos MakespanLowerBound(const Chain& chain, const TransferModel& transfers, Bytes budget);
Nanos MakespanLowerBound(const Graph& graph, const TransferModel& transfers, Bytes budget);

// The knapsack behind the lower bounds of solvers/plan/lower_bound.h and graph_lower_bound.h.
// Internal to them.
//
// Items are held from when they are added on, and given up, in fractions and for good, where a
// requirement leaves no room for all of them. Each costs its time, in proportion to what is given
// up. As every requirement counts all items added before it, taking what it lacks from the items of
// least time per byte gives the least time that meets all of them (the constraints are nested).

class BoundKnapsack {
 public:
  // Bytes that are held and cannot be given up.
  void Hold(int64_t bytes) { held_ += bytes; }
  // 0 < `bytes` <= `whole`, of the results of an op: repeating it takes `time` and brings back all
  // of them, so that each byte costs time / whole.
  void Add(int64_t bytes, int64_t time, int64_t whole);
  // Gives up what is held over `room`, or all there is; the time per byte of the dearest item that
  // it gave of, 0 without one. O(log items) for each item given up.
  double Require(int64_t room);

  // The time of all that has been given up; makespans are whole.
  int64_t RoundedUp() const;

 private:
  struct Item {
    int64_t bytes;  // that are still held
    int64_t time;
    int64_t whole;
  };
  // Whether a's time per byte is larger: the queue's top costs least.
  struct CostsMore {
    bool operator()(const Item& a, const Item& b) const {
      return absl::int128(a.time) * b.whole > absl::int128(b.time) * a.whole;
    }
  };

  std::priority_queue<Item, std::vector<Item>, CostsMore> items_;
  int64_t held_ = 0;
  absl::int128 time_ = 0;  // of what has been given up, in fractions rounded down
};

// What both lower bounds of solvers/plan/lower_bound.h know of a moment. Internal to it.

// need_l for l in 1..L+1 (index 0 is not used), in bytes: the larger of what the forward that last
// saves stage l and its backward take, beside what is held of stages below l. O(L).
std::vector<int64_t> MomentNeeds(const Chain& chain);

// MakespanLowerBound of solvers/plan/lower_bound.h, with what its optimum says of the chain.
// Internal to solvers/plan.
//
// It is a linear program: the share of each stage that is given up, and a constraint for each
// moment. Where a moment lacks memory and the cheapest byte costs r_l, the prices
//     p_i = max of r_l over l > i
// of a byte of a stage i that is held are its dual: prices of moments, p_{l-1} - p_l, that are not
// negative, and above zero only where nothing is left.

struct RelaxedLowerBound {
  Nanos repeated;              // the least time of repeated forwards
  std::vector<double> prices;  // ns for a byte, by stage 0..L+1; they fall to 0
};

// O(L log L). `needs` are the chain's MomentNeeds.
RelaxedLowerBound RelaxLowerBound(const Chain& chain, Bytes budget,
                                  const std::vector<int64_t>& needs);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
