#include "solvers/chain/internal/persistent_frontier.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

// Work of the exact steps, for 100 stages and fewer and at most: 0.2 s and 3 s.
constexpr double kStepWork = 2.5e7;
constexpr double kMostStepWork = 4e8;
// Work of all tables of a chain, likewise: 0.2 s and 8 s, 6 s where stages repeat.
constexpr double kTableWork = 2e8;
constexpr double kMostTableWork = 8e9;
constexpr double kMostRepeatingTableWork = 6e9;
// Fewer slots are of no use, more gain nothing that would be seen.
constexpr int64_t kMinSlots = 64;
constexpr int64_t kMaxSlots = 4096;
// Of a schedule: longer ones take long to replay, and a frontier of them much memory.
constexpr int64_t kMaxPointInstructions = int64_t{1} << 21;
// Budgets of an octave that get a schedule of their own, beside the table's; on chains of more than
// kRoundingAwareStages fewer, as each takes longer.
constexpr int64_t kRoundingAwareBudgets = 64;
constexpr int64_t kFewestRoundingAwareBudgets = 8;
constexpr int64_t kRoundingAwareStages = 200;
// A table's value that is better by less than this share of the ideal time is not worth a replay.
constexpr double kWorthwhile = 1e-5;

// Budgets that share a table. All arithmetic on budgets is in whole numbers: which schedules there
// are must not depend on how a machine rounds.
struct BudgetRange {
  int64_t low, high;
};

double Scaled(double work, double most, int stages) {
  const double ratio = std::max(stages / 100.0, 1.0);
  return std::min(work * ratio * ratio * ratio, most);
}

