#include "solvers/solver.h"

#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status CheckAll(const SolverInfo& info, const Instance& instance,
                      const SolveOptions& options) {
  if (!info.Takes(instance.kind())) {
    return FieldError("options.solver", '"' + info.name + '"',
                      absl::StrCat("must be a solver of ", ToString(instance.kind()), "s"));
  }
  absl::Status status = ValidateSolveOptions(options);
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

absl::Status ValidateSolveOptions(const SolveOptions& options) {
  constexpr int64_t kMaxSlots = 1000000;
  if (options.slots < 0 || options.slots > kMaxSlots) {
    return FieldError("options.slots", options.slots,
                      absl::StrCat("must be in [0, ", kMaxSlots, "]"));
  }
  if (options.threads < 1) return FieldError("options.threads", options.threads, "must be >= 1");
  return absl::OkStatus();
}

absl::Status SolveOutOfMemoryError() {
  return absl::ResourceExhaustedError("the machine has not the memory that this solve takes");
}

absl::StatusOr<Plan> Solver::Solve(const Instance& instance, Bytes budget,
                                   const SolveOptions& options) const {
  absl::Status status = CheckAll(info(), instance, options);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  absl::StatusOr<Plan> plan = WithinMemory([&] { return DoSolve(given, budget, options); });
  if (!plan.ok()) return plan.status();
  plan->budget = budget;
  if (plan->provenance.solver.empty()) plan->provenance.solver = info().name;
  status = ValidatePlan(instance, &*plan);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("the evaluator refused a plan of ",
                                            plan->provenance.solver, ": ", status.message()));
  }
  return plan;
}

absl::StatusOr<Frontier> Solver::SolveFrontier(const Instance& instance,
                                               const SolveOptions& options) const {
  absl::Status status = CheckAll(info(), instance, options);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  return WithinMemory([&] { return DoSolveFrontier(given, options); });
}

absl::StatusOr<Bytes> Solver::LeastBudget(const Instance& instance,
                                          const SolveOptions& options) const {
  absl::Status status = CheckAll(info(), instance, options);
  if (!status.ok()) return status;
  const Instance given = Given(info(), instance);
  return WithinMemory([&] { return DoLeastBudget(given, options); });
}

}  // namespace stowage
