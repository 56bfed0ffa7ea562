#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/segments.h"
#include "solvers/chain/solvers.h"

namespace stowage {
namespace {

int MaxSegments(const Chain& chain) {
  const int sqrt_bound = static_cast<int>(2.0 * std::sqrt(static_cast<double>(chain.length())));
  return std::min(chain.length(), std::max(64, sqrt_bound));
}

// Whether the stages that k segments would recompute may all be.
bool Allowed(const Chain& chain, int k) {
  const SegmentEnds ends = SequentialSegments(chain, k);
  for (int l = 1; !ends.empty() && l <= ends.back(); ++l) {
    if (!chain.stage(l).recomputable()) return false;
  }
  return true;
}

struct Candidate {
  int segments = 0;
  Simulation simulation;
};

// Faster; else less recomputed, where that takes no time; else of a lower peak.
bool Better(const Simulation& a, const Simulation& b) {
  return std::tie(a.makespan, a.recomputed_forwards, a.peak) <
         std::tie(b.makespan, b.recomputed_forwards, b.peak);
}

class CheckpointSequential final : public ChainSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
    if (!all.ok()) return all.status();
    const Candidate* best = nullptr;
    for (const Candidate& c : *all) {
      if (c.simulation.peak > budget) continue;
      if (best == nullptr || Better(c.simulation, best->simulation)) best = &c;
    }
    Plan plan;
    plan.bounds.schedule_class = ClassFor(chain);
    plan.bounds.least_budget = LeastPeak(*all);
    if (best == nullptr) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("the least peak of any segment count is ",
                                      plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    plan.status = PlanStatus::kFound;
    plan.schedule = SequentialSchedule(chain, best->segments);
    plan.bounds.proven_optimal = true;
    plan.explanation = absl::StrCat(best->segments, " segments");
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
    if (!all.ok()) return all.status();
    FrontierBuilder builder(chain);
    for (const Candidate& c : *all) {
      absl::Status status = builder.Add(SequentialSchedule(chain, c.segments));
      if (!status.ok()) return status;
    }
    return builder.Build({info_.name, ClassFor(chain), LeastPeak(*all), /*exact=*/true,
                          /*slots=*/0});
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
    if (!all.ok()) return all.status();
    return LeastPeak(*all);
  }

 private:
  std::string ClassFor(const Chain& chain) const {
    return absl::StrCat(info_.schedule_class, ", 1 to ", MaxSegments(chain), " segments");
  }

  // One segment, which is store-all, is always among them.
  static absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                           const SolveOptions& options) {
    std::vector<Candidate> candidates;
    const int max_segments = MaxSegments(chain);
    for (int k = 1; k <= max_segments; ++k) {
      if (options.stop != nullptr) {
        absl::Status status = options.stop->Check();
        if (!status.ok()) return status;
      }
      if (!Allowed(chain, k)) continue;
      absl::StatusOr<Simulation> simulation = Simulate(chain, SequentialSchedule(chain, k));
      if (!simulation.ok()) return simulation.status();
      candidates.push_back({k, *simulation});
      if (options.progress) options.progress(static_cast<double>(k) / max_segments);
    }
    return candidates;
  }

  static Bytes LeastPeak(const std::vector<Candidate>& candidates) {
    Bytes least = candidates.front().simulation.peak;
    for (const Candidate& c : candidates) least = std::min(least, c.simulation.peak);
    return least;
  }

  const SolverInfo info_ = {"checkpoint_sequential",
                            "equal segments that keep only their input, the last one kept whole",
                            "periodic schedules"};
};

}  // namespace

const ChainSolver& CheckpointSequentialSolver() {
  static const CheckpointSequential* const kSolver = new CheckpointSequential;
  return *kSolver;
}

}  // namespace stowage
