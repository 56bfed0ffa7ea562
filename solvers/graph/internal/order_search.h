// The compute orders that no other one found beats: the state of a search over all budgets. Internal
// to solvers/graph.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/order_trials.h"
#include "solvers/graph/internal/priced_orders.h"
#include "solvers/solver.h"

namespace stowage {

// Keeps within a number of bytes, but for the lowest peak and the fastest order, which stay: of the
// others, those go first that are worth the least for their bytes.
class OrderPool {
 public:
  struct Entry {
    int64_t peak;
    int64_t forward_time;
    ComputeOrder order;
  };

  explicit OrderPool(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Whether no entry of no higher peak is as fast. O(log entries).
  bool Beats(const OrderCost& cost) const;
  // Keeps it unless an entry of no higher peak is as fast. O(entries).
  void Offer(const OrderCost& cost, const ComputeOrder& order);
  // Peaks rise, times fall.
  const std::vector<Entry>& entries() const { return entries_; }
  // Entries within the budget: the last of them is the fastest. O(log entries).
  size_t Within(int64_t budget) const;
  int64_t most_bytes() const { return most_bytes_; }

 private:
  // Of all orders.
  int64_t TotalBytes() const;
  void DropLeastWorth();

  int64_t most_bytes_;
  std::vector<Entry> entries_;
};

// Changes of a compute order that trade time for memory and back, each validated by replaying it.
//
//   Evict    drops a tensor that waits where the order is over a target, and computes it again before
//            its next use: the one with the least time per byte and compute that it takes off the
//            overload, again and again until nothing is over
//   Reorder  moves computes, where that takes something off the overload: it costs no time
//   Retain   takes out repeats while nothing gets over the target: those with the most time per byte
//            held first
// Not thread-safe.
class OrderMoves {
 public:
  OrderMoves(const OpGraph& graph, const StopToken* stop);

  // Until the peak is within the target or nothing helps, or `work_limit` is spent; the order is as
  // far as it came. CANCELLED, DEADLINE_EXCEEDED. Same for the others.
  absl::Status Evict(int64_t target, int64_t work_limit, ComputeOrder* order);
  absl::Status Reorder(int64_t target, int64_t work_limit, ComputeOrder* order);
  absl::Status Retain(int64_t target, int64_t work_limit, ComputeOrder* order);

  OrderCost Cost(const ComputeOrder& order, int64_t target) {
    return evaluator_.Evaluate(order, target);
  }
  // The order without the forwards that nobody uses.
  const ComputeOrder& WithoutDead(const ComputeOrder& order) {
    evaluator_.EvaluateWithProfile(order, 0, &profile_);
    return profile_.order;
  }
  // Computes and edges replayed so far, and what else was looked at, as far as it takes as long.
  int64_t work() const { return evaluator_.work() + trials_.work() + looked_at_ / kLooksPerStep; }
  // CANCELLED, DEADLINE_EXCEEDED. To be called again within some milliseconds of work.
  absl::Status Poll();

 private:
  // To look at a compute takes an eighth of what it takes to replay it.
  static constexpr int64_t kLooksPerStep = 8;
  static constexpr size_t kBlock = 64;

  // A forward that could be put in before a compute.
  struct Candidate {
    int vertex;
    int before;   // index in the profile's order
    double gain;  // at most this is taken off the overload
    double rate;  // gain by time
  };

  void SumOverload(int64_t target);
  // Bytes that leave the overload when so many are dropped between two computes; at most.
  double GainBetween(int from, int to, int64_t bytes) const;
  void FindCandidates();
  // The last life of the output that began before a compute; null if none did. O(log lives).
  const OrderProfile::Life* LifeBefore(int vertex, int at);
  bool IsLive(int vertex, int at);
  // What must be computed before `at` for `vertex` to be: itself, and with it the inputs that are
  // not held then, in program order.
  void FindClosure(int vertex, int at, std::vector<int>* closure);
  // Insertions before computes of the profile's order.
  struct Insertion {
    int before;
    std::vector<int> vertices;
    bool instead_of_next;  // the next forward of each vertex is left out
  };
  // Of an insertion that has been replayed.
  struct Trial {
    Insertion insertion;
    double rate;
  };

