#include "solvers/transfer/internal/transfer_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/simulation.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage {
namespace {

constexpr Bytes kMostStatesOfDynProg{int64_t{16} << 20};

// `before`: by instruction, the one before which it is to come; itself where it stays. Those that go to
// one place keep their order. O(n log n).
Schedule WithMoved(const Schedule& schedule, const std::vector<size_t>& before) {
  std::vector<size_t> order(schedule.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&before](size_t a, size_t b) {
    if (before[a] != before[b]) return before[a] < before[b];
    return (before[a] != a) > (before[b] != b);
  });
  Schedule moved;
  moved.reserve(schedule.size());
  for (const size_t i : order) moved.push_back(schedule[i]);
  return moved;
}

// By instruction: when compute has to reach it for everything to be as it is. Copies that start on time
// end on time.
std::vector<Nanos> LatestTimes(const Schedule& schedule,
                               const std::vector<TimelinePoint>& timeline) {
  std::vector<Nanos> latest(schedule.size());
  Nanos end;
  for (const TimelinePoint& point : timeline) end = std::max(end, point.end);
  for (size_t i = schedule.size(); i-- > 0;) {
    const Op op = schedule[i].op;
    if (op == Op::kOffloadStart || op == Op::kPrefetchStart) {
      end = std::min(end, timeline[i].start);
    } else if (!IsTransfer(op)) {
      end -= timeline[i].end - timeline[i].start;
    }
    latest[i] = end;
  }
  return latest;
}

// By instruction: when compute reaches it.
std::vector<Nanos> ReachedAt(const Schedule& schedule, const std::vector<TimelinePoint>& timeline) {
  std::vector<Nanos> reached;
  Nanos now;
  for (size_t i = 0; i < schedule.size(); ++i) {
    reached.push_back(now);
    const Op op = schedule[i].op;
    const bool starts_copy = op == Op::kOffloadStart || op == Op::kPrefetchStart;
    if (!starts_copy) now = std::max(now, timeline[i].end);
  }
  return reached;
}

class Delays {
 public:
  Delays(const Schedule& schedule, const std::vector<TimelinePoint>& timeline, bool full_duplex,
         double margin)
      : schedule_(schedule),
        timeline_(timeline),
        reached_(ReachedAt(schedule, timeline)),
        full_duplex_(full_duplex),
        margin_(margin),
        last_(schedule.size()) {}

  // By instruction: the one before which it is to come; itself where it stays. Copies of a channel keep
  // their order.
  std::vector<size_t> Run() {
    std::vector<size_t> before(schedule_.size());
    for (size_t i = schedule_.size(); i-- > 0;) {
      before[i] = i;
      const Instruction& instruction = schedule_[i];
      const auto key = std::make_tuple(instruction.tensor, instruction.stage, instruction.part);
      if (instruction.op == Op::kPrefetchWait) waits_[key] = i;
      if (instruction.op == Op::kPrefetchStart) before[i] = Delay(i, waits_.at(key));
      if (instruction.op == Op::kOffloadStart && !full_duplex_) Limit(i, timeline_[i].start);
    }
    return before;
  }

 private:
  size_t Delay(size_t i, size_t wait) {
    const TimelinePoint& copy = timeline_[i];
    const auto time = static_cast<double>((copy.end - copy.start).value());
    const Nanos kept(static_cast<int64_t>(time * (1.0 + margin_)));
    const Nanos end = std::min(timeline_[wait].end, channel_free_until_);
    const Nanos start = std::max(copy.start, end - kept);
    const auto first = reached_.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = reached_.begin() + static_cast<std::ptrdiff_t>(std::min(wait, last_) + 1);
    // The last that compute reaches by then.
    const auto next = std::upper_bound(first, std::min(last, reached_.end()), start);
    const size_t place = next == first ? i : static_cast<size_t>(next - reached_.begin()) - 1;
    Limit(place, start);
    return place;
  }

  // Copies before it on the channel start no later, and end by then.
  void Limit(size_t place, Nanos start) {
    last_ = place;
    channel_free_until_ = start;
  }

  const Schedule& schedule_;
  const std::vector<TimelinePoint>& timeline_;
  const std::vector<Nanos> reached_;
  const bool full_duplex_;
  const double margin_;
  std::map<std::tuple<TensorKind, int32_t, uint16_t>, size_t> waits_;  // of prefetches met so far
  size_t last_;
  Nanos channel_free_until_{std::numeric_limits<int64_t>::max()};
};

}  // namespace

