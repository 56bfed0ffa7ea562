#include "solvers/schedule/text.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stowage {
namespace {

// The number that counts up or down in a run.
int RunNumber(const Instruction& i) { return i.part != 0 ? i.part : i.stage; }

// Last index of the run of like instructions that starts at `first`: same op and tensor, stages, or
// parts of one stage, one up or one down each.
size_t EndOfRun(const Schedule& schedule, size_t first) {
  size_t last = first;
  int step = 0;
  while (last + 1 < schedule.size()) {
    const Instruction& a = schedule[last];
    const Instruction& b = schedule[last + 1];
    const int next = RunNumber(b) - RunNumber(a);
    const bool counts = a.part == 0 ? b.part == 0 : b.part != 0 && a.stage == b.stage;
    const bool like = counts && a.op == b.op && a.tensor == b.tensor && a.stream == b.stream;
    if (!like || std::abs(next) != 1 || (step != 0 && next != step)) break;
    step = next;
    ++last;
  }
  return last;
}

std::string Percent(double ratio) { return absl::StrFormat("%.1f%%", 100.0 * ratio); }

double Ratio(int64_t a, int64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string Line(const char* label, const std::string& value) {
  return absl::StrFormat("  %-14s %s\n", label, value);
}

std::string BudgetText(const Plan& plan) {
  return absl::StrCat(ToString(plan.budget), " (",
                      Percent(Ratio(plan.budget.value(), plan.bounds.store_all_peak.value())),
                      " of ", ToString(plan.bounds.store_all_peak),
                      ", the peak of plain training, which stores every activation)");
}

std::string BoundText(const Plan& plan) {
  const std::string bound =
      absl::StrCat(ToString(plan.bounds.lower_bound), ": no schedule within the budget takes less");
  if (plan.gap() <= 0.0) return bound;
  return absl::StrCat(bound, "; this one takes ", Percent(plan.gap()), " more");
}

std::string LeastBudgetText(const Plan& plan) {
  const Bounds& b = plan.bounds;
  const std::string bytes =
      absl::StrCat(b.least_budget.value(), " bytes (", ToString(b.least_budget), ")");
  if (plan.status == PlanStatus::kProvenInfeasible) {
    return absl::StrCat(bytes, ", proven, for ", b.schedule_class);
  }
  return absl::StrCat(bytes, ", the least that ", plan.provenance.solver, " finds a schedule for");
}

std::string TransfersText(const Simulation& p) {
  return absl::StrCat(ToString(p.offloaded), " copied to the host, ", ToString(p.prefetched),
                      " back, at most ", ToString(p.host_peak), " there; ", ToString(p.idle_time),
                      " of waiting");
}

}  // namespace

std::string ScheduleText(const Schedule& schedule) {
  std::string text;
  for (size_t first = 0; first < schedule.size();) {
    const size_t last = EndOfRun(schedule, first);
    absl::StrAppend(&text, "    ", ToString(schedule[first]));
    if (last > first) absl::StrAppend(&text, "-", RunNumber(schedule[last]));
    text += '\n';
    first = last + 1;
  }
  return text;
}

std::string OptimalityText(const Plan& plan) {
  const Bounds& b = plan.bounds;
  if (plan.prediction.makespan <= b.lower_bound) return "no schedule within the budget is faster";
  return absl::StrCat(b.proven_optimal ? "proven the fastest of " : "not proven the fastest of ",
                      b.schedule_class);
}

std::string PlanText(const Plan& plan) {
  const Simulation& p = plan.prediction;
  const Bounds& b = plan.bounds;
  std::string text = absl::StrCat("plan: ", ToString(plan.status), "\n");
  text += Line("budget", BudgetText(plan));
  if (plan.status == PlanStatus::kFound) {
    text += Line("peak",
                 absl::StrCat(ToString(p.peak), " of activations, their gradients and workspaces"));
    const double overhead = Ratio(p.makespan.value(), b.store_all_makespan.value());
    text += Line("step",
                 absl::StrFormat("%s (%+.1f%% over the %s of plain training)", ToString(p.makespan),
                                 overhead > 0.0 ? 100.0 * (overhead - 1.0) : 0.0,
                                 ToString(b.store_all_makespan)));
    text += Line("recomputed", absl::StrCat(p.recomputed_forwards, " forwards run again, ",
                                            ToString(p.recompute_time), " of the step"));
    if (p.offloaded > Bytes(0)) text += Line("offloaded", TransfersText(p));
    if (p.communication_time > Nanos(0)) {
      text += Line("communication",
                   absl::StrCat(ToString(p.communication_time), " on a stream of its own; ",
                                ToString(p.idle_time), " of waiting"));
    }
    text += Line("lower bound", BoundText(plan));
    text += Line("optimal", OptimalityText(plan));
  } else if (plan.status == PlanStatus::kProvenInfeasible || b.least_budget > Bytes(0)) {
    text += Line("needs at least", LeastBudgetText(plan));
  }
  text += Line("solver",
               absl::StrCat(plan.provenance.solver, " ", plan.provenance.solver_version, " in ",
                            ToString(plan.provenance.solve_time), ": ", plan.explanation));
  return text;
}

}  // namespace stowage