  // What is changed from now on is the profile's order.
  void StartTrials(const OrderCost& cost, int64_t target);
  // Its cost but the peak.
  OrderCost CostWith(const Insertion& insertion, int64_t target);
  void Apply(std::vector<const Insertion*> insertions, ComputeOrder* order);
  absl::Status RankCandidates();
  void Replay(Insertion insertion, int64_t target, const OrderCost& cost,
              std::vector<Trial>* trials);
  absl::Status ReplayCandidates(int64_t target, const OrderCost& cost, std::vector<Trial>* trials);
  // Applies the best trial, and what is nearly as good with it.
  absl::Status ApplyBest(std::vector<Trial> trials, int64_t target, ComputeOrder* order);
  // Where computes are in the profile's order.
  struct Places {
    std::vector<int> first_run;  // by vertex
    std::vector<int> backward;
    std::vector<int> ordered;  // indices of the first runs that keep their order; rising
  };
  Places FindPlaces() const;
  // First and last index that the compute at `index` may have, everything else keeping its order.
  std::pair<int, int> Range(const Places& places, int index);
  // Moves the compute at `index` if that helps.
  bool MoveOne(const Places& places, int index, int64_t target, OrderCost* cost);
  void FindBlocks();
  // Whether the memory that the repeat at `index` saves may be there; true says little.
  bool MayRetain(int64_t target, size_t index);
  // Indices of the repeats that may be taken out, the most promising first.
  absl::StatusOr<std::vector<size_t>> FindRepeats(int64_t target);

  const OpGraph& graph_;
  OrderEvaluator evaluator_;
  StopPoll poll_;
  int64_t polled_ = 0;     // work at the last poll
  int64_t looked_at_ = 0;  // computes, edges and lives, besides those replayed
  OrderProfile profile_;
  OrderTrials trials_;
  bool try_parts_ = false;             // trials_ can tell
  std::vector<int64_t> over_sum_;      // prefix sums of the overload
  std::vector<int> over_count_;        // and of the computes that are over
  std::vector<int64_t> most_running_;  // of each block of so many computes
  std::vector<Candidate> candidates_;
  std::vector<bool> in_closure_;
  std::vector<int> left_out_;  // by vertex: how many of its next forwards Apply leaves out
  ComputeOrder trial_order_;
};

// A part of a search that works at one budget at a time, beside other parts on other threads. It reads the search's
// pools, which do not change while parts work, and keeps the orders that it finds until MoveTo. Not thread-safe.
class OrderLane {
 public:
  // The pools outlive it. The orders that it keeps for each of them take `most_bytes` at most.
  OrderLane(const OpGraph& graph, const StopToken* stop, const OrderPool* all,
            const OrderPool* unpriced, int64_t most_bytes);

  // Offers the orders that prices of memory choose, at most `steps` of them, until the forwards of one within the target
  // take `enough` at most. Of graphs with backwards. Looks at about `work` computes and edges. CANCELLED,
  // DEADLINE_EXCEEDED; the same for all below.
  absl::Status Price(int64_t target, int64_t enough, int steps, int64_t work);
  // Makes two orders fit that no prices chose: the one of the next higher peak, and the fastest within the target.
  absl::Status FitNearest(int64_t target, int64_t work);
  // Makes the order of the next higher peak fit, whoever chose it.
  absl::Status FitNext(int64_t target, int64_t work);
  // Makes the fastest order fit that no prices chose.
  absl::Status FitFastest(int64_t target, int64_t work);
  // From the fastest within the target: takes out repeats and makes the order fit again another way.
  absl::Status Vary(int64_t target, int64_t work);

  // Offers the pools what it has found since the last time.
  void MoveTo(OrderPool* all, OrderPool* unpriced);
  // Computes and edges looked at so far by prices.
  int64_t priced_work() const { return prices_ ? prices_->work() : 0; }

 private:
  // The orders of the search and its own.
  struct Orders {
    const OrderPool* all;
    OrderPool own;

    bool Beats(const OrderCost& cost) const { return all->Beats(cost) && own.Beats(cost); }
    void Offer(const OrderCost& cost, const ComputeOrder& order);
    // The fastest within the budget; the one of the lowest peak beyond it. Null where there is none.
    const OrderPool::Entry* Within(int64_t budget) const;
    const OrderPool::Entry* Beyond(int64_t budget) const;
    const OrderPool::Entry& Fastest() const;
  };

