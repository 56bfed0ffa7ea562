// The knapsack behind the lower bounds of solvers/plan/lower_bound.h and graph_lower_bound.h.
// Internal to them.
//
// Items are held from when they are added on, and given up, in fractions and for good, where a
// requirement leaves no room for all of them. Each costs its time, in proportion to what is given
// up. As every requirement counts all items added before it, taking what it lacks from the items of
// least time per byte gives the least time that meets all of them (the constraints are nested).
#ifndef STOWAGE_SOLVERS_PLAN_BOUND_KNAPSACK_H_
#define STOWAGE_SOLVERS_PLAN_BOUND_KNAPSACK_H_

#include <cstdint>
#include <queue>
#include <vector>

#include "absl/numeric/int128.h"

namespace stowage {

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_BOUND_KNAPSACK_H_
