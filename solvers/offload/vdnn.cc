#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "solvers/offload/strategies.h"

namespace stowage {
namespace {

constexpr size_t kMostThresholds = 512;

class Vdnn final : public OffloadStrategy {
 public:
  const OffloadStrategyInfo& info() const override { return info_; }

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions& options,
                         OffloadPlan* plan) const override {
    const std::vector<int> ranked = ByRatio(problem);
    const size_t steps = std::min(ranked.size(), kMostThresholds);
    StopPoll poll(options.stop);
    for (size_t step = 1; step <= steps; ++step) {
      const size_t count = ranked.size() * step / steps;
      OffloadSet all(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count));
      std::sort(all.begin(), all.end());
      OffloadSet half;
      for (size_t i = 0; i < all.size(); i += 2) half.push_back(all[i]);
      absl::Status status = poll.Spend(1024 * int64_t{problem.size()});
      if (!status.ok()) return status;
      for (const OffloadSet& set : {all, half}) {
        if (problem.Admits(set)) Offer(problem, set, plan);
      }
      if (options.progress)
        options.progress(static_cast<double>(step) / static_cast<double>(steps));
    }
    plan->explanation = absl::StrCat("the best of ", 2 * steps, " sets by ratio of time to size");
    return absl::OkStatus();
  }

 private:
  // Activations with bytes, the longest forward for its bytes first.
  static std::vector<int> ByRatio(const OffloadProblem& problem) {
    std::vector<int> ranked;
    for (int i = 0; i < problem.size(); ++i) {
      if (problem.activation(i) > Bytes(0)) ranked.push_back(i);
    }
    const auto cross = [&problem](int time, int size) {
      return absl::int128(problem.op(time).forward_time.value()) * problem.activation(size).value();
    };
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&cross](int a, int b) { return cross(a, b) > cross(b, a); });
    return ranked;
  }

  const OffloadStrategyInfo info_ = {
      "offload_vdnn",
      "activations whose forward is long for their size, or every other one of them"};
};

}  // namespace

const OffloadStrategy& VdnnOffload() {
  static const Vdnn* const kStrategy = new Vdnn;
  return *kStrategy;
}

}  // namespace stowage