Schedule WithEarlyWaits(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                        const std::vector<size_t>& earliest, double margin) {
  const std::vector<Nanos> latest = LatestTimes(schedule, timeline);
  std::map<std::tuple<TensorKind, int32_t, uint16_t>, size_t> starts;  // of offloads met so far
  std::vector<size_t> before(schedule.size());
  for (size_t i = 0; i < schedule.size(); ++i) {
    before[i] = i;
    const Instruction& instruction = schedule[i];
    const auto key = std::make_tuple(instruction.tensor, instruction.stage, instruction.part);
    if (instruction.op == Op::kOffloadStart) starts[key] = i;
    if (instruction.op != Op::kOffloadWait) continue;
    const size_t start = starts.at(key);
    const TimelinePoint& copy = timeline[start];
    const auto time = static_cast<double>((copy.end - copy.start).value());
    const Nanos end = copy.end + Nanos(static_cast<int64_t>(time * margin));
    const auto first =
        latest.begin() + static_cast<std::ptrdiff_t>(std::max(earliest[i], start + 1));
    const auto here = latest.begin() + static_cast<std::ptrdiff_t>(i);
    if (first >= here) continue;
    before[i] = static_cast<size_t>(std::lower_bound(first, here, end) - latest.begin());
  }
  return WithMoved(schedule, before);
}

Schedule WithLatePrefetches(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                            bool full_duplex, double margin) {
  return WithMoved(schedule, Delays(schedule, timeline, full_duplex, margin).Run());
}

namespace {

using TracedTensor = ComputeTrace::Tensor;

bool MostlyLatency(const TracedTensor& tensor, const TransferModel& link) {
  double latency = 0, copies = 0;  // sums of the longest times are no times
  for (const CopyCost& cost : {link.to_host, link.to_device}) {
    latency += static_cast<double>(cost.latency.value());
    copies += static_cast<double>(CopyTime(cost, tensor.bytes).value());
  }
  return copies < 2 * latency;
}

// Ends of sequences whose tensors are read again in the opposite order: by the step of the last one's
// next read, the most bytes. Later steps have fewer bytes.
class Sequences {
 public:
  struct End {
    int64_t bytes;
    int tensor;  // -1 before the first
  };

  // The best sequence that a tensor which is read again at `step` continues.
  End Before(int step) const {
    // A sequence whose last tensor is read again at this step or later.
    const auto at = ends_.lower_bound(step);
    return at == ends_.end() ? End{0, -1} : at->second;
  }

  void Add(int step, End end) {
    if (Before(step).bytes >= end.bytes) return;
    auto at = ends_.insert_or_assign(step, end).first;
    while (at != ends_.begin() && std::prev(at)->second.bytes <= end.bytes) {
      ends_.erase(std::prev(at));
    }
  }

 private:
  std::map<int, End> ends_;
};

}  // namespace

ComputeTrace NestedTrace(ComputeTrace trace, const TransferModel& link) {
  std::vector<TracedTensor>& tensors = trace.tensors;
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&link](const TracedTensor& t) { return MostlyLatency(t, link); }),
                tensors.end());
  Sequences sequences;
  std::vector<int> before;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Sequences::End end = sequences.Before(tensors[t].next_read);
    before.push_back(end.tensor);
    sequences.Add(tensors[t].next_read,
                  {end.bytes + tensors[t].bytes.value(), static_cast<int>(t)});
  }
  std::vector<TracedTensor> nested;
  for (int t = sequences.Before(0).tensor; t >= 0; t = before[static_cast<size_t>(t)]) {
    nested.push_back(tensors[static_cast<size_t>(t)]);
  }
  std::reverse(nested.begin(), nested.end());
  tensors = std::move(nested);
  return trace;
}

namespace {

// Copies may take twice as long as they were said to, wherever there is the time.
constexpr double kMargin = 1.0;

// By instruction: of the waits for offloads, after which their tensors are not read before they leave.
std::vector<size_t> EarliestWaits(const ComputeTrace& trace, const Schedule& schedule) {
  std::vector<size_t> step_at;  // in the schedule
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsTransfer(schedule[i].op)) step_at.push_back(i);
  }
  std::map<std::pair<TensorKind, int>, int> last_read;
  for (const ComputeTrace::Tensor& tensor : trace.tensors) {
    last_read[{tensor.kind, tensor.stage}] = tensor.last_read;
  }
  std::vector<size_t> earliest(schedule.size(), 0);
  for (size_t i = 0; i < schedule.size(); ++i) {
    earliest[i] = i;
    if (schedule[i].op != Op::kOffloadWait) continue;
    const auto read = last_read.find({schedule[i].tensor, schedule[i].stage});
    if (read == last_read.end()) continue;
    earliest[i] = read->second < 0 ? 0 : step_at[static_cast<size_t>(read->second)] + 1;
  }
  return earliest;
}

}  // namespace

