#include "client/agent/agreed_planner.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/rpc/plan_client.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

// What rank 0 says while the others wait: that all are to measure times, or the answer.
constexpr char kMeasure[] = "measure";
constexpr char kAnswer[] = "answer:";

}  // namespace

// What rank 0 asks with.
class AgreedPlanner::Source : public ProfileSource {
 public:
  Source(AgreedPlanner* planner, const Batch& batch, AgreedTerms terms, PlannedShape* shape)
      : planner_(planner), batch_(batch), terms_(std::move(terms)), shape_(shape) {}

  absl::StatusOr<const Profile*> Structure() override { return &terms_.profile; }

  absl::StatusOr<const Profile*> Full() override {
    if (!timed_) {
      all_failed_ = true;
      const auto said = BroadcastOrFail(planner_->agreement_, std::string(kMeasure));
      if (!said.ok()) return said.status();
      absl::StatusOr<AgreedTerms> terms = planner_->AgreeWithTimes(batch_, terms_.budget, shape_);
      if (!terms.ok()) return terms.status();
      all_failed_ = false;
      terms_ = *std::move(terms);
      timed_ = true;
    }
    return &terms_.profile;
  }

  // An error of Full was one of all ranks: nobody waits for more.
  bool all_failed() const { return all_failed_; }

 private:
  AgreedPlanner* const planner_;
  const Batch& batch_;
  AgreedTerms terms_;
  PlannedShape* const shape_;
  bool timed_ = false;
  bool all_failed_ = false;
};

absl::StatusOr<AgreedTerms> AgreedPlanner::Agree(const absl::Status& measured, const Budget& budget,
                                                 const PlannedShape& shape) {
  if (!measured.ok()) return AgreeOnTerms(agreement_, measured);
  PlanOptions options;
  options.solver = options_->plan.solver;
  options.solve.slots = options_->plan.slots;
  options.recompute_only = options_->plan.recompute_only;
  const absl::StatusOr<Bytes> bytes = ResolveBudget(*shape.profile, budget, options);
  if (!bytes.ok()) return AgreeOnTerms(agreement_, bytes.status());
  return AgreeOnTerms(agreement_, AgreedTerms{*shape.profile, *bytes});
}

absl::StatusOr<AgreedTerms> AgreedPlanner::AgreeWithTimes(const Batch& batch, Bytes budget,
                                                          PlannedShape* shape) {
  return Agree(planner_->EnsureTimes(batch, shape), budget, *shape);
}

absl::StatusOr<ClientPlan> AgreedPlanner::Lead(const Batch& batch, const AgreedTerms& terms,
                                               bool refresh, PlannedShape* shape) {
  Source source(this, batch, terms, shape);
  absl::StatusOr<ClientPlan> answer = planner_->Ask(&source, terms.budget, refresh);
  if (source.all_failed()) return answer.status();
  const absl::StatusOr<std::string> words =
      answer.ok() ? absl::StatusOr<std::string>(kAnswer + EncodeAnswer(*answer)) : answer.status();
  const absl::StatusOr<std::string> said = BroadcastOrFail(agreement_, words);
  if (!said.ok()) return said.status();
  return answer;
}

absl::StatusOr<ClientPlan> AgreedPlanner::Follow(const Batch& batch, AgreedTerms terms,
                                                 PlannedShape* shape) {
  while (true) {
    const absl::StatusOr<std::string> said = BroadcastOrFail(agreement_, std::string());
    if (!said.ok()) return said.status();
    if (*said != kMeasure) {
      absl::StatusOr<ClientPlan> answer =
          DecodeAnswer(said->substr(std::min(said->size(), sizeof(kAnswer) - 1)), terms);
      if (answer.ok()) return answer;
      // The others are about to say that they have prepared it.
      return AgreeOnDigest(agreement_, answer.status(), [](int) { return absl::OkStatus(); });
    }
    absl::StatusOr<AgreedTerms> timed = AgreeWithTimes(batch, terms.budget, shape);
    if (!timed.ok()) return timed.status();
    terms = *std::move(timed);
  }
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

absl::StatusOr<PreparedPlan> AgreedPlanner::Make(const Batch& batch, const Budget& budget,
                                                 bool refresh, PlannedShape* shape) {
  const absl::Status measured =
      refresh ? planner_->Profile(batch, shape) : planner_->EnsureBytes(batch, shape);
  const absl::StatusOr<AgreedTerms> terms = Agree(measured, budget, *shape);
  if (!terms.ok()) return terms.status();
  const absl::StatusOr<ClientPlan> answer =
      agreement_->rank() == 0 ? Lead(batch, *terms, refresh, shape) : Follow(batch, *terms, shape);
  if (!answer.ok()) return answer.status();  // of all
  return PrepareAll(answer, batch, *shape);
}

absl::StatusOr<PreparedPlan> AgreedPlanner::Plan(const Batch& batch, const Budget& budget,
                                                 PlannedShape* shape) {
  return Make(batch, budget, /*refresh=*/false, shape);
}

absl::StatusOr<PreparedPlan> AgreedPlanner::Refresh(const Batch& batch, const Budget& budget,
                                                    PlannedShape* shape) {
  return Make(batch, budget, /*refresh=*/true, shape);
}

}  // namespace stowage