// From the least budget to store-all's peak: octaves downwards, the lowest one cut off.
std::vector<BudgetRange> BudgetRanges(const PersistentProblem& problem) {
  const int64_t least = std::max(problem.least_budget.value(), int64_t{1});
  int64_t high = std::max(problem.store_all_peak.value(), least);
  std::vector<BudgetRange> ranges;
  for (; high / 2 > least; high /= 2) ranges.push_back({high / 2, high});
  ranges.push_back({least, high});
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

// What making a schedule or an estimate costs, in steps of a poll.
int64_t WorkOfSchedule(const PersistentProblem& problem) {
  return int64_t{10} * problem.chain().length() * problem.chain().length();
}

absl::Status AddCheapSchedules(const PersistentProblem& problem, const SolveContext& context,
                               FrontierBuilder* builder) {
  const Schedule least = MinimumMemorySchedule(problem);
  StopPoll poll(context.stop());  // making it takes long enough to look up before the replay
  absl::Status status = poll.Spend(1);
  if (status.ok()) status = builder->Add(least);
  if (status.ok()) status = poll.Spend(WorkOfSchedule(problem));
  if (!status.ok()) return status;
  // Store-all is periodic, too.
  const SolveContext quiet = context.Quiet();  // the progress that the solve reports is the tables'
  absl::StatusOr<Frontier> periodic =
      CheckpointSequentialSolver().SolveFrontier(problem.instance, quiet);
  if (!periodic.ok()) return periodic.status();
  builder->Add(*periodic);
  return absl::OkStatus();
}

// A table for budgets up to `memory` bytes.
struct TablePlan {
  int64_t unit = 1;
  int64_t slots = 0;

  static TablePlan For(int64_t memory, int64_t unit) {
    // What needs `memory` in bytes may need a little more in units.
    const int64_t margin = memory / 64;
    return {unit, (memory + margin + unit - 1) / unit};
  }
};

PersistentSpace SpaceInUnits(const PersistentProblem& problem, int64_t unit) {
  return {problem.chain(), unit, problem.repeats ? Rounding::kUp : Rounding::kNearest};
}

// As many slots as the work and the memory allow; none if that is too few.
absl::StatusOr<TablePlan> PlanTable(const PersistentProblem& problem, int64_t memory, double work,
                                    const SolveContext& context, StopPoll* poll) {
  const int64_t common = CommonUnit(problem.chain());
  const auto with_slots = [memory, common](int64_t slots) {
    return TablePlan::For(memory, std::max(common, memory / slots));
  };
  if (context.slots() > 0) return with_slots(context.slots());
  const double bytes = std::max(static_cast<double>(context.memory().value()), 1.0);
  for (int64_t slots = kMaxSlots; slots >= kMinSlots;) {
    absl::Status status = poll->Spend(WorkOfSchedule(problem));
    if (!status.ok()) return status;
    const TablePlan plan = with_slots(slots);
    const PersistentSpace space = SpaceInUnits(problem, plan.unit);
    const TableEstimate estimate = PersistentTable::Estimate(space, plan.slots);
    const double over =
        std::max(estimate.steps / work, static_cast<double>(estimate.bytes) / bytes);
    if (over <= 1.0) return plan;
    slots = static_cast<int64_t>(static_cast<double>(slots) * std::min(0.8, 0.98 / over));
  }
  return TablePlan{};
}

// The table's own schedules, at every memory where its value changes.
absl::Status AddTableSchedules(const PersistentProblem& problem, const PersistentTable& table,
                               const TablePlan& plan, const BudgetRange& range, bool lossless,
                               StopPoll* poll, FrontierBuilder* builder) {
  const double worthwhile =
      lossless ? 0.0 : kWorthwhile * static_cast<double>(problem.chain().ideal_time().value());
  const int64_t first = lossless ? 0 : (range.low - range.low / 64) / plan.unit;
  int64_t before = kInfinity;
  for (int64_t memory = first; memory <= plan.slots; ++memory) {
    const int64_t overhead = table.Overhead(memory);
    if (overhead >= before) continue;
    if (before < kInfinity && static_cast<double>(before - overhead) < worthwhile && overhead > 0)
      continue;
    before = overhead;
    absl::Status status = poll->Spend(WorkOfSchedule(problem));
    if (status.ok()) status = builder->Add(table.Backtrack(memory));
    if (!status.ok()) return status;
    if (overhead == 0) break;
  }
  return absl::OkStatus();
}

int64_t RoundingAwareBudgets(int64_t stages) {
  const int64_t afforded = kRoundingAwareBudgets * kRoundingAwareStages * kRoundingAwareStages /
                           std::max<int64_t>(stages * stages, 1);
  return std::clamp(afforded, kFewestRoundingAwareBudgets, kRoundingAwareBudgets);
}

absl::Status AddRoundingAwareSchedules(const PersistentProblem& problem,
                                       const PersistentTable& table, int64_t unit,
                                       const BudgetRange& range, StopPoll* poll,
                                       FrontierBuilder* builder) {
  const int64_t budgets = RoundingAwareBudgets(problem.chain().length());
  int64_t before = -1;
  for (int64_t i = 0; i < budgets; ++i) {
    const int64_t width = range.high - range.low;
    const int64_t bytes = range.low + width / budgets * i + width % budgets * i / budgets;
    if (bytes == before) continue;
    before = bytes;
    absl::Status status = poll->Spend(WorkOfSchedule(problem));
    if (!status.ok()) return status;
    status = builder->Add(RoundingAwareSchedule(problem.exact, problem.least, table, unit,
                                                bytes - problem.chain().activation(0).value()));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// One table's work. Tables over the limits are left out.
absl::Status AddRange(const PersistentProblem& problem, const BudgetRange& range,
                      const TablePlan& plan, bool lossless, const SolveContext& context,
                      TableSummary* summary, FrontierBuilder* builder) {
  const PersistentSpace space = SpaceInUnits(problem, plan.unit);
  absl::StatusOr<PersistentTable> table = PersistentTable::Compute(space, plan.slots, context);
  if (absl::IsResourceExhausted(table.status())) {
    summary->left_out = summary->left_out || !lossless;
    return absl::OkStatus();
  }
  if (!table.ok()) return table.status();
  summary->slots = std::max(summary->slots, plan.slots);
  summary->lossless = lossless;
  StopPoll poll(context.stop());
  absl::Status status = AddTableSchedules(problem, *table, plan, range, lossless, &poll, builder);
  if (!status.ok() || lossless) return status;
  return AddRoundingAwareSchedules(problem, *table, plan.unit, range, &poll, builder);
}

// A quarter of the intervals or more.
bool ManyRepeat(const PersistentSpace& exact) {
  const int64_t last = exact.last();
  return DistinctIntervals(FindStageRepeats(exact)) <= 3 * (last * (last + 1) / 2) / 4;
}

}  // namespace

absl::StatusOr<PersistentProblem> MakePersistentProblem(const Instance& instance,
                                                        const SolveContext& context) {
  const Chain& chain = instance.chain();
  PersistentSpace exact(chain, 1);
  absl::StatusOr<MinimumMemory> least = ComputeMinimumMemory(exact, context);
  if (!least.ok()) return least.status();
  const Bytes least_budget(LeastBudgetOf(exact, *least));
  const bool repeats = ManyRepeat(exact);
  return PersistentProblem{instance,     std::move(exact),           *std::move(least),
                           least_budget, instance.store_all()->peak, repeats};
}

Schedule MinimumMemorySchedule(const PersistentProblem& problem) {
  const MinimumMemory& least = problem.least;
  return PersistentBacktrack::Run(
      problem.exact, 0, [&least](int s, int t, int64_t) { return least.table(s, t).split; });
}

absl::Status CheckScheduleSize(const PersistentProblem& problem) {
  struct Interval {
    int s, t;
  };
  std::vector<Interval> stack = {{1, problem.exact.last()}};
  for (int64_t instructions = 0; !stack.empty();) {
    const auto [s, t] = stack.back();
    stack.pop_back();
    const int split = s == t ? 0 : problem.least.table(s, t).split;
    // Keep: a forward and a backward. Else the forwards up to the checkpoint.
    instructions += split == 0 ? 2 : split - s;
    if (instructions > kMaxPointInstructions) {
      return absl::ResourceExhaustedError(
          absl::StrCat("schedules of little memory of ", problem.chain().length(),
                       " stages have more than ", kMaxPointInstructions, " instructions"));
    }
    if (split > 0) {
      stack.push_back({s, split - 1});
      stack.push_back({split, t});
    } else if (s < t) {
      stack.push_back({s + 1, t});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PersistentSteps>> ExactSteps(const PersistentProblem& problem,
                                                          const SolveContext& context) {
  const double work = Scaled(kStepWork, kMostStepWork, problem.chain().length());
  const SolveContext quiet = context.Quiet();  // it may give up
  return PersistentSteps::Compute(
      problem.exact, problem.store_all_peak.value() - problem.chain().activation(0).value(),
      {static_cast<int64_t>(work), context.memory().value()}, quiet);
}

absl::StatusOr<TableSummary> AddSchedules(const PersistentProblem& problem, Bytes budget,
                                          const SolveContext& context, FrontierBuilder* builder) {
  absl::Status status = AddCheapSchedules(problem, context, builder);
  if (!status.ok()) return status;
  TableSummary summary;
  StopPoll poll(context.stop());
  const std::vector<BudgetRange> ranges = BudgetRanges(problem);
  const double share = 1.0 / static_cast<double>(ranges.size() + 1);
  const double work = Scaled(kTableWork, problem.repeats ? kMostRepeatingTableWork : kMostTableWork,
                             problem.chain().length());
  const BudgetRange all = {ranges.front().low, ranges.back().high};
  absl::StatusOr<TablePlan> plan = PlanTable(problem, all.high, work, context, &poll);
  if (!plan.ok()) return plan.status();
  if (plan->slots > 0 && CommonUnit(problem.chain()) % plan->unit == 0) {
    status = AddRange(problem, all, *plan, /*lossless=*/true, context.Part(0.0, share), &summary,
                      builder);
    if (!status.ok()) return status;
    if (summary.lossless) return summary;
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].low > budget.value()) break;
    plan = PlanTable(problem, ranges[i].high, work / static_cast<double>(ranges.size()), context,
                     &poll);
    if (!plan.ok()) return plan.status();
    if (plan->slots == 0) {
      summary.left_out = true;
      continue;
    }
    const double before = share * static_cast<double>(i + 1);
    status = AddRange(problem, ranges[i], *plan, /*lossless=*/false,
                      context.Part(before, before + share), &summary, builder);
    if (!status.ok()) return status;
  }
  return summary;
}

}  // namespace stowage