Schedule JustInTimeSchedule(const Instance& instance, const Schedule& compute, Schedule schedule) {
  const Evaluator evaluator(instance);
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> before = evaluator.Run(schedule, &timeline);
  const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute);
  if (!before.ok() || !trace.ok()) return schedule;
  const auto take = [&](Schedule changed) {
    std::vector<TimelinePoint> changed_timeline;
    const absl::StatusOr<Simulation> after = evaluator.Run(changed, &changed_timeline);
    const bool no_worse =
        after.ok() && after->makespan <= before->makespan && after->peak <= before->peak;
    if (!no_worse) return;
    schedule = std::move(changed);
    timeline = std::move(changed_timeline);
  };
  take(WithEarlyWaits(schedule, timeline, EarliestWaits(*trace, schedule), kMargin));
  take(WithLatePrefetches(schedule, timeline, instance.link()->full_duplex, kMargin));
  return schedule;
}

namespace {

// To trace, to choose tensors and to replay, for each instruction; about.
constexpr int64_t kWorkPerInstruction = 128;

int64_t WorkOf(const Schedule& schedule) {
  return kWorkPerInstruction * static_cast<int64_t>(schedule.size());
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
  if (compute[repeat].op == Op::kForwardSave) changed[before].op = Op::kForwardSave;
  changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(repeat));
  return WithDiscards(graph, changed);
}

// Vertices that make the tensor together, in program order: what writes it in place does so after its owner.
std::vector<int> MakersOf(const Graph& graph, const TracedTensor& tensor) {
  const int owner = tensor.stage - 1;
  if (tensor.kind == TensorKind::kSaved) return {owner};
  std::vector<int> makers;
  for (int p = owner; p < graph.size(); ++p) {
    if (graph.storage(p) == owner && graph.vertex(p).alias != AliasKind::kView) makers.push_back(p);
  }
  return makers;
}

// What is made again right before it is read after the boundary.
Schedule WithRepeat(const Graph& graph, const Schedule& compute, const TracedTensor& tensor) {
  Schedule changed = compute;
  std::vector<Instruction> forwards;
  for (const int p : MakersOf(graph, tensor)) forwards.push_back(ForwardSave(p + 1));
  changed.insert(changed.begin() + tensor.next_read, forwards.begin(), forwards.end());
  return WithDiscards(graph, changed);
}

}  // namespace

TransferSearch::TransferSearch(const Instance& instance, const std::vector<Bytes>& budgets,
                               const SolveContext& context)
    : evaluator_(instance), context_(context.Quiet()), poll_(context.stop()) {
  for (const Bytes budget : budgets) {
    bests_.emplace_back();
    bests_.back().budget = budget;
  }
}

absl::StatusOr<TransferSearch::Offered> TransferSearch::Trace(const Schedule& compute) const {
  absl::StatusOr<ComputeTrace> trace = TraceOf(evaluator_.instance(), compute);
  if (!trace.ok()) return trace.status();
  Offered offered = {compute, {}, Nanos(0), Bytes(0)};
  for (const ComputeTrace::Step& step : trace->steps) {
    offered.makespan += step.time;
    offered.peak = std::max(offered.peak, step.need);
  }
  offered.traces.push_back(*std::move(trace));
  ComputeTrace nested = NestedTrace(offered.traces.front(), link());
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
    Report(best);
  }
  return status.ok() ? NoteLeast(*offered) : status;
}

absl::Status TransferSearch::OfferAt(const Offered& offered, Best* best) {
  absl::Status status;
  for (const ComputeTrace& trace : offered.traces) {
    if (status.ok() && MayBeat(offered, *best))
      status = OfferWith(offered, trace, GreedyOffload(), context_, best);
  }
  return status;
}

absl::Status TransferSearch::OfferThoroughly(const Schedule& compute, size_t budget) {
  const absl::StatusOr<Offered> offered = Trace(compute);
  if (!offered.ok()) return absl::InternalError(offered.status().message());
  Best* best = &bests_[budget];
  if (!MayBeat(*offered, *best)) return absl::OkStatus();
  // Its time grows with the square of the states that it may keep. There are many budgets to search at.
  const SolveContext bounded =
      context_.WithMemory(std::min(context_.memory(), kMostStatesOfDynProg));
  absl::Status status =
      OfferWith(*offered, offered->traces.front(), DynProgOffload(), bounded, best);
  Report(*best);
  return status;
}

void TransferSearch::Report(const Best& best) {
  if (all_ != nullptr && best.found()) all_->Offer(best.schedule, best.budget, best.makespan);
}

