// What jobs measured under a plan, and what follows from it.
//
// A job counts once per plan, with its latest report, and where callers are known the jobs of one
// identity are fewer than a quorum together once another identity has been heard; nothing follows from fewer than a quorum of jobs
// (reference_costs.h), and then from medians. So one job, whatever and however often it reports,
// changes nothing that is handed out.
//
// Pure functions, hence thread-safe. O(reports), of AddReport O(schedules of one revision number).
#ifndef STOWAGE_SERVER_ENTRIES_REPORTS_H_
#define STOWAGE_SERVER_ENTRIES_REPORTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/entries/plan_entry.h"
#include "server/observe/server_metrics.h"

namespace stowage {

inline constexpr size_t kMostReports = 32;  // of an entry; the oldest go first

struct ExecutionReport {
  PlanKey key;
  Digest plan_digest;  // ScheduleDigest
  int64_t revision = 0;
  Bytes budget;  // of the plan as it was handed out
  int64_t steps = 0;
  Nanos step_time;  // median over the steps
  Bytes peak;
  // Of the latest step; 0: not said.
  Bytes reserved_peak;  // what the allocator held for it
  Bytes offloaded;      // to host memory
  Bytes prefetched;
  std::string job;
  std::string identity;  // of the caller; empty: it is not known
  std::string tenant;
};

struct ReportJudgement {
  ReportOutcome outcome = ReportOutcome::kUnknownPlan;
  // The plan that was executed; null if it is unknown.
  std::shared_ptr<const Plan> plan;
  double time_ratio = 0;  // measured over predicted
  double peak_ratio = 0;
  // Of the latest step; 0: not said, or absurd.
  double reserved_ratio = 0;  // reserved over live peak
  double copied_bytes = 0;
  bool over_budget = false;
  bool retired = false;  // with this report, the plan was
  // Steps that the job's former report on the plan was not about: a later report replaces it.
  int64_t new_steps = 0;
  // With the report in it; nothing when it says nothing: unknown, absurd, an outlier.
  std::optional<PlanEntry> entry;
};

// - Absurd: no steps, no time, or a ratio beyond 20 either way.
// - Outlier: further than three times the median deviation from the median of the other jobs, if
//   a quorum of them has reported on the plan. Deviations below 2% are noise, and count as 2%.
// A plan whose peak was over its budget in a quorum of jobs, the median among them, is retired, unless
// it is pinned or the entry frozen.
ReportJudgement AddReport(const PlanEntry& entry, const ExecutionReport& report);

// What the reports on one plan say together.
struct Measurements {
  int jobs = 0;
  double time_ratio = 0;  // medians; 0 without reports
  double peak_ratio = 0;
  int over_budget = 0;  // jobs
  int warnings = 0;     // of these, identities where several have been heard, else jobs
  bool drifted = false;
};

// Drifted: a quorum reports, and the median step takes over 15% more or less than predicted, or the
// median peak is over 1% (what allocators round up) more; or two jobs were over the budget. Where several
// identities have been heard, two of them say so, and retire a plan.
Measurements MeasurementsOf(const PlanEntry& entry, const Plan& plan);

// Whether a fresh profile would help: no job has measured what the plans were made for; or the latest
// report left some plan that serves drifted, and no profile has been heard since (Learn). So profiles are
// asked for no oftener than jobs report, and cached answers alone change nothing. O(1) for most entries.
bool ProfileWanted(const PlanEntry& entry);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_REPORTS_H_
