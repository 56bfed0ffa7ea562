#include "server/rpc/decision_handlers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"
#include "server/decisions/decision_transfer.h"
#include "server/entries/planning_error.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int32_t kMostDecidedKeys = 1000;
constexpr int32_t kDefaultDecidedKeys = 100;
constexpr char kList[] = "decisions";  // tells its tokens from those of other lists

absl::Status NoBookError() { return absl::UnimplementedError("this server keeps no decisions"); }

// Of the book, as `error` says it: callers may act on the reason.
absl::Status Told(const absl::Status& status, absl::Status (*error)(const std::string&)) {
  return absl::IsUnavailable(status) ? error(std::string(status.message())) : status;
}

// Which of a key's decisions it is, as a position in a page says it.
std::pair<int64_t, int64_t> PlaceOf(const Decision& decision) {
  return {static_cast<int64_t>(decision.kind), decision.budget.value()};
}

// Lines up to the size of a message, and up to which decision they are.
class LineWriter {
 public:
  // What it is made from outlives it.
  LineWriter(const RequestLimits& limits, const std::optional<PagePosition>& after,
             v1::ExportDecisionsResponse* response)
      : limits_(limits), response_(response), position_(after) {
    bytes_left_ = static_cast<size_t>(std::max(limits.max_message_bytes, kFraming) - kFraming);
  }

  // Those of the key that come after the position; where some came before it, the deletion again: it may have been made since,
  // and ends what the page before has shown. False: one is to be on the next page. RESPONSE_TOO_LARGE: on none.
  absl::StatusOr<bool> Add(const PlanKey& key, const std::vector<Decision>& decisions) {
    const std::optional<PagePosition> begun = position_;
    for (const Decision& decision : decisions) {
      const bool is_before =
          begun && begun->revision && begun->key == key && PlaceOf(decision) <= *begun->revision;
      if (is_before && decision.kind != DecisionKind::kDeletion) continue;
      const absl::StatusOr<bool> added = AddLine({key, decision}, !is_before);
      if (!added.ok() || !*added) return added;
      if (!is_before) position_ = PagePosition{key, PlaceOf(decision)};
    }
    position_ = PagePosition{key, std::nullopt};
    return true;
  }

  const std::optional<PagePosition>& position() const { return position_; }

 private:
  absl::StatusOr<bool> AddLine(const KeyedDecision& decision, bool comes_further) {
    constexpr size_t kTag = 6;  // and the length of a line
    std::string line = DecisionToLine(decision);
    const size_t size = line.size() + kTag;
    if (size > bytes_left_) {
      if (came_further_) return false;
      return TooLargeError(decision, size);
    }
    if (comes_further) bytes_left_ -= size;
    came_further_ = came_further_ || comes_further;
    response_->add_decisions(std::move(line));
    return true;
  }

  absl::Status TooLargeError(const KeyedDecision& decision, size_t size) const {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "a decision about ", decision.first.digest.ToHex(), " takes ",
                          size + kFraming, " bytes of a message, and a message of this server has ",
                          "at most ", limits_.max_message_bytes, " (--max_message_bytes)")),
                      "RESPONSE_TOO_LARGE");
  }

  static constexpr int64_t kFraming = 512;  // the token's field, and a deletion that comes again

  const RequestLimits& limits_;
  v1::ExportDecisionsResponse* const response_;
  size_t bytes_left_ = 0;
  bool came_further_ = false;  // than where the page begins
  std::optional<PagePosition> position_;
};

// The decisions of a request by their keys; or which one is none.
absl::StatusOr<std::map<PlanKey, std::vector<Decision>>> ParsedDecisions(
    const v1::ImportDecisionsRequest& request, const StopToken& stop) {
  std::map<PlanKey, std::vector<Decision>> parsed;
  for (int i = 0; i < request.decisions_size(); ++i) {
    if (stop.stop_requested()) return CallCancelledError();
    absl::StatusOr<KeyedDecision> decision = DecisionFromLine(request.decisions(i));
    if (!decision.ok()) {
      return FieldError(absl::StrCat("decisions[", i, "]"),
                        absl::StrCat(request.decisions(i).size(), " bytes"),
                        std::string(decision.status().message()));
    }
    parsed[decision->first].push_back(std::move(decision->second));
  }
  return parsed;
}

