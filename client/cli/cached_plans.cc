#include "client/cli/cached_plans.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/cells.h"
#include "client/cli/plan_key_text.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr std::pair<const char*, RevisionAction> kActions[] = {
    {"pin", RevisionAction::kPin},           {"unpin", RevisionAction::kUnpin},
    {"rollback", RevisionAction::kRollBack}, {"promote", RevisionAction::kPromote},
    {"freeze", RevisionAction::kFreeze},     {"unfreeze", RevisionAction::kUnfreeze},
};

std::string Marks(const ListedPlan& plan) {
  std::vector<std::string> marks = {ToString(plan.state)};
  if (plan.pinned) marks.emplace_back("pinned");
  if (plan.frozen) marks.emplace_back("frozen");
  return absl::StrJoin(marks, ", ");
}

Listing::Cell Ratio(const ListedPlan& plan, double ratio) {
  return plan.reports == 0 ? Listing::Nothing()
                           : Listing::Number(absl::StrFormat("%.3f", ratio), ratio);
}

Listing::Cell TimeCell(const std::optional<std::chrono::system_clock::time_point>& time) {
  if (!time) return Listing::Nothing();
  const absl::Time shown = absl::FromChrono(*time);
  return Listing::Text(absl::FormatTime("%Y-%m-%d %H:%M", shown, absl::UTCTimeZone()),
                       absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", shown, absl::UTCTimeZone()));
}

std::vector<Listing::Cell> RowOf(const ListedPlan& plan) {
  const std::string key = plan.revision.key.digest.ToHex();
  const bool found = plan.status == PlanStatus::kFound;
  const auto figure = [found](const std::string& text, int64_t value) {
    return found ? Listing::Number(text, value) : Listing::Nothing();
  };
  return {Listing::Text(key.substr(0, kShownDigits), key),
          Listing::Text(plan.name),
          Listing::Number(Mebibytes(plan.revision.budget), plan.revision.budget.value()),
          Listing::Integer(plan.revision.revision),
          Listing::Text(Marks(plan), ToString(plan.state)),
          Listing::YesNo(plan.pinned),
          Listing::YesNo(plan.frozen),
          Listing::Text(ToString(plan.status)),
          figure(Mebibytes(plan.peak), plan.peak.value()),
          figure(Milliseconds(plan.makespan), plan.makespan.value()),
          Listing::Text(plan.solver),
          Listing::Text(plan.solver_version),
          Listing::Integer(plan.reports),
          Ratio(plan, plan.time_ratio),
          Ratio(plan, plan.peak_ratio),
          Listing::Text(plan.tenant),
          TimeCell(plan.updated)};
}

// Whether the server would take the action for it, as far as its state says.
bool MayBe(const ListedPlan& plan, RevisionAction action) {
  switch (action) {
    case RevisionAction::kPin:
      return !plan.pinned && plan.state != ListedPlan::State::kRetired;
    case RevisionAction::kUnpin:
      return plan.pinned;
    case RevisionAction::kRollBack:
      return plan.state == ListedPlan::State::kServing;
    case RevisionAction::kPromote:
      return plan.state == ListedPlan::State::kShadow;
    case RevisionAction::kFreeze:
    case RevisionAction::kUnfreeze:
      return true;
  }
  return false;
}

std::string Words(const PlanRevision& revision) {
  return absl::StrCat("--budget=", revision.budget.value(), " --revision=", revision.revision);
}

}  // namespace

Listing ListingOf(const std::vector<ListedPlan>& plans) {
  Listing listing({{"key", "", "key"},
                   {"network", "", "name"},
                   {"budget", "MiB", "budget_bytes"},
                   {"revision", "", "revision"},
                   {"state", "", "state"},
                   {"", "", "pinned"},
                   {"", "", "frozen"},
                   {"status", "", "status"},
                   {"peak", "MiB", "peak_bytes"},
                   {"step", "ms", "makespan_ns"},
                   {"solver", "", "solver"},
                   {"version", "", "solver_version"},
                   {"reports", "", "reports"},
                   {"time", "measured", "time_ratio"},
                   {"peak", "measured", "peak_ratio"},
                   {"tenant", "", "tenant"},
                   {"changed", "UTC", "update_time"}});
  for (const ListedPlan& plan : plans) listing.AddRow(RowOf(plan));
  return listing;
}

absl::StatusOr<RevisionAction> ParseAction(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, action] : kActions) {
    if (text == name) return action;
    names.emplace_back(name);
  }
  return FieldError("--action", text, absl::StrCat("must be one of ", absl::StrJoin(names, ", ")));
}

ChangeTerms TermsOf(const std::vector<ListedPlan>& plans) {
  ChangeTerms terms;
  if (!plans.empty()) terms.etag = plans.front().etag;
  return terms;
}

absl::StatusOr<PlanRevision> ChooseRevision(const std::vector<ListedPlan>& plans,
                                            RevisionAction action, Bytes budget, int64_t revision) {
  std::vector<PlanRevision> fitting;
  for (const ListedPlan& plan : plans) {
    const bool said = (budget == Bytes(0) || plan.revision.budget == budget) &&
                      (revision == 0 || plan.revision.revision == revision);
    const bool exact = budget != Bytes(0) && revision != 0;  // the server says why not, if it does
    if (said && (exact || MayBe(plan, action))) fitting.push_back(plan.revision);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    std::vector<std::string> all;
    for (const ListedPlan& plan : plans) {
      all.push_back(absl::StrCat(Words(plan.revision), " (", Marks(plan), ")"));
    }
    return FieldError("--revision", revision,
                      absl::StrCat("is none that this can be done to; there are ",
                                   all.empty() ? "none" : absl::StrJoin(all, ", ")));
  }
  std::vector<std::string> words;
  for (const PlanRevision& one : fitting) words.push_back(Words(one));
  return FieldError("--revision", revision,
                    absl::StrCat("does not say which, give one of: ", absl::StrJoin(words, "; ")));
}

}  // namespace stowage
