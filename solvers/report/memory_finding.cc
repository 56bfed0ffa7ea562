#include "solvers/report/memory_finding.h"

#include <initializer_list>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/report/stage_roles.h"

namespace stowage {
namespace {

Bytes AtLeastNothing(Bytes bytes) { return bytes < Bytes(0) ? Bytes(0) : bytes; }
Bytes Larger(Bytes a, Bytes b) { return a < b ? b : a; }

// Held before the first instruction.
Bytes StartOf(const Problem& problem) {
  const Chain* chain = std::get_if<Chain>(&problem);
  if (chain == nullptr) return Bytes(0);
  return chain->activation(0) + chain->gradient(chain->length() + 1);
}

absl::Status Check(const MemoryReading& r, size_t instructions) {
  if (r.instruction >= instructions) {
    return FieldError("reading.instruction", static_cast<int64_t>(r.instruction),
                      absl::StrCat("must be below ", instructions, ", what the schedule has"));
  }
  const std::initializer_list<std::pair<const char*, Bytes>> sizes = {
      {"allocated", r.allocated},
      {"before_step", r.before_step},
      {"reserved", r.reserved},
      {"asked", r.asked},
      {"limit", r.limit},
      {"rounding", r.rounding},
      {"held_before", r.held_before.value_or(Bytes(0))}};
  for (const auto& [name, bytes] : sizes) {
    if (bytes >= Bytes(0) && bytes.value() < kMaxTotal) continue;
    return FieldError(absl::StrCat("reading.", name), bytes.value(), "must be in [0, 2^62)");
  }
  if (r.reserved >= r.allocated) return absl::OkStatus();
  return FieldError("reading.reserved", r.reserved.value(),
                    absl::StrCat("must be at least reading.allocated, ", r.allocated.value()));
}

// Whether even the live bytes alone, whole, are too many for the allocator.
bool AtLimit(const MemoryReading& r) {
  return r.limit > Bytes(0) && r.allocated + r.asked + r.rounding > r.limit;
}

MemoryCause CauseOf(const MemoryFinding& f) {
  const MemoryReading& r = f.reading;
  const bool all_known = r.limit > Bytes(0) && r.asked > Bytes(0);
  if (all_known && !AtLimit(r)) {
    // Whole, there would have been room; what was reserved is not all live.
    return r.reserved + r.asked > r.limit ? MemoryCause::kFragmentation : MemoryCause::kElsewhere;
  }
  if (f.beyond_plan > Bytes(0)) {
    const Bytes beyond_before = r.held_before.value_or(f.planned_before) - f.planned_before;
    // Whichever is more of what the plan has not.
    return beyond_before + beyond_before > f.beyond_plan ? MemoryCause::kLiveBeside
                                                         : MemoryCause::kWorkspace;
  }
  const bool has_pieces = !all_known && f.in_pieces > Bytes(0) && f.in_pieces >= r.asked;
  return has_pieces ? MemoryCause::kFragmentation : MemoryCause::kElsewhere;
}

std::string Uses(const MemoryByUse& memory) {
  std::string text;
  for (size_t u = 0; u < kMemoryUses; ++u) {
    if (memory.bytes[u] == Bytes(0)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", ToString(memory.bytes[u]), " ",
                    ToString(static_cast<MemoryUse>(u)));
  }
  return text.empty() ? "nothing" : text;
}

// What it was, and what helps.
std::string CauseText(const MemoryFinding& f) {
  switch (f.cause) {
    case MemoryCause::kWorkspace:
      return absl::StrCat("the instruction takes ", ToString(f.beyond_plan),
                          " more than the profile says. Profile this shape anew, or plan with a "
                          "budget that much smaller.");
    case MemoryCause::kLiveBeside:
      return absl::StrCat(ToString(*f.reading.held_before - f.planned_before),
                          " more was live when the instruction began than the plan holds there. "
                          "Something keeps tensors of this step, or of one before: outputs, losses "
                          "or gradients that are not let go.");
    case MemoryCause::kFragmentation:
      return absl::StrCat(
          ToString(f.in_pieces),
          " is reserved and not live, in pieces that are too small. Serve steps from one reserved "
          "region, let the allocator's segments grow, or plan with a smaller budget.");
    case MemoryCause::kElsewhere:
      return absl::StrCat("the step is as planned; ", ToString(f.missing),
                          " of the memory that the plan counts on is with somebody else: other "
                          "allocations of this process, or other processes on the device.");
  }
  return "";
}

}  // namespace

const char* ToString(MemoryCause cause) {
  switch (cause) {
    case MemoryCause::kWorkspace:
      return "workspace";
    case MemoryCause::kLiveBeside:
      return "live beside the plan";
    case MemoryCause::kFragmentation:
      return "fragmentation";
    case MemoryCause::kElsewhere:
      return "taken elsewhere";
  }
  return "unknown";
}

absl::StatusOr<MemoryFinding> FindMemoryCause(const LinkedProblem& linked, const Schedule& schedule,
                                              const MemoryReading& reading) {
  const absl::Status status = Check(reading, schedule.size());
  if (!status.ok()) return status;
  const absl::StatusOr<StepTimeline> step = TimelineOf(linked, schedule);
  if (!step.ok()) return step.status();
  const TimelineEvent& event = step->events[reading.instruction];
  MemoryFinding f;
  f.reading = reading;
  f.what =
      EventText(event, StageLabels(linked.problem)[static_cast<size_t>(event.instruction.stage)]);
  f.planned = event.running;
  f.planned_before = reading.instruction == 0 ? StartOf(linked.problem)
                                              : step->events[reading.instruction - 1].held.total();
  f.planned_peak = step->simulation.peak;
  f.step = AtLeastNothing(reading.allocated - reading.before_step) + reading.asked;
  const Bytes beyond = AtLeastNothing(f.step - f.planned.total());
  f.beyond_plan = beyond > reading.rounding ? beyond : Bytes(0);
  f.in_pieces = reading.reserved - reading.allocated;
  f.cause = CauseOf(f);
  // Where the allocator was not at its limit, the device had no more for it.
  const Bytes there = AtLimit(reading) ? reading.limit : reading.reserved;
  f.missing = AtLeastNothing(reading.before_step + Larger(f.step, f.planned_peak) - there);
  return f;
}

std::string MemoryFindingText(const MemoryFinding& f) {
  const MemoryReading& r = f.reading;
  std::string text = absl::StrCat(
      "out of memory at instruction ", r.instruction, " (", f.what, ")",
      r.asked > Bytes(0) ? absl::StrCat(", which asked for ", ToString(r.asked)) : "", "\n");
  absl::StrAppend(&text, "  planned     ", ToString(f.planned.total()),
                  " while it runs: ", Uses(f.planned), "; ", ToString(f.planned_before),
                  " before it\n");
  absl::StrAppend(&text, "  actual      ", ToString(f.step), " with what it asked for");
  if (f.beyond_plan > Bytes(0)) {
    absl::StrAppend(&text, ", ", ToString(f.beyond_plan), " more than planned");
  }
  if (r.held_before) absl::StrAppend(&text, "; ", ToString(*r.held_before), " before it");
  absl::StrAppend(&text, "; beside it ", ToString(r.before_step), " from before the step\n");
  absl::StrAppend(&text, "  allocator   ", ToString(r.reserved), " reserved",
                  r.limit > Bytes(0) ? absl::StrCat(" of at most ", ToString(r.limit)) : "", ", ",
                  ToString(f.in_pieces), " of it not live\n");
  absl::StrAppend(&text, "  cause       ", ToString(f.cause), ": ", CauseText(f), "\n");
  return text;
}

}  // namespace stowage