bool TransferSearch::MayBeat(const Offered& offered, const Best& best) const {
  if (offered.makespan >= best.makespan) return false;
  const Bytes overflow = offered.peak - best.budget;
  if (overflow <= Bytes(0) || !best.found()) return true;
  // Copies take less than kMaxTotal each, or there would be nothing to beat.
  const Nanos there = CopyTime(link().to_host, overflow);
  return there < best.makespan && CopyTime(link().to_device, overflow) < best.makespan - there;
}

absl::Status TransferSearch::OfferWith(const Offered& offered, const ComputeTrace& trace,
                                       const OffloadStrategy& strategy, const SolveContext& context,
                                       Best* best) {
  absl::Status status = poll_.Spend(WorkOf(offered.compute));
  if (!status.ok()) return status;
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, link(), best->budget);
  // Copies that take longer than times can say are no way.
  if (!problem.ok()) return absl::OkStatus();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, context);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();
  // The schedule may be faster than the timeline: its copies start as soon as they can.
  return Take(WithTransfers(offered.compute, trace, *problem, plan->timeline), offered.compute,
              best);
}

absl::Status TransferSearch::Take(Schedule schedule, const Schedule& compute, Best* best) {
  const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
  if (!simulation.ok() || simulation->peak > best->budget) {
    return absl::InternalError(absl::StrCat(
        "the evaluator refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
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
    const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, link(), Bytes(0));
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
    std::vector<size_t> repeats = FindRepeats(graph(), best->compute);
    for (size_t k = 0; k < repeats.size();) {
      most_work -= static_cast<int64_t>(best->compute.size());
      if (most_work < 0) return absl::OkStatus();
      const Nanos before = best->makespan;
      absl::Status status = OfferChanged(WithoutRepeat(graph(), best->compute, repeats[k]), best);
      if (!status.ok()) return status;
      if (best->makespan < before) {
        better = true;
        repeats = FindRepeats(graph(), best->compute);
      } else {
        ++k;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ComputeTrace::Tensor>> TransferSearch::FindOffloaded(
    const Best& best) const {
  absl::StatusOr<ComputeTrace> trace = TraceOf(evaluator_.instance(), best.compute);
  if (!trace.ok()) return trace.status();
  std::set<std::pair<TensorKind, int>> offloaded;
  for (const Instruction& i : best.schedule) {
    if (i.op == Op::kOffloadStart) offloaded.emplace(i.tensor, i.stage);
  }
  struct Choice {
    double rate;
    TracedTensor tensor;
  };
  std::vector<Choice> choices;
  for (const TracedTensor& tensor : trace->tensors) {
    if (offloaded.count({tensor.kind, tensor.stage}) == 0) continue;
    Nanos time;
    bool recomputable = true;
    for (const int p : MakersOf(graph(), tensor)) {
      time += graph().vertex(p).forward_time;
      recomputable = recomputable && Recomputable(graph().vertex(p));
    }
    if (!recomputable) continue;
    choices.push_back(
        {static_cast<double>(time.value()) / static_cast<double>(tensor.bytes.value()), tensor});
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.rate < b.rate; });
  std::vector<TracedTensor> tensors;
  for (Choice& choice : choices) tensors.push_back(std::move(choice.tensor));
  return tensors;
}

absl::Status TransferSearch::Repeat(size_t budget, int64_t most_work) {
  Inherit(budget);
  Best* best = &bests_[budget];
  for (bool better = best->found(); better;) {
    better = false;
    const absl::StatusOr<std::vector<TracedTensor>> offloaded = FindOffloaded(*best);
    if (!offloaded.ok()) return absl::InternalError(offloaded.status().message());
    for (const TracedTensor& tensor : *offloaded) {
      most_work -= static_cast<int64_t>(best->compute.size());
      if (most_work < 0) return absl::OkStatus();
      const Nanos before = best->makespan;
      absl::Status status = OfferChanged(WithRepeat(graph(), best->compute, tensor), best);
      if (!status.ok()) return status;
      better = best->makespan < before;
      if (better) break;
    }
  }
  return absl::OkStatus();
}

absl::Status TransferSearch::OfferChanged(const Schedule& compute, Best* best) {
  absl::Status status = poll_.Spend(WorkOf(compute));
  if (!status.ok()) return status;
  const absl::StatusOr<Offered> offered = Trace(compute);
  // What is written over in place may not be there any more.
  absl::Status answer = offered.ok() ? OfferAt(*offered, best) : absl::OkStatus();
  Report(*best);
  return answer;
}

}  // namespace stowage
