#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/agent/agent.h"

namespace stowage {
namespace {

// "<shape>\n<reason>\n<bytes>\n<bytes of host memory>"; without a request "<shape>".
std::string RequestOf(const PlannedShape& shape) {
  if (!shape.pending) return shape.signature.text();
  return absl::StrCat(shape.signature.text(), "\n", static_cast<int>(shape.pending->reason), "\n",
                      shape.pending->budget.value(), "\n", shape.pending->host_memory.value());
}

struct ReplanRequest {
  std::string shape;
  std::optional<PendingReplan> replan;
};

ReplanRequest ParseRequest(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\n');
  int reason = 0;
  int64_t budget = 0;
  int64_t host = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &reason) ||
      !absl::SimpleAtoi(parts[2], &budget) || !absl::SimpleAtoi(parts[3], &host)) {
    return {parts[0], std::nullopt};
  }
  return {parts[0], PendingReplan{static_cast<ReplanReason>(reason), Bytes(budget), Bytes(host)}};
}

// Of the word that goes round after each step.
constexpr uint32_t kWantsPlan = 1;
constexpr uint32_t kHasPlannedAlone = 2;
constexpr uint32_t kFails = 4;

uint32_t WordOf(const PendingReplan* pending) {
  if (pending == nullptr) return 0;
  if (StopsSteps(pending->reason)) return kFails;
  return pending->reason == ReplanReason::kPlannedAlone ? kHasPlannedAlone : kWantsPlan;
}

}  // namespace

absl::Status Agent::AgreeBeforeStep(const Batch& batch, PlannedShape* shape) {
  if (!options_.agreement->votes()) {
    if (++steps_since_agreement_ < options_.drift.window) return absl::OkStatus();
    steps_since_agreement_ = 0;
    return AgreeOnReplan(batch, shape);
  }
  if (!tells_) return absl::OkStatus();
  const absl::Status said = SayOfStep();
  if (!said.ok()) return said;
  const absl::StatusOr<uint32_t> heard = options_.agreement->Hear();
  tells_ = said_ = false;
  if (!heard.ok()) return heard.status();
  uint32_t wishes = *heard;
  if (quiet_steps_ > 0) {
    --quiet_steps_;
    wishes &= ~muted_;
  } else {
    muted_ = 0;
  }
  if (wishes == 0) return absl::OkStatus();
  muted_ |= wishes;
  return AgreeOnReplan(batch, shape);
}

// Once for each step: at its end, or, where that is the caller's, before the next one.
absl::Status Agent::SayOfStep() {
  if (said_) return absl::OkStatus();
  absl::Status status = options_.agreement->Say(WordOf(table_.MostPressing()));
  said_ = status.ok();
  return status;
}

// At the same steps on all ranks: what one of them wants, all do, within the least that any wants, of the
// device and of host memory.
absl::Status Agent::AgreeOnReplan(const Batch& batch, PlannedShape* shape) {
  const absl::StatusOr<std::vector<std::string>> all =
      options_.agreement->Gather(RequestOf(*shape));
  if (!all.ok()) return all.status();
  // Where that leads to no plan, as all ranks see alike, none asks for the same for a while; wishes stay.
  quiet_steps_ = options_.drift.window;
  std::optional<PendingReplan> agreed;
  for (const std::string& text : *all) {
    const ReplanRequest request = ParseRequest(text);
    // Ranks at different shapes have no plan in common: another time.
    if (request.shape != shape->signature.text()) return absl::OkStatus();
    if (!request.replan) continue;
    if (!agreed) agreed = request.replan;
    agreed->reason = std::max(agreed->reason, request.replan->reason);
    agreed->budget = std::min(agreed->budget, request.replan->budget);
    agreed->host_memory = std::min(agreed->host_memory, request.replan->host_memory);
  }
  if (!agreed) return absl::OkStatus();
  quiet_steps_ = 0;
  if (room_) room_ = agreed->budget = std::min(*room_, agreed->budget);
  shape->pending = agreed;
  Replan(batch, shape);
  return absl::OkStatus();
}

}  // namespace stowage