const char* ImportOf(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kDeletion:
      return "import_deletion";
    case DecisionKind::kFreeze:
      return "import_freeze";
    case DecisionKind::kBudget:
      return "import_pins";
  }
  return "";
}

void AuditImport(const RpcRecord& record, const PlanKey& key,
                 const std::vector<Decision>& decisions, const absl::Status& status) {
  for (const Decision& decision : decisions) {
    record.Audit([&](AuditEvent* event) {
      event->action = ImportOf(decision.kind);
      event->key = key;
      event->budget = decision.budget;
      event->outcome = LoggedOutcome(status);
      event->change = true;
    });
  }
}

}  // namespace

absl::Status DecisionHandlers::Handle(const v1::ExportDecisionsRequest& request,
                                      const StopToken& stop, RpcRecord*,
                                      v1::ExportDecisionsResponse* response) const {
  if (book_ == nullptr) return NoBookError();
  if (request.page_size() < 0 || request.page_size() > kMostDecidedKeys) {
    return FieldError("page_size", request.page_size(),
                      absl::StrCat("must be in [0, ", kMostDecidedKeys, "]"));
  }
  const absl::StatusOr<std::optional<PagePosition>> after =
      FromPageToken(request.page_token(), kList);
  if (!after.ok()) return after.status();
  const auto limit =
      static_cast<size_t>(request.page_size() == 0 ? kDefaultDecidedKeys : request.page_size());
  const auto next = FillPage(*after, limit, stop, response);
  if (!next.ok()) return next.status();
  response->set_next_page_token(ToPageToken(*next, kList));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PagePosition>> DecisionHandlers::FillPage(
    const std::optional<PagePosition>& after, size_t limit, const StopToken& stop,
    v1::ExportDecisionsResponse* page) const {
  const auto after_key = after ? std::make_optional(after->key) : std::nullopt;
  absl::StatusOr<std::vector<PlanKey>> keys = book_->Keys(after_key, limit, stop);
  if (!keys.ok()) return Told(keys.status(), ExportUnavailableError);
  const bool is_last = keys->size() < limit;
  // What the page before has not shown of its last key.
  if (after && after->revision) keys->insert(keys->begin(), after->key);
  LineWriter lines(limits_, after, page);
  bool is_full = false;
  for (size_t i = 0; i < keys->size() && !is_full; ++i) {
    const PlanKey& key = (*keys)[i];
    if (stop.stop_requested()) return CallCancelledError();
    const absl::StatusOr<std::vector<Decision>> decisions = book_->Gathered(key);
    if (!decisions.ok()) return Told(decisions.status(), ExportUnavailableError);
    const absl::StatusOr<bool> added = lines.Add(key, *decisions);
    if (!added.ok()) return added.status();
    is_full = !*added;
  }
  // What was lost meanwhile is missing in what came after.
  if (absl::Status complete = book_->CheckComplete(); !complete.ok()) {
    return Told(complete, ExportUnavailableError);
  }
  if (is_full) return lines.position();
  return is_last ? std::nullopt : lines.position();
}

absl::Status DecisionHandlers::Handle(const v1::ImportDecisionsRequest& request,
                                      const StopToken& stop, RpcRecord* record,
                                      v1::ImportDecisionsResponse* response) const {
  if (book_ == nullptr) return NoBookError();
  const auto parsed = ParsedDecisions(request, stop);
  if (!parsed.ok()) return parsed.status();
  for (const auto& [key, decisions] : *parsed) {
    if (stop.stop_requested()) return CallCancelledError();
    const absl::StatusOr<std::vector<Decision>> taken = book_->Take(key, decisions);
    AuditImport(*record, key, taken.ok() ? *taken : decisions, taken.status());
    if (!taken.ok()) return Told(taken.status(), ImportUnavailableError);
    const auto count = static_cast<int32_t>(taken->size());
    response->set_taken(response->taken() + count);
    response->set_known(response->known() + static_cast<int32_t>(decisions.size()) - count);
  }
  return absl::OkStatus();
}

}  // namespace stowage
