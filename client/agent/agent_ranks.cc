#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/agent/agent.h"

namespace stowage {
namespace {

struct ReplanRequest {
  std::string shape;
  uint32_t words = 0;  // of all shapes
  std::optional<PendingReplan> replan;
};

ReplanRequest ParseRequest(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\n');
  ReplanRequest request{parts[0]};
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[1], &request.words)) return request;
  int reason = 0;
  int64_t budget = 0;
  int64_t host = 0;
  if (parts.size() == 5 && absl::SimpleAtoi(parts[2], &reason) &&
      absl::SimpleAtoi(parts[3], &budget) && absl::SimpleAtoi(parts[4], &host)) {
    request.replan = PendingReplan{static_cast<ReplanReason>(reason), Bytes(budget), Bytes(host)};
  }
  return request;
}

// Of the words that go round after each step.
constexpr uint32_t kWantsPlan = 1;
constexpr uint32_t kHasPlannedAlone = 2;
constexpr uint32_t kFails = 4;
constexpr uint32_t kIsOff = 8;

uint32_t WordOf(const PendingReplan& pending) {
  if (StopsSteps(pending.reason)) return kFails;
  return pending.reason == ReplanReason::kPlannedAlone ? kHasPlannedAlone : kWantsPlan;
}

}  // namespace

// Over a board as many after each look, over a group after one in vain: some more than the window, another number each time, so that
// shapes that come in turn are not always met at the wrong step; not twice as many.
int64_t Agent::StepsToNextLook() const {
  const uint64_t mixed = static_cast<uint64_t>(fruitless_) * 0x9E3779B97F4A7C15u >> 33;
  return options_.drift.window +
         static_cast<int64_t>(mixed % static_cast<uint64_t>(options_.drift.window));
}

uint32_t Agent::Words() const {
  uint32_t words = OffBy().empty() ? 0 : kIsOff;
  for (const PendingReplan* pending : table_.Pending()) words |= WordOf(*pending);
  return words;
}

// "<shape>\n<words>", and "\n<reason>\n<bytes>\n<bytes of host memory>" where this shape has a wish.
std::string Agent::RequestOf(const PlannedShape& shape) const {
  std::string request = absl::StrCat(shape.signature.text(), "\n", Words());
  if (!shape.pending) return request;
  Bytes budget = shape.pending->budget;
  // It was told within what all had then.
  if (room_ && shape.pending->reason == ReplanReason::kPlannedAlone) {
    budget = std::min(budget, *room_);
  }
  absl::StrAppend(&request, "\n", static_cast<int>(shape.pending->reason), "\n", budget.value(),
                  "\n", shape.pending->host_memory.value());
  return request;
}

absl::Status Agent::AgreeBeforeStep(const Batch& batch, PlannedShape* shape) {
  if (!agreement_->votes()) {
    if (++steps_since_agreement_ < StepsToNextLook()) return absl::OkStatus();
    steps_since_agreement_ = 0;
    return AgreeOnReplan(batch, shape);
  }
  if (!tells_) return absl::OkStatus();
  const absl::Status said = SayOfStep();
  if (!said.ok()) return said;
  const absl::StatusOr<uint32_t> heard = agreement_->Hear();
  tells_ = said_ = false;
  if (!heard.ok()) return heard.status();
  off_agreed_ = (*heard & kIsOff) != 0;
  if (off_agreed_) return absl::OkStatus();
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
  absl::Status status = agreement_->Say(Words());
  said_ = status.ok();
  return status;
}

// At the same steps on all ranks: what one of them wants, all do, within the least that any wants, of the
// device and of host memory.
absl::Status Agent::AgreeOnReplan(const Batch& batch, PlannedShape* shape) {
  const absl::StatusOr<std::vector<std::string>> all = agreement_->Gather(RequestOf(*shape));
  if (!all.ok()) return all.status();
  uint32_t words = 0;
  bool alike = true;
  std::optional<PendingReplan> agreed;
  for (const std::string& text : *all) {
    const ReplanRequest request = ParseRequest(text);
    words |= request.words;
    alike = alike && request.shape == shape->signature.text();
    if (!request.replan) continue;
    if (!agreed) agreed = request.replan;
    agreed->reason = std::max(agreed->reason, request.replan->reason);
    agreed->budget = std::min(agreed->budget, request.replan->budget);
    agreed->host_memory = std::min(agreed->host_memory, request.replan->host_memory);
    // A shape's own budget is no limit for others; memory that ran out is.
    if (room_ && request.replan->reason == ReplanReason::kOutOfMemory) {
      room_ = std::min(*room_, request.replan->budget);
    }
  }
  off_agreed_ = (words & kIsOff) != 0;
  if (off_agreed_) return absl::OkStatus();
  // Ranks at different shapes have no plan in common, and this one may not be wished for: as all ranks see alike, none asks for the
  // same for a while.
  if (!alike || !agreed) {
    quiet_steps_ = StepsToNextLook();
    fruitless_ = words != 0 ? fruitless_ + 1 : 0;
    return absl::OkStatus();
  }
  quiet_steps_ = fruitless_ = 0;
  shape->pending = agreed;
  Replan(batch, shape);
  return agreement_->status();
}

}  // namespace stowage
