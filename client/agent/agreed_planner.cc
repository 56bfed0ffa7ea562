#include "client/agent/agreed_planner.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/rpc/call_stop.h"
#include "client/rpc/plan_client.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

// What rank 0 says while the others wait: that all are to measure times, or the answer.
constexpr char kMeasure[] = "measure";
constexpr char kAnswer[] = "answer:";

// A step's time by the schedule under this rank's own costs; the most there is where it is none here.
int64_t MakespanOf(const Schedule& schedule, const Profile& own) {
  const auto run = Evaluator(InstanceOf(own, /*recompute_only=*/false)).Run(schedule);
  return run.ok() ? run->makespan.value() : std::numeric_limits<int64_t>::max();
}

}  // namespace

// What rank 0 asks with.
class AgreedPlanner::Source : public ProfileSource {
 public:
  Source(AgreedPlanner* planner, const Batch& batch, const Budget& own, AgreedTerms terms,
         PlannedShape* shape)
      : planner_(planner), batch_(batch), own_(own), terms_(std::move(terms)), shape_(shape) {}

  absl::StatusOr<const Profile*> Structure() override { return &terms_.profile; }

  absl::StatusOr<const Profile*> Full() override {
    if (!timed_) {
      all_failed_ = true;
      const auto said = BroadcastOrFail(planner_->agreement_, std::string(kMeasure));
      if (!said.ok()) return said.status();
      absl::StatusOr<AgreedTerms> terms = planner_->AgreeWithTimes(batch_, own_, shape_);
      if (!terms.ok()) return terms.status();
      all_failed_ = false;
      terms_ = *std::move(terms);
      timed_ = true;
    }
    return &terms_.profile;
  }

  Budget BudgetNow(const Budget& /*asked*/) override { return terms_.budget; }

  const AgreedTerms& terms() const { return terms_; }

  // An error of Full was one of all ranks: nobody waits for more.
  bool all_failed() const { return all_failed_; }

 private:
  AgreedPlanner* const planner_;
  const Batch& batch_;
  const Budget own_;
  AgreedTerms terms_;
  PlannedShape* const shape_;
  bool timed_ = false;
  bool all_failed_ = false;
};

absl::Status AgreedPlanner::Refuse(const absl::Status& error) {
  return AgreeToBegin(agreement_, error).status();
}

absl::StatusOr<AgreedTerms> AgreedPlanner::Agree(const absl::Status& measured, const Budget& budget,
                                                 const PlannedShape& shape) {
  if (!measured.ok()) return AgreeOnTerms(agreement_, measured);
  PlanOptions options;
  options.solver = options_->plan.solver;
  options.solve.slots = options_->plan.slots;
  options.recompute_only = options_->plan.recompute_only;
  return AgreeOnTerms(agreement_, OwnTerms{*shape.profile, budget}, options);
}

absl::StatusOr<AgreedTerms> AgreedPlanner::AgreeWithTimes(const Batch& batch, const Budget& budget,
                                                          PlannedShape* shape) {
  const absl::StatusOr<Beginning> of_all =
      AgreeToBegin(agreement_, Beginning{!shape->has_times(), /*off=*/false});
  if (!of_all.ok()) return of_all.status();
  const bool anew = of_all->lacks && planner_->may_communicate();
  return Agree(planner_->EnsureTimes(batch, shape, anew), budget, *shape);
}

absl::StatusOr<ClientPlan> AgreedPlanner::Lead(const Batch& batch, const Budget& budget,
                                               bool refresh, AgreedTerms* terms,
                                               PlannedShape* shape) {
  Source source(this, batch, budget, *terms, shape);
  absl::StatusOr<ClientPlan> answer = planner_->Ask(&source, terms->budget, refresh);
  *terms = source.terms();
  if (source.all_failed()) return answer.status();
  const absl::StatusOr<std::string> words =
      answer.ok() ? absl::StatusOr<std::string>(kAnswer + EncodeAnswer(*answer)) : answer.status();
  const absl::StatusOr<std::string> said = BroadcastOrFail(agreement_, words);
  if (!said.ok()) return said.status();
  return answer;
}

absl::StatusOr<ClientPlan> AgreedPlanner::Follow(const Batch& batch, const Budget& budget,
                                                 AgreedTerms* terms, PlannedShape* shape) {
  while (true) {
    const absl::StatusOr<std::string> said = BroadcastOrFail(agreement_, std::string());
    if (!said.ok()) return said.status();
    if (*said != kMeasure) {
      absl::StatusOr<ClientPlan> answer =
          DecodeAnswer(said->substr(std::min(said->size(), sizeof(kAnswer) - 1)), *terms);
      if (answer.ok()) return answer;
      // The others are about to say that they have prepared it.
      return AgreeOnDigest(agreement_, answer.status(), [](int) { return absl::OkStatus(); });
    }
    absl::StatusOr<AgreedTerms> timed = AgreeWithTimes(batch, budget, shape);
    if (!timed.ok()) return timed.status();
    *terms = *std::move(timed);
  }
}

