#include "solvers/graph/trivial_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// Calls `bytes_of` with each storage once.
template <class BytesOf>
Bytes SumOf(std::vector<int> storages, const BytesOf& bytes_of) {
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  Bytes sum;
  for (const int storage : storages) sum += bytes_of(storage);
  return sum;
}

}  // namespace

Bytes LeastNeed(const Graph& graph) {
  Bytes least;
  std::vector<int> inputs, needed;
  const auto tensor = [&graph](int storage) { return graph.bytes(storage); };
  const auto gradient = [&graph](int storage) { return graph.vertex(storage).output_gradient; };
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    // With its own output, or the storage that it is written to.
    inputs.assign(1, graph.storage(p));
    needed.clear();
    if (v.backward_needs_output) needed.push_back(graph.storage(p));
    for (const GraphInput& input : v.inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      inputs.push_back(storage);
      if (input.backward_needs) needed.push_back(storage);
    }
    const Bytes saving = v.extra_saved + v.forward_saving_overhead;
    const Bytes beside = v.extra_saved > Bytes(0) ? saving : std::min(saving, v.forward_overhead);
    const Bytes forward = SumOf(inputs, tensor) + beside;
    const Bytes backward =
        SumOf(needed, tensor) + SumOf(inputs, gradient) + v.extra_saved + v.backward_overhead;
    least = std::max({least, forward, backward});
  }
  return least;
}

absl::StatusOr<std::optional<Plan>> TrivialPlan(const Instance& instance, Bytes budget,
                                                const SolverInfo& solver) {
  Plan plan;
  plan.bounds.schedule_class = solver.schedule_class;
  const Bytes least = LeastNeed(instance.graph());
  if (budget < least) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.bounds.least_budget = least;
    plan.explanation = absl::StrCat("some op alone needs ", least.value(),
                                    " bytes at once; --budget=least takes the smallest budget "
                                    "that a schedule is found for");
    return plan;
  }
  if (instance.store_all()->peak > budget) return std::nullopt;
  plan.status = PlanStatus::kFound;
  plan.schedule = instance.store_all_schedule();
  plan.bounds.proven_optimal = true;
  plan.explanation = "everything fits: nothing is recomputed";
  return plan;
}

}  // namespace stowage
