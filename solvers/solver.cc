#include "solvers/solver.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/base/without_exceptions.h"
#include "solvers/model/canonical.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// What a solve plans, or why it does not: the instance, for the length of the solve.
absl::StatusOr<Instance> Checked(const SolverInfo& info, const Instance& instance,
                                 const SolveContext& context) {
  if (!info.Takes(instance.kind())) {
    return FieldError("options.solver", '"' + info.name + '"',
                      absl::StrCat("must be a solver of ", ToString(instance.kind()), "s"));
  }
  absl::Status status = context.status();
  if (status.ok()) status = context.CheckStop();
  if (status.ok()) status = instance.CheckLink();
  if (!status.ok()) return status;
  Instance remembering = instance.Remembering();
  if (!remembering.store_all().ok()) return remembering.store_all().status();
  return remembering;
}

// Replays are faster without a link.
Instance Given(const SolverInfo& info, const Instance& instance) {
  return info.copies ? instance : instance.WithLink(std::nullopt);
}

}  // namespace

SolveContext::SolveContext(SolveOptions options)
    : solve_(std::make_shared<Solve>()), slots_(options.slots), memory_(options.table_limit) {
  if (options.slots < 0 || options.slots > kSlotLimit) {
    solve_->status = FieldError("options.slots", options.slots,
                                absl::StrCat("must be in [0, ", kSlotLimit, "]"));
  } else if (options.threads < 1) {
    solve_->status = FieldError("options.threads", options.threads, "must be >= 1");
  }
  solve_->options = std::move(options);
}

absl::Status SolveContext::CheckStop() const {
  return stop() == nullptr ? absl::OkStatus() : stop()->Check();
}

const std::function<void(const Schedule&)>& SolveContext::incumbent() const {
  static const auto* const kNobody = new std::function<void(const Schedule&)>();
  return tells_ ? solve_->options.incumbent : *kNobody;
}

void SolveContext::Report(double share) const {
  const double whole = from_ + (to_ - from_) * share;
  if (!reports_ || !solve_->options.progress || whole <= solve_->reported) return;
  solve_->reported = whole;
  solve_->options.progress(whole);
}

SolveContext SolveContext::Part(double from, double to) const {
  SolveContext part = *this;
  part.from_ = from_ + (to_ - from_) * from;
  part.to_ = from_ + (to_ - from_) * to;
  return part;
}

SolveContext SolveContext::Quiet() const {
  SolveContext quiet = Silent();
  quiet.reports_ = false;
  return quiet;
}

SolveContext SolveContext::Silent() const {
  SolveContext silent = *this;
  silent.tells_ = false;
  return silent;
}

SolveContext SolveContext::WithSlots(int64_t slots) const {
  SolveContext with = *this;
  with.slots_ = slots;
  return with;
}

SolveContext SolveContext::WithMemory(Bytes memory) const {
  SolveContext with = *this;
  with.memory_ = memory;
  return with;
}

absl::StatusOr<Plan> Solver::Solve(const Instance& instance, Bytes budget,
                                   const SolveContext& context) const {
  return WithoutExceptions([&]() -> absl::StatusOr<Plan> {
    const absl::StatusOr<Instance> checked = Checked(info(), instance, context);
    if (!checked.ok()) return checked.status();
    absl::StatusOr<Plan> plan = DoSolve(Given(info(), *checked), budget, context);
    if (!plan.ok()) return plan.status();
    plan->budget = budget;
    if (plan->provenance.solver.empty()) plan->provenance.solver = info().name;
    const absl::Status status = ValidatePlan(*checked, &*plan);
    if (!status.ok()) {
      return absl::InternalError(absl::StrCat("the evaluator refused a plan of ",
                                              plan->provenance.solver, ": ", status.message()));
    }
    context.Report(1.0);
    return plan;
  });
}

absl::StatusOr<Frontier> Solver::SolveFrontier(const Instance& instance,
                                               const SolveContext& context) const {
  return WithoutExceptions([&]() -> absl::StatusOr<Frontier> {
    const absl::StatusOr<Instance> checked = Checked(info(), instance, context);
    if (!checked.ok()) return checked.status();
    absl::StatusOr<Frontier> frontier = DoSolveFrontier(Given(info(), *checked), context);
    if (frontier.ok()) context.Report(1.0);
    return frontier;
  });
}

absl::StatusOr<Bytes> Solver::LeastBudget(const Instance& instance,
                                          const SolveContext& context) const {
  return WithoutExceptions([&]() -> absl::StatusOr<Bytes> {
    const absl::StatusOr<Instance> checked = Checked(info(), instance, context);
    if (!checked.ok()) return checked.status();
    return DoLeastBudget(Given(info(), *checked), context);
  });
}

}  // namespace stowage
