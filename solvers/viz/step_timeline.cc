#include "solvers/viz/step_timeline.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule_blocks.h"
#include "solvers/viz/drawn_plan.h"

namespace stowage {
namespace {

using Timeline = std::vector<TimelinePoint>;

// What each time step holds, for all of them at once: as blocks come and go.
class MemoryBook {
 public:
  explicit MemoryBook(size_t instructions) : change_(2 * instructions + 1) {}

  void Take(MemoryUse use, Bytes bytes, int64_t begin, int64_t end) {
    change_[static_cast<size_t>(begin)][use] += bytes;
    change_[static_cast<size_t>(end)][use] -= bytes;
  }
  void Move(MemoryUse from, MemoryUse to, Bytes bytes, int64_t begin, int64_t end) {
    Take(to, bytes, begin, end);
    Take(from, Bytes(0) - bytes, begin, end);
  }

  // By time step (schedule_blocks.h).
  std::vector<MemoryByUse> Finish() {
    for (size_t m = 1; m < change_.size(); ++m) {
      for (size_t u = 0; u < kMemoryUses; ++u) change_[m].bytes[u] += change_[m - 1].bytes[u];
    }
    change_.pop_back();
    return std::move(change_);
  }

 private:
  std::vector<MemoryByUse> change_;
};

// What a reduce leaves of saved l is one block, which had the output all along: an activation from
// then on.
void MoveDroppedSaved(const Schedule& schedule, const ScheduleBlocks& blocks, MemoryBook* book) {
  std::multimap<int32_t, BlockLife> saved;
  for (size_t b = 0; b < blocks.lives.size(); ++b) {
    const BlockName& name = blocks.names[b];
    if (name.use == BlockUse::kSaved) saved.emplace(name.stage, blocks.lives[b]);
  }
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].op != Op::kDropSavedKeepOutput) continue;
    const int64_t after = 2 * static_cast<int64_t>(i) + 1;
    const auto [first, last] = saved.equal_range(schedule[i].stage);
    for (auto it = first; it != last; ++it) {
      const BlockLife& life = it->second;
      if (life.begin >= after || life.end <= after) continue;
      book->Move(MemoryUse::kSaved, MemoryUse::kActivations, life.size, after, life.end);
    }
  }
}

// A tensor is a copy in flight from the start of the copy up to what its wait leaves behind.
void MoveCopies(const Problem& problem, const Schedule& schedule, MemoryBook* book) {
  std::map<std::tuple<TensorKind, int32_t, uint16_t>, int64_t> started;
  for (size_t index = 0; index < schedule.size(); ++index) {
    const Instruction& i = schedule[index];
    if (!IsTransfer(i.op)) continue;
    const auto tensor = std::make_tuple(i.tensor, i.stage, i.part);
    const int64_t step = 2 * static_cast<int64_t>(index);
    if (i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart) {
      started[tensor] = step;
      continue;
    }
    const MemoryUse from =
        i.tensor == TensorKind::kSaved ? MemoryUse::kSaved : MemoryUse::kActivations;
    book->Move(from, MemoryUse::kCopies, MovedBytes(problem, i), started[tensor], step + 1);
  }
}

Schedule OnCompute(Schedule schedule) {
  for (Instruction& i : schedule) {
    if (i.stream == Stream::kCommunication) i.stream = Stream::kCompute;
  }
  return schedule;
}

// By time step. Of a schedule that the evaluator accepts.
absl::StatusOr<std::vector<MemoryByUse>> MemoryOf(const Instance& instance,
                                                  const Schedule& schedule,
                                                  const Timeline& timeline) {
  const Schedule plain = OnCompute(schedule);
  const absl::StatusOr<ScheduleBlocks> blocks = BlocksOf(instance, plain);
  if (!blocks.ok()) return blocks.status();
  // By BlockUse.
  static constexpr MemoryUse kUseOf[] = {MemoryUse::kActivations, MemoryUse::kSaved,
                                         MemoryUse::kGradients, MemoryUse::kWorkspace};
  MemoryBook book(schedule.size());
  for (size_t b = 0; b < blocks->lives.size(); ++b) {
    const BlockLife& life = blocks->lives[b];
    book.Take(kUseOf[static_cast<size_t>(blocks->names[b].use)], life.size, life.begin, life.end);
  }
  MoveDroppedSaved(plain, *blocks, &book);
  MoveCopies(instance.problem(), plain, &book);
  std::vector<MemoryByUse> memory = book.Finish();
  // What the schedule takes beyond what it would with everything on compute, communications keep.
  for (size_t m = 0; m < memory.size(); ++m) {
    const TimelinePoint& point = timeline[m / 2];
    const Bytes kept = (m % 2 == 0 ? point.running : point.held) - memory[m].total();
    if (kept < Bytes(0) || (kept > Bytes(0) && plain == schedule)) {
      return absl::InternalError(absl::StrCat("time step ", m, ": uses do not add up"));
    }
    memory[m][MemoryUse::kCommunication] = kept;
  }
  return memory;
}

