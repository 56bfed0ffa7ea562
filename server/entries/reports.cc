#include "server/entries/reports.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "server/entries/median.h"
#include "server/entries/reference_costs.h"
#include "server/entries/revisions.h"

namespace stowage {
namespace {

constexpr double kAbsurd = 20;
constexpr int64_t kMostSteps = 100'000'000;
constexpr double kOutlierDeviations = 3;
constexpr double kNoise = 0.02;
constexpr double kTimeDrift = 0.15;
constexpr double kPeakDrift = 0.01;
constexpr int kWarned = 2;  // voices over the budget
constexpr int kAgreed = 2;  // voices that say what most jobs do

bool IsFar(double value, const std::vector<double>& others) {
  const double median = LowerMedian(others);
  std::vector<double> deviations;
  for (const double other : others) deviations.push_back(std::abs(other - median));
  const double spread = std::max(LowerMedian(std::move(deviations)), kNoise * median);
  return std::abs(value - median) > kOutlierDeviations * spread;
}

bool IsOf(const ReportSample& sample, const Plan& plan) {
  return sample.budget == plan.budget && sample.revision == plan.revision;
}

std::vector<ReportSample> ReportsOn(const PlanEntry& entry, const Plan& plan) {
  std::vector<ReportSample> reports;
  for (const ReportSample& sample : entry.reports) {
    if (IsOf(sample, plan)) reports.push_back(sample);
  }
  return reports;
}

template <class Member>
std::vector<double> All(const std::vector<ReportSample>& reports, Member member) {
  std::vector<double> values;
  for (const ReportSample& report : reports) values.push_back(report.*member);
  return values;
}

bool IsOutlier(const ReportSample& sample, std::vector<ReportSample> others) {
  others.erase(std::remove_if(others.begin(), others.end(),
                              [&](const ReportSample& other) { return other.job == sample.job; }),
               others.end());
  if (others.size() < kQuorum) return false;
  return IsFar(sample.time_ratio, All(others, &ReportSample::time_ratio)) ||
         IsFar(sample.peak_ratio, All(others, &ReportSample::peak_ratio));
}

// It was handed out for a budget of the caller's, which may be smaller than its own.
StoredPlan* Executed(const ExecutionReport& report, PlanEntry* entry) {
  for (StoredPlan& stored : entry->plans) {
    const Plan& plan = *stored.plan;
    if (plan.status == PlanStatus::kFound && plan.revision == report.revision &&
        plan.prediction.peak <= report.budget &&
        ScheduleDigest(plan.schedule) == report.plan_digest) {
      return &stored;
    }
  }
  return nullptr;
}

double Ratio(int64_t measured, int64_t predicted) {
  return static_cast<double>(measured) / static_cast<double>(std::max<int64_t>(predicted, 1));
}

bool IsAbsurd(double ratio) { return !(ratio >= 1 / kAbsurd && ratio <= kAbsurd); }

bool IsAbsurd(const ExecutionReport& report, const ReportJudgement& judgement) {
  return report.steps <= 0 || report.steps > kMostSteps || report.step_time <= Nanos(0) ||
         IsAbsurd(judgement.time_ratio) || IsAbsurd(judgement.peak_ratio);
}

// What the other figures do not depend on.
void AddLatestStep(const ExecutionReport& report, const Plan& plan, ReportJudgement* judgement) {
  const double reserved = Ratio(report.reserved_peak.value(), report.peak.value());
  if (!IsAbsurd(reserved)) judgement->reserved_ratio = reserved;
  const auto sum = [](Bytes offloaded, Bytes prefetched) {
    return static_cast<double>(offloaded.value()) + static_cast<double>(prefetched.value());
  };
  const double copied = sum(report.offloaded, report.prefetched);
  const double planned = sum(plan.prediction.offloaded, plan.prediction.prefetched);
  if (copied <= kAbsurd * planned) judgement->copied_bytes = copied;
}

// In the place of the job's former report on the plan, which it returns, if there is one.
std::optional<ReportSample> Insert(const ReportSample& sample, PlanEntry* entry) {
  std::vector<ReportSample>* const reports = &entry->reports;
  const auto same = [&sample](const ReportSample& other) {
    return other.job == sample.job && other.budget == sample.budget &&
           other.revision == sample.revision;
  };
  std::optional<ReportSample> former;
  const auto found = std::find_if(reports->begin(), reports->end(), same);
  if (found != reports->end()) {
    former = *found;
    reports->erase(found);
  }
  reports->push_back(sample);
  BoundVoices(
      VoicesOf(*entry, sample.identity),
      [](const ReportSample& of) { return std::make_tuple(of.identity, of.budget, of.revision); },
      reports);
  if (reports->size() > kMostReports) reports->erase(reports->begin());
  return former;
}

bool IsOverBudget(const ReportSample& sample, const Plan& plan) {
  return sample.peak_ratio * static_cast<double>(plan.prediction.peak.value()) >
         static_cast<double>(plan.budget.value());
}

// What each voice reports: an identity is one where another has been heard, else each job is.
std::map<uint64_t, std::vector<ReportSample>> ByVoice(const PlanEntry& entry,
                                                      const std::vector<ReportSample>& reports) {
  std::map<uint64_t, std::vector<ReportSample>> voices;
  for (const ReportSample& report : reports) {
    const bool one_of_many = report.identity != 0 && HasHeardOthers(entry, report.identity);
    voices[one_of_many ? report.identity : report.job].push_back(report);
  }
  return voices;
}

bool IsMoved(double time_ratio, double peak_ratio) {
  return std::abs(time_ratio - 1) > kTimeDrift || peak_ratio > 1 + kPeakDrift;
}

bool IsMoved(const std::vector<ReportSample>& reports) {
  return IsMoved(LowerMedian(All(reports, &ReportSample::time_ratio)),
                 LowerMedian(All(reports, &ReportSample::peak_ratio)));
}

// Whether some plan that serves has drifted.
bool HasDrifted(const PlanEntry& entry) {
  if (entry.reports.size() < kWarned) return false;
  return std::any_of(entry.plans.begin(), entry.plans.end(), [&entry](const StoredPlan& stored) {
    return ServingRevision(entry, stored.plan->budget) == &stored &&
           MeasurementsOf(entry, *stored.plan).drifted;
  });
}

bool ShouldRetire(const PlanEntry& entry, const StoredPlan& stored) {
  if (stored.pinned || entry.frozen) return false;
  const Measurements measured = MeasurementsOf(entry, *stored.plan);
  return measured.over_budget >= static_cast<int>(kQuorum) && measured.warnings >= kWarned &&
         2 * measured.over_budget > measured.jobs;
}

}  // namespace

ReportJudgement AddReport(const PlanEntry& entry, const ExecutionReport& report) {
  ReportJudgement judgement;
  PlanEntry changed = entry;
  StoredPlan* executed = Executed(report, &changed);
  if (executed == nullptr) return judgement;
  const Plan& plan = *executed->plan;
  judgement.plan = executed->plan;
  judgement.time_ratio = Ratio(report.step_time.value(), plan.prediction.makespan.value());
  judgement.peak_ratio = Ratio(report.peak.value(), plan.prediction.peak.value());
  judgement.outcome = ReportOutcome::kAbsurd;
  if (IsAbsurd(report, judgement)) return judgement;
  AddLatestStep(report, plan, &judgement);

  ReportSample sample;
  sample.job = JobHash(report.job, report.identity);
  sample.identity = IdentityHash(report.identity);
  sample.budget = plan.budget;
  sample.revision = plan.revision;
  sample.time_ratio = judgement.time_ratio;
  sample.peak_ratio = judgement.peak_ratio;
  sample.steps = report.steps;
  judgement.outcome = ReportOutcome::kOutlier;
  if (IsOutlier(sample, ReportsOn(entry, plan))) return judgement;
  judgement.over_budget = report.peak > report.budget;
  const std::optional<ReportSample> former = Insert(sample, &changed);
  judgement.outcome = former ? ReportOutcome::kRepeated : ReportOutcome::kAccepted;
  judgement.new_steps = std::max<int64_t>(report.steps - (former ? former->steps : 0), 0);
  if (executed->state != RevisionState::kRetired && ShouldRetire(changed, *executed)) {
    executed->state = RevisionState::kRetired;
    judgement.retired = true;
  }
  changed.profile_wanted = HasDrifted(changed);
  judgement.entry = std::move(changed);
  return judgement;
}

Measurements MeasurementsOf(const PlanEntry& entry, const Plan& plan) {
  Measurements measured;
  const std::vector<ReportSample> reports = ReportsOn(entry, plan);
  if (reports.empty()) return measured;
  measured.jobs = static_cast<int>(reports.size());
  measured.time_ratio = LowerMedian(All(reports, &ReportSample::time_ratio));
  measured.peak_ratio = LowerMedian(All(reports, &ReportSample::peak_ratio));
  int moved = 0;
  for (const auto& [voice, said] : ByVoice(entry, reports)) {
    const auto over = std::count_if(said.begin(), said.end(), [&plan](const ReportSample& report) {
      return IsOverBudget(report, plan);
    });
    measured.over_budget += static_cast<int>(over);
    if (over > 0) ++measured.warnings;
    if (IsMoved(said)) ++moved;
  }
  const bool all_moved = IsMoved(measured.time_ratio, measured.peak_ratio);
  measured.drifted =
      measured.warnings >= kWarned || (reports.size() >= kQuorum && all_moved && moved >= kAgreed);
  return measured;
}

bool ProfileWanted(const PlanEntry& entry) {
  if (entry.frozen) return false;
  return entry.samples.empty() || (entry.profile_wanted && HasDrifted(entry));
}

}  // namespace stowage
