#include "server/entries/cost_compare.h"

#include <algorithm>

#include "server/entries/step_pairs.h"
#include "solvers/model/transfer_model.h"

namespace stowage {
namespace {

bool SameCost(const CopyCost& a, const CopyCost& b) {
  return a.bytes_per_second == b.bytes_per_second && a.latency == b.latency;
}

// Measured links are noisy; beyond this ratio of the times that a copy takes they are others.
bool AlikeCost(const CopyCost& a, const CopyCost& b, Bytes bytes) {
  constexpr int64_t kMostRatio = 2;
  const Nanos x = CopyTime(a, bytes), y = CopyTime(b, bytes);
  return std::max(x, y).value() / kMostRatio <= std::min(x, y).value();
}

}  // namespace

bool SameOverheads(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.stops() == y.stops() && x.stopped_overhead() == y.stopped_overhead() &&
           x.forward_saving_overhead == y.forward_saving_overhead &&
           x.forward_overhead == y.forward_overhead && x.backward_overhead == y.backward_overhead;
  });
}

bool OverheadsAtLeast(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    if (x.stops() && (!y.stops() || x.stopped_overhead() < y.stopped_overhead())) return false;
    return x.forward_saving_overhead >= y.forward_saving_overhead &&
           x.forward_overhead >= y.forward_overhead && x.backward_overhead >= y.backward_overhead;
  });
}

bool SameTimes(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_time == y.forward_time && x.backward_time == y.backward_time &&
           x.recompute_saving_time == y.recompute_saving_time;
  });
}

bool SameLink(const Instance& a, const Instance& b) {
  if (!a.link() || !b.link()) return !a.link() && !b.link();
  return SameCost(a.link()->to_host, b.link()->to_host) &&
         SameCost(a.link()->to_device, b.link()->to_device) &&
         a.link()->full_duplex == b.link()->full_duplex &&
         a.link()->host_memory == b.link()->host_memory;
}

bool SameMemory(const Instance& a, const Instance& b) {
  if (!SameOverheads(a.problem(), b.problem())) return false;
  if (!a.link() || !b.link()) return !a.link() && !b.link();
  return a.link()->host_memory == b.link()->host_memory;
}

Bytes MeanTensor(const Problem& problem) {
  Bytes sum;
  int count = 0;
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (count = 0; count < graph->size(); ++count) sum += graph->vertex(count).output;
  } else {
    const Chain& chain = std::get<Chain>(problem);
    for (count = 0; count <= chain.length(); ++count) sum += chain.stage(count + 1).saved;
  }
  return Bytes(sum.value() / std::max(count, 1) + 1);
}

bool AlikeLink(const Instance& a, const Instance& b) {
  const Bytes bytes = MeanTensor(a.problem());
  return AlikeCost(a.link()->to_host, b.link()->to_host, bytes) &&
         AlikeCost(a.link()->to_device, b.link()->to_device, bytes);
}

}  // namespace stowage
