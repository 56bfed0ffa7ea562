#include "solvers/graph/joint/transfer_search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/joint/nested_trace.h"
#include "solvers/offload/strategies.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/plan/graph_liveness.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {
namespace {

// To trace, to choose tensors and to replay, for each instruction; about.
constexpr int64_t kWorkPerStep = 128;

int64_t WorkOf(const Schedule& schedule) {
  return kWorkPerStep * static_cast<int64_t>(schedule.size());
}

// Repeated forwards that take time, the longest ones first.
std::vector<size_t> FindRepeats(const Graph& graph, const Schedule& compute) {
  std::vector<bool> ran(static_cast<size_t>(graph.size()) + 1, false);
  std::vector<size_t> repeats;
  for (size_t k = 0; k < compute.size(); ++k) {
    if (!IsForward(compute[k].op)) continue;
    const size_t v = static_cast<size_t>(compute[k].stage);
    if (ran[v] && graph.vertex(compute[k].stage - 1).forward_time > Nanos(0)) repeats.push_back(k);
    ran[v] = true;
  }
  std::stable_sort(repeats.begin(), repeats.end(), [&](size_t a, size_t b) {
    const auto time = [&](size_t k) { return graph.vertex(compute[k].stage - 1).forward_time; };
    return time(a) > time(b);
  });
  return repeats;
}

// What a repeated forward makes is held from the run before on instead.
Schedule WithoutRepeat(const Graph& graph, const Schedule& compute, size_t repeat) {
  Schedule changed = compute;
  size_t before = repeat;
  do {
    --before;
  } while (!IsForward(changed[before].op) || changed[before].stage != compute[repeat].stage);
  if (compute[repeat].op == Op::kForwardKeepAll) changed[before].op = Op::kForwardKeepAll;
  changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(repeat));
  return WithDiscards(graph, changed);
}

}  // namespace

TransferSearch::TransferSearch(const Graph& graph, const TransferModel& link,
                               const std::vector<Bytes>& budgets, const SolveOptions& options)
    : graph_(graph), link_(link), options_(options), poll_(options.stop) {
  options_.progress = nullptr;
  for (const Bytes budget : budgets) {
    bests_.emplace_back();
    bests_.back().budget = budget;
  }
}

absl::StatusOr<TransferSearch::Offered> TransferSearch::Trace(const Schedule& compute) const {
  absl::StatusOr<ComputeTrace> trace = TraceOf(graph_, compute);
  if (!trace.ok()) return trace.status();
  Offered offered = {compute, {}, Nanos(0), Bytes(0)};
  for (const ComputeTrace::Step& step : trace->steps) {
    offered.makespan += step.time;
    offered.peak = std::max(offered.peak, step.need);
  }
  offered.traces.push_back(*std::move(trace));
  ComputeTrace nested = NestedTrace(offered.traces.front(), link_);
  if (nested.tensors.size() < offered.traces.front().tensors.size()) {
    offered.traces.push_back(std::move(nested));
  }
  return offered;
}

absl::Status TransferSearch::Offer(const Schedule& compute) {
  absl::Status status = poll_.Spend(WorkOf(compute));
  if (!status.ok()) return status;
  const absl::StatusOr<Offered> offered = Trace(compute);
  if (!offered.ok()) return absl::InternalError(offered.status().message());
  for (Best& best : bests_) {
    if (status.ok()) status = OfferAt(*offered, &best);
  }
  return status.ok() ? NoteLeast(*offered) : status;
}

absl::Status TransferSearch::OfferAt(const Offered& offered, Best* best) {
  absl::Status status;
  for (const ComputeTrace& trace : offered.traces) {
    if (status.ok() && MayBeat(offered, *best))
      status = OfferWith(offered, trace, GreedyOffload(), best);
  }
  return status;
}

absl::Status TransferSearch::OfferThoroughly(const Schedule& compute, size_t budget) {
  const absl::StatusOr<Offered> offered = Trace(compute);
  if (!offered.ok()) return absl::InternalError(offered.status().message());
  Best* best = &bests_[budget];
  if (!MayBeat(*offered, *best)) return absl::OkStatus();
  return OfferWith(*offered, offered->traces.front(), DynProgOffload(), best);
}

