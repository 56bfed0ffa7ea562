#include "solvers/offload/timeline.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace stowage {
namespace {

enum class EventRank { kRelease, kOp, kTake };

// A change of what is held. Ops raise it while they run and leave it changed.
struct Event {
  Nanos time;
  EventRank rank;
  int order;  // of ops: twice the place in program order, odd at the end
  Bytes change;

  friend bool operator<(const Event& a, const Event& b) {
    return std::tie(a.time, a.rank, a.order) < std::tie(b.time, b.rank, b.order);
  }
};

}  // namespace

Bytes PeakOf(const OffloadProblem& problem, const OffloadTimeline& timeline) {
  const int n = problem.size();
  const auto forward_end = [&](int i) {
    return timeline.forward_start[static_cast<size_t>(i)] + problem.op(i).forward_time;
  };
  std::vector<Event> events;
  events.reserve(static_cast<size_t>(4 * n) + 2 * timeline.offloads.size());
  // What op i gives back when its forward ends: its activation, if it is on the host by then.
  std::vector<Bytes> given(static_cast<size_t>(n));
  for (const TimedCopy& copy : timeline.offloads) {
    const Bytes size = problem.activation(copy.activation);
    if (copy.end <= forward_end(copy.activation)) {
      given[static_cast<size_t>(copy.activation)] = size;
    } else {
      events.push_back({copy.end, EventRank::kRelease, 0, Bytes(0) - size});
    }
  }
  for (const TimedCopy& copy : timeline.prefetches) {
    events.push_back({copy.start, EventRank::kTake, 0, problem.activation(copy.activation)});
  }
  for (int i = 0; i < n; ++i) {
    const OffloadOp& op = problem.op(i);
    const Nanos forward = timeline.forward_start[static_cast<size_t>(i)];
    const Nanos backward = timeline.backward_start[static_cast<size_t>(i)];
    const Bytes made = problem.activation(i + 1);
    const int back = 2 * n - 1 - i;
    events.push_back({forward, EventRank::kOp, 2 * i, made + op.forward_need});
    events.push_back({forward + op.forward_time, EventRank::kOp, 2 * i + 1,
                      Bytes(0) - op.forward_need - given[static_cast<size_t>(i)]});
    events.push_back({backward, EventRank::kOp, 2 * back, op.backward_need});
    events.push_back({backward + op.backward_time, EventRank::kOp, 2 * back + 1,
                      Bytes(0) - op.backward_need - made});
  }
  std::sort(events.begin(), events.end());
  Bytes held = problem.activation(0);
  Bytes peak = held;
  for (const Event& event : events) {
    held += event.change;
    peak = std::max(peak, held);
  }
  return peak;
}

}  // namespace stowage