StepWork WorkOf(const Instruction& i, bool repeated) {
  switch (i.op) {
    case Op::kForwardSave:
    case Op::kForwardNoSave:
    case Op::kForwardNoSaveFreeInput:
      return repeated ? StepWork::kRecompute : StepWork::kForward;
    case Op::kBackward:
      return StepWork::kBackward;
    case Op::kOffloadStart:
      return StepWork::kOffload;
    case Op::kPrefetchStart:
      return StepWork::kPrefetch;
    case Op::kOffloadWait:
    case Op::kPrefetchWait:
      return StepWork::kWait;
    case Op::kDiscard:
    case Op::kDropSavedKeepOutput:
      return StepWork::kRelease;
  }
  return StepWork::kRelease;
}

int StageCount(const Problem& problem) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return graph->size();
  return std::get<Chain>(problem).length() + 1;
}

}  // namespace

const char* ToString(MemoryUse use) {
  static constexpr const char* kNames[kMemoryUses] = {
      "saved tensors",    "activations",           "gradients",
      "copies in flight", "kept by communication", "workspace"};
  return kNames[static_cast<size_t>(use)];
}

const char* ToString(StepWork work) {
  static constexpr const char* kNames[kStepWorks] = {"forward",  "recompute", "backward", "offload",
                                                     "prefetch", "wait",      "release"};
  return kNames[static_cast<size_t>(work)];
}

Bytes MovedBytes(const Problem& problem, const Instruction& i) {
  const bool saved = i.tensor == TensorKind::kSaved;
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    return saved ? graph->vertex(i.stage - 1).extra_saved : graph->bytes(i.stage - 1);
  }
  const Chain& chain = std::get<Chain>(problem);
  if (!saved) return chain.activation(i.stage);
  return i.part == 0 ? chain.stage(i.stage).saved : chain.stage(i.stage).part(i.part);
}

Bytes MemoryByUse::total() const {
  Bytes sum;
  for (const Bytes b : bytes) sum += b;
  return sum;
}

absl::StatusOr<StepTimeline> TimelineOf(const Instance& instance, const Schedule& schedule) {
  Timeline timeline;
  absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(schedule, &timeline);
  if (!simulation.ok()) return simulation.status();
  const absl::StatusOr<std::vector<MemoryByUse>> memory = MemoryOf(instance, schedule, timeline);
  if (!memory.ok()) return memory.status();
  StepTimeline step;
  step.simulation = *simulation;
  step.events.reserve(schedule.size());
  std::vector<bool> ran(static_cast<size_t>(StageCount(instance.problem())) + 1, false);
  Nanos now;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const TimelinePoint& point = timeline[i];
    TimelineEvent event;
    event.instruction = schedule[i];
    const size_t stage = static_cast<size_t>(schedule[i].stage);
    event.work = WorkOf(schedule[i], ran[stage]);
    if (IsForward(schedule[i].op)) ran[stage] = true;
    event.start = point.start;
    event.end = point.end;
    // Compute passes by what runs on another stream.
    const bool on_compute = schedule[i].stream == Stream::kCompute;
    event.reached = on_compute ? point.start : now;
    event.left = on_compute ? point.end : now;
    now = event.left;
    event.running = memory->at(2 * i);
    event.held = memory->at(2 * i + 1);
    event.host = point.host;
    step.events.push_back(event);
  }
  return step;
}

namespace {

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
    // Whole, there would have been memory enough; what was reserved is not all live.
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
  static constexpr const char* kNames[] = {"workspace", "live beside the plan", "fragmentation",
                                           "taken elsewhere"};
  return kNames[static_cast<size_t>(cause)];
}

absl::StatusOr<MemoryFinding> FindMemoryCause(const Instance& instance, const Schedule& schedule,
                                              const MemoryReading& reading) {
  const absl::Status status = Check(reading, schedule.size());
  if (!status.ok()) return status;
  const absl::StatusOr<StepTimeline> step = TimelineOf(instance, schedule);
  if (!step.ok()) return step.status();
  const TimelineEvent& event = step->events[reading.instruction];
  MemoryFinding f;
  f.reading = reading;
  f.what = EventText(event,
                     StageLabels(instance.problem())[static_cast<size_t>(event.instruction.stage)]);
  f.planned = event.running;
  f.planned_before = reading.instruction == 0 ? StartOf(instance.problem())
                                              : step->events[reading.instruction - 1].held.total();
  f.planned_peak = step->simulation.peak;
  f.step = std::max(Bytes(0), reading.allocated - reading.before_step) + reading.asked;
  const Bytes beyond = std::max(Bytes(0), f.step - f.planned.total());
  f.beyond_plan = beyond > reading.rounding ? beyond : Bytes(0);
  f.in_pieces = reading.reserved - reading.allocated;
  f.cause = CauseOf(f);
  // Where the allocator was not at its limit, the device had no more for it.
  const Bytes there = AtLimit(reading) ? reading.limit : reading.reserved;
  f.missing = std::max(Bytes(0), reading.before_step + std::max(f.step, f.planned_peak) - there);
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
