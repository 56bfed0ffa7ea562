#include "client/cli/batch_fitting.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client/cli/cells.h"
#include "solvers/schedule/simulation.h"

namespace stowage {
namespace {

// Plain training as a plan, which is no plan where it does not fit.
Plan PlainPlan(const Simulation& plain, Bytes budget) {
  Plan plan;
  plan.budget = budget;
  plan.status = plain.peak <= budget ? PlanStatus::kFound : PlanStatus::kNotFound;
  plan.prediction = plain;
  return plan;
}

// Remembers what became of every batch that it was asked for.
class Fitter final : public BatchSource {
 public:
  Fitter(const BatchSource& source, Bytes budget, const KnownPlan& known, const SolveProfile& solve)
      : source_(source), budget_(budget), known_(known), solve_(solve) {}

  absl::StatusOr<BatchFitting> Fit(int64_t max_batch, int64_t asked) {
    const auto plain = FitBatch(*this, max_batch, [this](const Profile& p) { return Plain(p); });
    if (!plain.ok()) return plain.status();
    const auto planned = FitBatch(*this, max_batch, [this](const Profile& p) { return Best(p); });
    if (!planned.ok()) return planned.status();
    for (const BatchPoint& point : plain->points) Look(point.batch_size).IgnoreError();
    if (absl::Status status = asked > 0 ? Look(asked) : absl::OkStatus(); !status.ok()) {
      return status;
    }
    BatchFitting fitting;
    fitting.largest_plain = plain->largest;
    fitting.largest = planned->largest;
    for (const auto& [batch, fitted] : fitted_) {
      fitting.batches.push_back(fitted);
      if (fitted.samples_per_second <= fitting.samples_per_second) continue;
      fitting.fastest = batch;
      fitting.samples_per_second = fitted.samples_per_second;
    }
    return fitting;
  }

  absl::StatusOr<Profile> At(int64_t batch_size) const override {
    batch_ = batch_size;
    return source_.At(batch_size);
  }
  bool Within(int64_t batch_size) const override { return source_.Within(batch_size); }
  bool timeless() const override { return source_.timeless(); }
  std::vector<int64_t> Suggested() const override { return source_.Suggested(); }

 private:
  absl::StatusOr<Plan> Plain(const Profile& profile) const {
    const absl::StatusOr<Simulation> plain = Instance(profile.problem).store_all();
    if (!plain.ok()) return plain.status();
    return PlainPlan(*plain, budget_);
  }

  // Of the profile that At gave last.
  absl::StatusOr<Plan> Best(const Profile& profile) {
    FittedBatch fitted;
    fitted.batch = batch_;
    fitted.within_profiles = Within(batch_);
    absl::StatusOr<Plan> plan = Plain(profile);
    if (!plan.ok()) return plan;
    fitted.plain_peak = plan->prediction.peak;
    fitted.plain_makespan = plan->prediction.makespan;
    FittedBy by = FittedBy::kPlain;
    if (plan->status != PlanStatus::kFound) {
      absl::StatusOr<std::optional<Plan>> known = known_(profile);
      if (!known.ok()) return known.status();
      by = *known ? FittedBy::kCatalogue : FittedBy::kSolver;
      plan = *known ? **std::move(known) : solve_(profile);
    }
    if (plan.ok()) fitted_[batch_] = With(*plan, by, fitted);
    return plan;
  }

  FittedBatch With(const Plan& plan, FittedBy by, FittedBatch fitted) const {
    if (plan.status != PlanStatus::kFound) return fitted;
    fitted.by = by;
    fitted.peak = plan.prediction.peak;
    fitted.makespan = plan.prediction.makespan;
    if (timeless() || fitted.makespan == Nanos(0)) return fitted;
    fitted.samples_per_second =
        static_cast<double>(fitted.batch) * 1e9 / static_cast<double>(fitted.makespan.value());
    return fitted;
  }

  absl::Status Look(int64_t batch) {
    if (fitted_.count(batch) > 0) return absl::OkStatus();
    const absl::StatusOr<Profile> profile = At(batch);
    return profile.ok() ? Best(*profile).status() : profile.status();
  }

  const BatchSource& source_;
  const Bytes budget_;
  const KnownPlan& known_;
  const SolveProfile& solve_;
  mutable int64_t batch_ = 0;  // that At was asked for last
  std::map<int64_t, FittedBatch> fitted_;
};

}  // namespace

double FittedBatch::overhead() const {
  return makespan == Nanos(0) ? 0 : Overhead(makespan, plain_makespan);
}

absl::StatusOr<BatchFitting> FitBatches(const BatchSource& source, Bytes budget, int64_t max_batch,
                                        int64_t asked, const KnownPlan& known,
                                        const SolveProfile& solve) {
  return Fitter(source, budget, known, solve).Fit(max_batch, asked);
}

std::vector<FittedBatch> WorthShowing(const BatchFitting& fitting, int64_t asked) {
  std::vector<FittedBatch> shown;
  const auto next = [](int64_t batch) { return batch + 1; };
  for (const FittedBatch& one : fitting.batches) {
    const int64_t b = one.batch;
    const bool power = (b & (b - 1)) == 0;
    if (power || b == fitting.largest_plain || b == next(fitting.largest_plain) ||
        b == fitting.largest || b == next(fitting.largest) || b == fitting.fastest || b == asked) {
      shown.push_back(one);
    }
  }
  return shown;
}

}  // namespace stowage
