#include "server/entries/frontier_under.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "server/entries/cost_compare.h"
#include "server/entries/step_pairs.h"
#include "solvers/schedule/schedule.h"

namespace stowage {
namespace {

// The sum over all steps of the difference of their times.
template <class Kind>
int64_t Distance(const Kind& a, const Kind& b) {
  int64_t sum = 0;
  for (int i = 0; i < StepCount(a); ++i) {
    const auto& x = StepAt(a, i);
    const auto& y = StepAt(b, i);
    sum += std::abs(x.forward_time.value() - y.forward_time.value()) +
           std::abs(x.backward_time.value() - y.backward_time.value());
  }
  return sum;
}

// Both are of the same kind and size: their canonical bytes are equal.
int64_t Distance(const Problem& a, const Problem& b) {
  if (const Graph* graph = std::get_if<Graph>(&a)) return Distance(*graph, std::get<Graph>(b));
  return Distance(std::get<Chain>(a), std::get<Chain>(b));
}

}  // namespace

std::shared_ptr<const Frontier> FrontierUnder(const Instance& caller, const Instance& reference,
                                              const std::shared_ptr<const Frontier>& frontier) {
  if (!SameMemory(caller, reference)) return nullptr;
  const int64_t distance = Distance(caller.problem(), reference.problem());
  if (distance > IdealTime(caller.problem()).value() / 4) return nullptr;
  if (caller.link() && !AlikeLink(caller, reference)) return nullptr;
  FrontierBuilder builder(caller);
  for (const Frontier::Point& point : frontier->points()) {
    if (!builder.Add(point.schedule.Unpack()).ok()) return nullptr;
  }
  FrontierInfo info = frontier->info();
  info.exact = info.exact && distance == 0;
  return std::make_shared<const Frontier>(builder.Build(std::move(info)));
}

}  // namespace stowage
