#include "client/agent/agent_event.h"

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

std::string Short(const Digest& digest) { return digest.ToHex().substr(0, 12); }

std::string Message(const absl::Status& status) { return status.ToString(); }

// Nothing of a step that copies nothing.
std::string Copied(Bytes offloaded, Bytes prefetched) {
  if (offloaded == Bytes(0)) return "";
  return absl::StrCat(", ", ToString(offloaded), " to host memory and ", ToString(prefetched),
                      " back");
}

// Kind and line of each type.
struct Words {
  const char* Kind(const BudgetSharedEvent&) const { return "budget_shared"; }
  std::string Line(const BudgetSharedEvent& event) const {
    return absl::StrCat("the device's memory:\n", ToString(event.budget));
  }

  const char* Kind(const ProfileTakenEvent&) const { return "profile_taken"; }
  std::string Line(const ProfileTakenEvent& event) const {
    if (event.from_shapes) {
      return absl::StrCat(event.batch, ": structure told from shapes in ", ToString(event.time));
    }
    return absl::StrCat(event.batch, ": profiled ",
                        event.costs == CostSource::kBytesOnly ? "the bytes" : "times and bytes",
                        " in ", ToString(event.time),
                        event.not_shapes.empty() ? "" : absl::StrCat(" (", event.not_shapes, ")"));
  }

  const char* Kind(const CacheHitEvent&) const { return "cache_hit"; }
  std::string Line(const CacheHitEvent& event) const {
    return absl::StrCat(event.batch, ": a plan", event.for_larger ? " of a larger shape" : "",
                        " is cached under ", Short(event.key.digest), ", asked in ",
                        ToString(event.request_time));
  }

  const char* Kind(const PlannedEvent&) const { return "planned"; }
  std::string Line(const PlannedEvent& event) const {
    std::string line = absl::StrCat(event.batch, ": ", ToString(event.status), " within ",
                                    ToString(event.budget), " (", ToString(event.source), ", ",
                                    event.solver, ", ", ToString(event.request_time), ")");
    if (event.status == PlanStatus::kProvenInfeasible) {
      absl::StrAppend(&line, ", the least is ", ToString(event.least_budget));
    }
    return line;
  }

  const char* Kind(const AdoptedEvent&) const { return "adopted"; }
  std::string Line(const AdoptedEvent& event) const {
    return absl::StrCat(event.batch, ": plan ", Short(event.plan), " of ", Short(event.key.digest),
                        " (revision ", event.revision, ") adopted: ", ToString(event.makespan),
                        " and ", ToString(event.peak), " of ", ToString(event.budget),
                        " predicted, ", event.recomputed_forwards, " forwards repeated",
                        Copied(event.offloaded, event.prefetched));
  }

  const char* Kind(const FellBackEvent&) const { return "fell_back"; }
  std::string Line(const FellBackEvent& event) const { return event.words; }

  const char* Kind(const ReplanEvent&) const { return "replan"; }
  std::string Line(const ReplanEvent& event) const {
    return absl::StrCat(event.batch, ": plans again within ", ToString(event.budget), " (",
                        ToString(event.reason), "): ", event.words);
  }

  const char* Kind(const PlanFailedEvent&) const { return "plan_failed"; }
  std::string Line(const PlanFailedEvent& event) const {
    return absl::StrCat(event.batch,
                        ": no new plan, training goes on as it is: ", Message(event.status));
  }

  const char* Kind(const OutOfMemoryEvent&) const { return "out_of_memory"; }
  std::string Line(const OutOfMemoryEvent& event) const {
    return absl::StrCat(event.batch, ": out of ", event.host ? "host " : "", "memory after ",
                        ToString(event.got), " of ", ToString(event.wanted),
                        event.retried ? ", the step is made again" : "", ": ", event.message,
                        event.finding.empty() ? "" : "\n", event.finding);
  }

  const char* Kind(const CopiesForbiddenEvent&) const { return "copies_forbidden"; }
  std::string Line(const CopiesForbiddenEvent& event) const {
    return absl::StrCat(event.batch, ": plans copy nothing to host memory from now on (",
                        ToString(event.reason), ")");
  }

  const char* Kind(const ShadowEvent&) const { return "shadow"; }
  std::string Line(const ShadowEvent& event) const {
    return absl::StrCat(event.batch, ": ", event.steps, " plain steps took ",
                        ToString(event.measured_time), " and ", ToString(event.measured_peak),
                        ", predicted ", ToString(event.plain_time), " and ",
                        ToString(event.plain_peak), "; by the plan ", ToString(event.planned_time),
                        " and ", ToString(event.planned_peak));
  }

  const char* Kind(const KilledEvent&) const { return "killed"; }
  std::string Line(const KilledEvent& event) const {
    return absl::StrCat(
        event.killed ? "plain training from this step on" : "training by plans again",
        event.by.empty() ? "" : ": ", event.by);
  }

  const char* Kind(const ReportSentEvent&) const { return "report_sent"; }
  std::string Line(const ReportSentEvent& event) const {
    return absl::StrCat(event.batch, ": reported ", ToString(event.step_time), " and ",
                        ToString(event.peak), Copied(event.offloaded, event.prefetched), " over ",
                        event.steps, " steps: ", ToString(event.verdict));
  }

  const char* Kind(const ReportRefusedEvent&) const { return "report_refused"; }
  std::string Line(const ReportRefusedEvent& event) const {
    return absl::StrCat(event.batch, ": could not report: ", Message(event.status));
  }

  const char* Kind(const ResumedEvent&) const { return "resumed"; }
  std::string Line(const ResumedEvent& event) const {
    return absl::StrCat(event.batch, ": resumed by ", event.same_plan ? "the same" : "another",
                        " plan: ", event.words);
  }

  const char* Kind(const ArenaEvent&) const { return "arena"; }
  std::string Line(const ArenaEvent& event) const {
    const std::string sizes = absl::StrCat(
        "blocks of ", ToString(event.live_peak), " at once reach over ", ToString(event.extent),
        ", ", ToString(event.fragmentation), " fragmentation, of ", ToString(event.room));
    if (event.used) return absl::StrCat(event.batch, ": served from one region: ", sizes);
    return absl::StrCat(event.batch, event.batch.empty() ? "" : ": ",
                        "steps are served from no region: ", event.why, " (", sizes, ")");
  }
};

}  // namespace

const char* ToString(ReplanReason reason) {
  switch (reason) {
    case ReplanReason::kProfileWanted:
      return "profile wanted";
    case ReplanReason::kPlannedAlone:
      return "planned by one rank alone";
    case ReplanReason::kTime:
      return "step time";
    case ReplanReason::kPeak:
      return "peak";
    case ReplanReason::kOutOfMemory:
      return "out of memory";
    case ReplanReason::kHostMemory:
      return "out of host memory";
    case ReplanReason::kImmovable:
      return "cannot move";
  }
  return "unknown";
}

const char* KindOf(const AgentEvent& event) {
  return std::visit([](const auto& one) { return Words().Kind(one); }, event);
}

std::string ToString(const AgentEvent& event) {
  return std::visit([](const auto& one) { return Words().Line(one); }, event);
}

}  // namespace stowage
