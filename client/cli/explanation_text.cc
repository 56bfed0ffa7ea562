#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/cells.h"
#include "client/cli/explanation.h"
#include "client/cli/json_text.h"
#include "client/cli/question.h"
#include "proto/codec/codec.h"
#include "solvers/schedule/text.h"

namespace stowage {
namespace {

constexpr size_t kCostliest = 5;

// As in PlanText.
std::string Line(const char* label, const std::string& value) {
  return absl::StrFormat("  %-14s %s\n", label, value);
}

std::string PeakText(const Explanation& explanation) {
  const PeakMoment& peak = explanation.peak;
  std::vector<std::string> parts;
  for (size_t u = 0; u < kMemoryUses; ++u) {
    const Bytes bytes = peak.memory.bytes[u];
    if (bytes == Bytes(0)) continue;
    parts.push_back(absl::StrCat(ToString(bytes), " ", ToString(static_cast<MemoryUse>(u))));
  }
  return absl::StrCat(peak.text, ", ", ToString(peak.at),
                      " into the step: ", absl::StrJoin(parts, ", "));
}

std::vector<const StageFate*> Costliest(const std::vector<StageFate>& stages) {
  std::vector<const StageFate*> costly;
  for (const StageFate& fate : stages) {
    if (fate.cost() > Nanos(0)) costly.push_back(&fate);
  }
  std::stable_sort(costly.begin(), costly.end(),
                   [](const auto* a, const auto* b) { return a->cost() > b->cost(); });
  return costly;
}

std::string CostText(const StageFate& fate) {
  std::vector<std::string> parts;
  const int again = fate.use.forwards - 1;
  if (again > 0) {
    parts.push_back(absl::StrCat(ToString(fate.use.recompute_time), " in ", again,
                                 again == 1 ? " recompute" : " recomputes"));
  }
  if (fate.waited > Nanos(0)) {
    parts.push_back(absl::StrCat(ToString(fate.waited), " of waiting for copies"));
  }
  return absl::StrCat(fate.label, ": ", absl::StrJoin(parts, ", "));
}

std::string CostsText(const Explanation& explanation) {
  std::vector<const StageFate*> costly = Costliest(explanation.stages);
  if (costly.empty()) return "none: nothing is done twice or waited for";
  Nanos rest;
  for (size_t i = kCostliest; i < costly.size(); ++i) rest += costly[i]->cost();
  const size_t more = costly.size() - std::min(costly.size(), kCostliest);
  costly.resize(std::min(costly.size(), kCostliest));
  const std::string text = absl::StrJoin(
      costly, "; ", [](std::string* out, const auto* fate) { *out += CostText(*fate); });
  if (more == 0) return text;
  return absl::StrCat(text, "; ", more, " more, ", ToString(rest));
}

std::string NeighbourText(const FrontierReply::Point& point, const Plan& plan) {
  const double share = Fraction(point.budget, plan.bounds.store_all_peak);
  std::string text = absl::StrCat(
      ToString(point.budget), absl::StrFormat(" (%.1f%% of plain training's peak): ", 100 * share),
      ToString(point.makespan), " a step");
  if (plan.status != PlanStatus::kFound) return text;
  const Nanos here = plan.prediction.makespan;
  return point.makespan > here ? absl::StrCat(text, ", ", ToString(point.makespan - here), " more")
                               : absl::StrCat(text, ", ", ToString(here - point.makespan), " less");
}

std::string JsonOf(const std::optional<FrontierReply::Point>& point) {
  if (!point) return "null";
  return JsonObject({{"budget_bytes", absl::StrCat(point->budget.value())},
                     {"makespan_ns", absl::StrCat(point->makespan.value())},
                     {"peak_bytes", absl::StrCat(point->peak.value())}});
}

std::string JsonOf(const PeakMoment& peak) {
  JsonFields uses;
  for (size_t u = 0; u < kMemoryUses; ++u) {
    uses.emplace_back(ToString(static_cast<MemoryUse>(u)),
                      absl::StrCat(peak.memory.bytes[u].value()));
  }
  return JsonObject({{"bytes", absl::StrCat(peak.memory.total().value())},
                     {"instruction", absl::StrCat(peak.instruction)},
                     {"text", JsonString(peak.text)},
                     {"at_ns", absl::StrCat(peak.at.value())},
                     {"bytes_by_use", JsonObject(uses)}});
}

}  // namespace

Listing StagesOf(const Explanation& explanation) {
  Listing listing({{"stage", "", "name"},
                   {"", "#", "stage"},
                   {"role", "", "role"},
                   {"saved", "MiB", "saved_bytes"},
                   {"forward", "ms", "first_forward_time_ns"},
                   {"forwards", "", "forwards"},
                   {"recompute", "ms", "recompute_time_ns"},
                   {"to host", "MiB", "offloaded_bytes"},
                   {"from host", "MiB", "prefetched_bytes"},
                   {"waited", "ms", "waited_ns"}});
  // What does not happen is left empty in the table: what does is then seen.
  const auto bytes = [](Bytes b) {
    return Listing::Number(b == Bytes(0) ? "" : Mebibytes(b), b.value());
  };
  const auto time = [](Nanos t) {
    return Listing::Number(t == Nanos(0) ? "" : Milliseconds(t), t.value());
  };
  for (const StageFate& fate : explanation.stages) {
    const StageUse& use = fate.use;
    listing.AddRow({Listing::Text(fate.label), Listing::Integer(fate.stage),
                    Listing::Text(ToString(use.role)), bytes(fate.saved),
                    time(use.forward_time - use.recompute_time), Listing::Integer(use.forwards),
                    time(use.recompute_time), bytes(use.offloaded), bytes(use.prefetched),
                    time(fate.waited)});
  }
  return listing;
}

std::string ToText(const Explanation& explanation) {
  const Plan& plan = explanation.plan;
  const bool found = plan.status == PlanStatus::kFound;
  std::string text = PlanText(plan);
  text += Line("source", SourceText(explanation.source));
  if (found) {
    text += Line("peak at", PeakText(explanation));
    text += Line("extra time", CostsText(explanation));
  }
  if (explanation.less) text += Line("less memory", NeighbourText(*explanation.less, plan));
  if (explanation.more) text += Line("more memory", NeighbourText(*explanation.more, plan));
  return found ? absl::StrCat(text, "\n", StagesOf(explanation).Table()) : text;
}

std::string ToJson(const Explanation& explanation) {
  const bool found = explanation.plan.status == PlanStatus::kFound;
  return JsonObject({{"plan", ToJson(ToProto(explanation.plan))},
                     {"source", JsonString(ToString(explanation.source))},
                     {"peak", found ? JsonOf(explanation.peak) : "null"},
                     {"stages", StagesOf(explanation).Json()},
                     {"with_less", JsonOf(explanation.less)},
                     {"with_more", JsonOf(explanation.more)}}) +
         "\n";
}

}  // namespace stowage
