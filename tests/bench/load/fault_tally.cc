#include "tests/bench/load/fault_tally.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace stowage {

const std::vector<FaultKind>& FaultKinds() {
  static const auto* const kKinds = new std::vector<FaultKind>{
      {"kill", "server killed, and started again"},
      {"stop", "server stopped for a second"},
      {"disk", "disk full for two seconds"},
      {"clock", "clock moved by up to ten minutes"},
      {"redis", "Redis broken, mended or emptied"},
      {"failover", "Redis's primary killed, its replica promoted"},
      {"decisions", "durable Redis away, or a server's disk lost"},
  };
  return *kKinds;
}

absl::Status CheckFaultNames(const std::set<std::string>& names) {
  std::vector<std::string> known;
  for (const FaultKind& kind : FaultKinds()) known.push_back(kind.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--allow_skipped = ", name, ": must be among ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

int FaultTally::TimesOf(const std::string& name) const {
  const auto found = came_.find(name);
  return found == came_.end() ? 0 : found->second;
}

std::string FaultTally::WhyNot(const std::string& name) const {
  const auto found = cannot_.find(name);
  return found == cannot_.end() ? "no time for it" : found->second;
}

std::vector<FaultKind> FaultTally::Kinds() const {
  std::vector<FaultKind> kinds;
  for (const FaultKind& kind : FaultKinds()) {
    if (left_out_.count(kind.name) == 0) kinds.push_back(kind);
  }
  return kinds;
}

std::string FaultTally::Report() const {
  std::string lines;
  for (const FaultKind& kind : Kinds()) {
    const int times = TimesOf(kind.name);
    const std::string said =
        times > 0 ? absl::StrCat(times) : absl::StrCat("NOT INJECTED: ", WhyNot(kind.name));
    absl::StrAppend(&lines,
                    absl::StrFormat("%-9s %-46s %s\n", kind.name, kind.what.c_str(), said.c_str()));
  }
  return lines;
}

absl::Status FaultTally::Missing(const std::vector<std::string>& names,
                                 const std::string& what) const {
  if (names.empty()) return absl::OkStatus();
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    reasons.push_back(absl::StrCat(name, " (", WhyNot(name), ")"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("faults that ", what, ": ", absl::StrJoin(reasons, ", "),
                   "; --allow_skipped=", absl::StrJoin(names, ","), " does without them"));
}

absl::Status FaultTally::CheckPossible(const std::set<std::string>& allowed) const {
  std::vector<std::string> names;
  for (const FaultKind& kind : Kinds()) {
    if (cannot_.count(kind.name) > 0 && allowed.count(kind.name) == 0) names.push_back(kind.name);
  }
  return Missing(names, "cannot be injected");
}

absl::Status FaultTally::Judge(const std::set<std::string>& allowed) const {
  std::vector<std::string> names;
  for (const FaultKind& kind : Kinds()) {
    if (TimesOf(kind.name) == 0 && allowed.count(kind.name) == 0) names.push_back(kind.name);
  }
  return Missing(names, "were not injected");
}

}  // namespace stowage
