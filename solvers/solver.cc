#include "solvers/solver.h"

#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status CheckAll(const SolverInfo& info, const Instance& instance,
                      const SolveContext& context) {
  if (!info.Takes(instance.kind())) {
    return FieldError("options.solver", '"' + info.name + '"',
                      absl::StrCat("must be a solver of ", ToString(instance.kind()), "s"));
  }
  absl::Status status = context.status();
  if (status.ok()) status = context.CheckStop();
  if (status.ok()) status = instance.CheckLink();
  if (status.ok()) status = instance.store_all().status();
  return status;
}

// Replays are faster without a link.
Instance Given(const SolverInfo& info, const Instance& instance) {
  return info.copies ? instance : instance.WithLink(std::nullopt);
}

// Calls `solve`; memory that cannot be had is an answer, too.
template <class Solve>
auto WithinMemory(const Solve& solve) -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return SolveOutOfMemoryError();
  }
}

}  // namespace

void StopToken::ExtendDeadline(Clock::time_point deadline) {
  const Clock::rep later = deadline.time_since_epoch().count();
  Clock::rep now = deadline_.load(std::memory_order_relaxed);
  while (now < later && !deadline_.compare_exchange_weak(now, later, std::memory_order_relaxed)) {
  }
}

absl::Status StopToken::Check() const {
  if (stop_requested()) return absl::CancelledError("the solve was cancelled");
  if (deadline_passed()) return absl::DeadlineExceededError("the solve reached its deadline");
  return absl::OkStatus();
}

SolveContext::SolveContext(SolveOptions options)
    : solve_(std::make_shared<Solve>()), slots_(options.slots), memory_(options.table_limit) {
  constexpr int64_t kMaxSlots = 1000000;
  if (options.slots < 0 || options.slots > kMaxSlots) {
    solve_->status =
        FieldError("options.slots", options.slots, absl::StrCat("must be in [0, ", kMaxSlots, "]"));
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

absl::Status SolveOutOfMemoryError() {
  return absl::ResourceExhaustedError("the machine has not the memory that this solve takes");
}

absl::StatusOr<Plan> Solver::Solve(const Instance& instance, Bytes budget,
                                   const SolveContext& context) const {
  absl::Status status = CheckAll(info(), instance, context);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  absl::StatusOr<Plan> plan = WithinMemory([&] { return DoSolve(given, budget, context); });
  if (!plan.ok()) return plan.status();
  plan->budget = budget;
  if (plan->provenance.solver.empty()) plan->provenance.solver = info().name;
  status = ValidatePlan(instance, &*plan);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("the evaluator refused a plan of ",
                                            plan->provenance.solver, ": ", status.message()));
  }
  context.Report(1.0);
  return plan;
}

absl::StatusOr<Frontier> Solver::SolveFrontier(const Instance& instance,
                                               const SolveContext& context) const {
  absl::Status status = CheckAll(info(), instance, context);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  absl::StatusOr<Frontier> frontier = WithinMemory([&] { return DoSolveFrontier(given, context); });
  if (frontier.ok()) context.Report(1.0);
  return frontier;
}

absl::StatusOr<Bytes> Solver::LeastBudget(const Instance& instance,
                                          const SolveContext& context) const {
  absl::Status status = CheckAll(info(), instance, context);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  return WithinMemory([&] { return DoLeastBudget(given, context); });
}

}  // namespace stowage