  // Of an order that does without those that nobody uses. Until variation it was found without prices.
  void Keep(const OrderCost& cost, const ComputeOrder& order);
  absl::Status FitFrom(const OrderPool::Entry* entry, int64_t target, int64_t end);
  // Makes the order fit and takes back what memory is left for.
  absl::Status Fit(int64_t target, int64_t work, ComputeOrder* order, OrderCost* cost);
  absl::Status VaryFrom(int64_t target, int64_t end, ComputeOrder* order, OrderCost* cost);

  const OpGraph& graph_;
  const StopToken* const stop_;
  OrderMoves moves_;
  std::optional<PricedOrders> prices_;  // once there are any
  Orders all_;
  Orders unpriced_;  // until variation without what prices chose
};

// Search over compute orders for many budgets, on as many threads as the context allows. Deterministic, whatever their
// number; effort is counted, not timed. Internal to solvers/graph.
class OrderSearch {
 public:
  OrderSearch(const OpGraph& graph, const SolveContext& context)
      : graph_(graph),
        stop_(context.stop()),
        threads_(context.threads()),
        most_bytes_(context.memory().value() / 8),
        moves_(graph, context.stop()),
        pool_(most_bytes_),
        unpriced_(most_bytes_) {}

  // A proposal. Its first runs must follow their inputs. Ignored if it does not keep gradient sums.
  void Offer(const ComputeOrder& order);

  // Is told of the share of the search that is done, and of a budget that was worked on. The search ends with its error.
  using After = std::function<absl::Status(double, int64_t)>;

  // Offers what prices choose after a few steps, for some budgets between `least_peak` and plain training's peak: plans
  // as good as to a few per cent, in a fraction of the time of all else. Plain training must have been offered. Of
  // graphs with backwards. Spends some `work` computes and edges at most.
  absl::Status Sketch(int64_t least_peak, int64_t work, const After& after);

  // Improves what there is, for budgets between the least peak there is, or below, and the highest.
  // Spends some `work` computes and edges at most. `after` may be empty. `least_repeated`
  // says what forwards take at least beyond running once, within a budget: the closer to it an order is, the less work
  // its budget gets. It may be empty. Both are called on the calling thread. Graphs of more than 5,000 vertices get
  // orders by prices alone; compute DAGs, which have no prices, of more than 20,000 nothing.
  absl::Status Improve(int64_t work, const After& after,
                       const std::function<int64_t(int64_t)>& least_repeated = nullptr);

  const OrderPool& pool() const { return pool_; }

 private:
  using Lanes = std::vector<std::unique_ptr<OrderLane>>;
  // What a lane does at a target, with so much work.
  using Step = absl::Status (OrderLane::*)(int64_t target, int64_t work);
  class Targets;

  // Neighbouring targets are one lane's. A round works at one target of each lane; after it the pools have what all found.
  Lanes MakeLanes() const;
  absl::Status Price(const Targets& targets, const After& after, Lanes* lanes);
  // At every target, with its share of this part of the work.
  absl::Status ForTargets(const Targets& targets, double part, Step step, const After& after,
                          Lanes* lanes);
  // Calls `step` with every lane, and takes what they find, in their order.
  absl::Status Round(const std::function<absl::Status(size_t)>& step, Lanes* lanes);
  absl::Status Shrink(int64_t work);
  // Offers every order of the pool without each of its repeats alone, and what comes of that again: orders between the
  // budgets that were worked on.
  absl::Status Loosen(int64_t work);

  const OpGraph& graph_;
  const StopToken* const stop_;
  const int threads_;
  const int64_t most_bytes_;
  OrderMoves moves_;
  double parts_done_ = 0.0;  // of the work
  OrderPool pool_;
  OrderPool unpriced_;  // until variation without what prices chose
};

// All compute orders of a small graph that keep its gradient sums (solvers/schedule/gradient_sums.h): those that no
// other one beats, by exhaustive search (algorithms.md).
constexpr int kMaxExactVertices = 20;

struct ExactOrders {
  // Better than what was known, each at its own peak.
  std::vector<ComputeOrder> orders;
  // Nothing else is better.
  bool complete = false;
  int64_t labels = 0;
};

// `known` has an order for every vertex running once; `peak_lower_bound`: no peak is lower. Stops, not
// complete, before it makes more than `max_labels`; some 100 bytes each. CANCELLED, DEADLINE_EXCEEDED.
// At most kMaxExactVertices vertices.
absl::StatusOr<ExactOrders> SearchAllOrders(const OpGraph& graph, const OrderPool& known,
                                            int64_t peak_lower_bound, int64_t max_labels,
                                            const StopToken* stop);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_SEARCH_H_
