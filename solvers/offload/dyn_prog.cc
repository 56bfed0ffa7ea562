#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/offload/greedy.h"
#include "solvers/offload/relaxed_optimum.h"
#include "solvers/offload/strategies.h"

namespace stowage {
namespace {

constexpr int kStepsOfReplay = 64;  // for each op

// A slot or less for each activation leaves too much to rounding.
constexpr int64_t kFewestSlots = 500;
constexpr int64_t kSlotsOfActivation = 2;

int64_t SlotsFor(const OffloadProblem& problem, const SolveOptions& options) {
  if (options.slots > 0) return options.slots;
  return std::max(kFewestSlots, kSlotsOfActivation * problem.size());
}

class DynProg final : public OffloadStrategy {
 public:
  const OffloadStrategyInfo& info() const override { return info_; }

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions& options,
                         OffloadPlan* plan) const override {
    std::optional<RelaxedOptimum> optimum;
    if (options.slots == 0) {
      absl::StatusOr<std::optional<RelaxedOptimum>> exact = ExactRelaxedOptimum(problem, options);
      if (!exact.ok()) return exact.status();
      optimum = *std::move(exact);
    }
    if (!optimum) {
      absl::StatusOr<RelaxedOptimum> slotted =
          SlottedRelaxedOptimum(problem, SlotsFor(problem, options), options);
      if (!slotted.ok()) return slotted.status();
      optimum = *std::move(slotted);
    }
    StopPoll poll(options.stop);
    return Finish(problem, *optimum, &poll, plan);
  }

 private:
  static absl::Status Finish(const OffloadProblem& problem, const RelaxedOptimum& optimum,
                             StopPoll* poll, OffloadPlan* plan) {
    plan->slots = optimum.slots;
    const bool exact = optimum.slots == 0;
    if (exact && optimum.sets.empty()) {
      plan->status = PlanStatus::kProvenInfeasible;
      plan->explanation = "no set of activations fits both the device's and the host's memory";
      return absl::OkStatus();
    }
    if (exact && !problem.link().full_duplex) {
      plan->lower_bound = std::max(plan->lower_bound, optimum.makespan);
    }
    for (const OffloadSet& set : optimum.sets) {
      absl::Status status = poll->Spend(int64_t{kStepsOfReplay} * problem.size());
      if (!status.ok()) return status;
      Offer(problem, set, plan);
    }
    plan->explanation = exact ? absl::StrCat("the best of ", optimum.sets.size(), " optimal sets")
                              : absl::StrCat("the best of ", optimum.sets.size(),
                                             " sets that are optimal in ", optimum.slots, " slots");
    if (exact) return absl::OkStatus();
    // Rounding may hide what Greedy sees.
    const bool rounded = plan->status == PlanStatus::kFound;
    Offer(problem, EagerSet(problem), plan);
    if (rounded) return absl::OkStatus();
    plan->explanation = absl::StrCat("rounding to ", optimum.slots, " slots leaves no set; ",
                                     plan->status == PlanStatus::kFound
                                         ? "the first activations, as few as needed"
                                         : "the first activations do not fit the host's memory");
    return absl::OkStatus();
  }

  const OffloadStrategyInfo info_ = {
      "offload_dynprog",
      "what is optimal when copies can be interrupted (Beaumont et al. 2020, DynProg)"};
};

}  // namespace

const OffloadStrategy& DynProgOffload() {
  static const DynProg* const kStrategy = new DynProg;
  return *kStrategy;
}

}  // namespace stowage