bool TransferSearch::MayBeat(const Offered& offered, const Best& best) const {
  if (offered.makespan >= best.makespan) return false;
  const Bytes excess = offered.peak - best.budget;
  if (excess <= Bytes(0) || !best.found()) return true;
  // Copies take less than kMaxTotal each, or there would be nothing to beat.
  const Nanos there = CopyTime(link_.to_host, excess);
  return there < best.makespan && CopyTime(link_.to_device, excess) < best.makespan - there;
}

absl::Status TransferSearch::OfferWith(const Offered& offered, const ComputeTrace& trace,
                                       const OffloadStrategy& strategy, Best* best) {
  absl::Status status = poll_.Spend(WorkOf(offered.compute));
  if (!status.ok()) return status;
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, link_, best->budget);
  // Copies that take longer than times can say are no way.
  if (!problem.ok()) return absl::OkStatus();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, options_);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();
  // The schedule may be faster than the timeline: its copies start as soon as they can.
  return Take(WithTransfers(offered.compute, trace, *problem, plan->timeline), offered.compute,
              best);
}

absl::Status TransferSearch::Take(Schedule schedule, const Schedule& compute, Best* best) {
  const absl::StatusOr<Simulation> simulation = SimulateGraph(graph_, schedule, link_);
  if (!simulation.ok() || simulation->peak > best->budget) {
    return absl::InternalError(absl::StrCat(
        "the referee refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
  }
  // Some are tried in more memory than any budget has.
  if (improved_ && simulation->makespan < reported_ && simulation->peak <= bests_.back().budget) {
    reported_ = simulation->makespan;
    improved_(schedule);
  }
  if (simulation->makespan >= best->makespan) return absl::OkStatus();
  best->makespan = simulation->makespan;
  best->compute = compute;
  best->schedule = std::move(schedule);
  return absl::OkStatus();
}

absl::StatusOr<bool> TransferSearch::FitsIn(const Offered& offered, Bytes memory) {
  Best best;
  best.budget = memory;
  absl::Status status = OfferAt(offered, &best);
  if (!status.ok()) return status;
  return best.found();
}

absl::Status TransferSearch::NoteLeast(const Offered& offered) {
  Bytes low = offered.peak;
  for (const ComputeTrace& trace : offered.traces) {
    const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, link_, Bytes(0));
    if (problem.ok()) low = std::min(low, problem->problem.least_memory());
  }
  if (low >= least_budget_) return absl::OkStatus();
  // More only where the host has not the memory for everything.
  Bytes high = std::min(offered.peak, least_budget_);
  for (Bytes middle = low; low < high; middle = Bytes((low.value() + high.value()) / 2)) {
    const absl::StatusOr<bool> fits = FitsIn(offered, middle);
    if (!fits.ok()) return fits.status();
    (*fits ? high : low) = *fits ? middle : middle + Bytes(1);
  }
  least_budget_ = std::min(least_budget_, high);
  return absl::OkStatus();
}

void TransferSearch::Inherit(size_t budget) {
  if (budget == 0 || bests_[budget - 1].makespan >= bests_[budget].makespan) return;
  const Bytes own = bests_[budget].budget;
  bests_[budget] = bests_[budget - 1];
  bests_[budget].budget = own;
}

absl::Status TransferSearch::Retain(size_t budget, int64_t most_work) {
  Inherit(budget);
  Best* best = &bests_[budget];
  for (bool better = best->found(); better;) {
    better = false;
    std::vector<size_t> repeats = FindRepeats(graph_, best->compute);
    for (size_t k = 0; k < repeats.size();) {
      most_work -= static_cast<int64_t>(best->compute.size());
      if (most_work < 0) return absl::OkStatus();
      const Nanos before = best->makespan;
      absl::Status status = OfferChanged(WithoutRepeat(graph_, best->compute, repeats[k]), best);
      if (!status.ok()) return status;
      if (best->makespan < before) {
        better = true;
        repeats = FindRepeats(graph_, best->compute);
      } else {
        ++k;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TransferSearch::OfferChanged(const Schedule& compute, Best* best) {
  absl::Status status = poll_.Spend(WorkOf(compute));
  if (!status.ok()) return status;
  const absl::StatusOr<Offered> offered = Trace(compute);
  // What is written over in place may not be there any more.
  return offered.ok() ? OfferAt(*offered, best) : absl::OkStatus();
}

}  // namespace stowage
