#include "solvers/offload/greedy.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/offload/strategies.h"

namespace stowage {
namespace {

class Greedy final : public OffloadStrategy {
 public:
  const OffloadStrategyInfo& info() const override { return info_; }

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions&,
                         OffloadPlan* plan) const override {
    const OffloadSet set = EagerSet(problem);
    Offer(problem, set, plan);
    plan->explanation = plan->status == PlanStatus::kFound
                            ? absl::StrCat("the first ", set.size(), " activations that have bytes")
                            : "the first activations that are needed do not fit the host's memory";
    return absl::OkStatus();
  }

 private:
  const OffloadStrategyInfo info_ = {
      "offload_greedy", "the first activations, as few as needed (Beaumont et al. 2020, Greedy)"};
};

}  // namespace

OffloadSet EagerSet(const OffloadProblem& problem) {
  const int n = problem.size();
  // What ops i and later need at most, all activations before them counted.
  std::vector<Bytes> most(static_cast<size_t>(n) + 1);
  for (int i = n; i-- > 0;) {
    const size_t at = static_cast<size_t>(i);
    most[at] = std::max(most[at + 1], problem.prefix(i + 2) + problem.need(i));
  }
  OffloadSet set;
  for (int i = 0; i < n; ++i) {
    const bool enough = problem.prefix(i) >= problem.excess();
    if (enough && most[static_cast<size_t>(i)] - problem.prefix(i) <= problem.memory()) break;
    if (problem.activation(i) > Bytes(0)) set.push_back(i);
  }
  return set;
}

const OffloadStrategy& GreedyOffload() {
  static const Greedy* const kStrategy = new Greedy;
  return *kStrategy;
}

}  // namespace stowage
