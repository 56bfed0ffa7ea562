#include "tests/bench/load/kept_decision.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kDigestBytes = 8;  // that are shown, of 32

const char* NameOf(DecidedAs as) {
  switch (as) {
    case DecidedAs::kPinned:
      return "pin";
    case DecidedAs::kUnpinned:
      return "unpinning";
    case DecidedAs::kDeleted:
      break;
  }
  return "deletion";
}

}  // namespace

std::string TextOf(const KeptDecision& decision) {
  return absl::StrCat(NameOf(decision.as), " of revision ", decision.revision, " for ",
                      decision.budget_bytes, " bytes of key ",
                      absl::BytesToHexString(decision.key.digest().substr(0, kDigestBytes)));
}

bool HasOnDisk(const KeptDecision& decision, const ServerDisk& disk) {
  return decision.on.server == disk.server && decision.on.disk == disk.disk;
}

std::string WhatIsLost(const KeptDecision& decision, const v1::ListPlansResponse& listed) {
  const auto& plans = listed.plans();
  if (decision.as != DecidedAs::kPinned) {
    const bool pinned = std::any_of(plans.begin(), plans.end(),
                                    [](const v1::PlanSummary& plan) { return plan.pinned(); });
    return pinned ? absl::StrCat(TextOf(decision), ": a plan of the key is pinned again") : "";
  }
  const auto found = std::find_if(plans.begin(), plans.end(), [&](const v1::PlanSummary& plan) {
    return plan.budget_bytes() == decision.budget_bytes && plan.revision() == decision.revision;
  });
  if (found != plans.end() && found->pinned()) return "";
  const std::string why = found != plans.end() ? "it is there, and not pinned"
                          : plans.empty()      ? "nothing is there under the key"
                                               : "the key has other plans, and not this one";
  return absl::StrCat(TextOf(decision), ": ", why);
}

}  // namespace stowage
