// How many steps each job has reported on each plan: a later report is about the steps of the earlier
// ones, too, and only what is new counts as executed. An entry keeps few reports (reports.h); what is
// counted must not depend on whose went.
#ifndef STOWAGE_SERVER_SERVICE_COUNTED_STEPS_H_
#define STOWAGE_SERVER_SERVICE_COUNTED_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/hash/hash.h"
#include "server/store/reported_steps.h"
#include "solvers/model/canonical.h"
#include "solvers/model/units.h"

namespace stowage {

// Thread-safe. O(1) a report, and one question to the servers' own. Remembers the last `most` and up to as many
// before them, some 6 MB of the default.
class CountedSteps {
 public:
  // `shared` is what several servers know together, and outlives this object; null: there is only this one.
  explicit CountedSteps(size_t most = 32768, ReportedSteps* shared = nullptr)
      : most_(most), shared_(shared) {}

  // Of `steps` those that the job has not reported on that plan before, and of which `unknown` are new as
  // far as the entry can tell.
  int64_t Count(const ReportedPlan& plan, int64_t steps, int64_t unknown) {
    const Report report(plan.key, plan.budget, plan.revision, plan.job);
    int64_t before = 0;
    if (shared_ != nullptr) before = shared_->Raise(plan, steps).value_or(0);
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Reported* reported : {&latest_, &earlier_}) {
      const auto found = reported->find(report);
      if (found != reported->end()) before = std::max(before, found->second);
    }
    if (latest_.size() >= most_) {
      earlier_ = std::move(latest_);
      latest_.clear();
    }
    latest_[report] = std::max(before, steps);
    return std::min(unknown, std::max<int64_t>(steps - before, 0));
  }

 private:
  using Report = std::tuple<PlanKey, Bytes, int64_t, uint64_t>;
  struct Hash {
    size_t operator()(const Report& report) const {
      return absl::Hash<std::tuple<PlanKey, int64_t, int64_t, uint64_t>>()(
          {std::get<0>(report), std::get<1>(report).value(), std::get<2>(report),
           std::get<3>(report)});
    }
  };
  using Reported = std::unordered_map<Report, int64_t, Hash>;

  const size_t most_;
  ReportedSteps* const shared_;
  std::mutex mutex_;
  Reported latest_, earlier_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_COUNTED_STEPS_H_