std::string AgreedPlanner::PlanByOwnTimes(ClientPlan answer, const AgreedTerms& terms,
                                          const PlannedShape& shape) const {
  absl::StatusOr<Problem> problem = WithTimesOf(shape.profile->problem, terms.profile.problem);
  if (!problem.ok()) return "";
  Profile profile = terms.profile;
  profile.problem = *std::move(problem);
  // The others wait for it.
  const CallStop stop(CallOptions::Within(options_->plan_timeout));
  const PlanOptions options = stop.OptionsFor(options_->plan);
  const Instance instance = InstanceOf(profile, options.recompute_only);
  const auto plan = MakePlan(instance, terms.budget, options);
  // An error, too, or no time left: then there is the answer.
  if (!plan.ok() || plan->status != PlanStatus::kFound) return "";
  if (plan->schedule == answer.reply.plan.schedule) return "";
  answer.reply.plan.schedule = plan->schedule;
  return EncodeAnswer(answer);
}

// All of them say, and look at, the same.
absl::StatusOr<ClientPlan> AgreedPlanner::ForTheSlowest(ClientPlan answer, const AgreedTerms& terms,
                                                        const PlannedShape& shape) {
  const int64_t mine = MakespanOf(answer.reply.plan.schedule, *shape.profile);
  const auto longest = agreement_->Greatest({mine});
  if (!longest.ok()) return longest.status();
  const bool is_slowest = mine == longest->front();
  const auto slowest = agreement_->Greatest(
      {is_slowest ? -agreement_->rank() : std::numeric_limits<int64_t>::min()});
  if (!slowest.ok()) return slowest.status();
  const auto rank = static_cast<int>(-slowest->front());
  const auto said = BroadcastFrom(
      agreement_, rank, rank == agreement_->rank() ? PlanByOwnTimes(answer, terms, shape) : "");
  if (!said.ok()) return said.status();
  if (said->empty()) return answer;
  absl::StatusOr<ClientPlan> other = DecodeAnswer(*said, terms);
  const auto by_other =
      agreement_->Greatest({other.ok() ? MakespanOf(other->reply.plan.schedule, *shape.profile)
                                       : std::numeric_limits<int64_t>::max()});
  if (!by_other.ok()) return by_other.status();
  if (by_other->front() >= longest->front()) return answer;
  return other;
}

absl::StatusOr<PreparedPlan> AgreedPlanner::PrepareAll(const absl::StatusOr<ClientPlan>& answer,
                                                       const Batch& batch,
                                                       const PlannedShape& shape) {
  absl::StatusOr<PreparedPlan> prepared = planner_->Prepare(answer, batch, shape);
  const absl::Status same = AgreeOnDigest(
      agreement_,
      prepared.ok() ? absl::StatusOr<Digest>(prepared->adopted.digest) : prepared.status(),
      [](int) { return absl::InternalError("the ranks have different plans"); });
  if (!same.ok()) return same;
  return prepared;
}

absl::StatusOr<std::optional<PreparedPlan>> AgreedPlanner::Make(const Batch& batch,
                                                                const Budget& budget, bool refresh,
                                                                bool off, PlannedShape* shape) {
  const absl::StatusOr<Beginning> of_all =
      AgreeToBegin(agreement_, Beginning{!shape->profile, off});
  if (!of_all.ok()) return of_all.status();
  if (of_all->off) return std::nullopt;
  // Where some rank lacks what is to be measured.
  const bool anew = of_all->lacks && planner_->may_communicate();
  const absl::Status measured =
      refresh ? planner_->Profile(batch, shape) : planner_->EnsureBytes(batch, shape, anew);
  absl::StatusOr<AgreedTerms> terms = Agree(measured, budget, *shape);
  if (!terms.ok()) return terms.status();
  absl::StatusOr<ClientPlan> answer = agreement_->rank() == 0
                                          ? Lead(batch, budget, refresh, &*terms, shape)
                                          : Follow(batch, budget, &*terms, shape);
  if (!answer.ok()) return answer.status();  // of all
  if (answer->reply.source == PlanSource::kLocal &&
      answer->reply.plan.status == PlanStatus::kFound) {
    answer = ForTheSlowest(*std::move(answer), *terms, *shape);
    if (!answer.ok()) return answer.status();
  }
  absl::StatusOr<PreparedPlan> prepared = PrepareAll(answer, batch, *shape);
  if (!prepared.ok()) return prepared.status();
  return std::optional<PreparedPlan>(*std::move(prepared));
}

absl::StatusOr<std::optional<PreparedPlan>> AgreedPlanner::Plan(const Batch& batch,
                                                                const Budget& budget, bool off,
                                                                PlannedShape* shape) {
  return Make(batch, budget, /*refresh=*/false, off, shape);
}

absl::StatusOr<std::optional<PreparedPlan>> AgreedPlanner::Refresh(const Batch& batch,
                                                                   const Budget& budget, bool off,
                                                                   PlannedShape* shape) {
  return Make(batch, budget, /*refresh=*/true, off, shape);
}

}  // namespace stowage
