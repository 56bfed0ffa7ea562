#include "solvers/report/step_timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/schedule_blocks.h"

namespace stowage {
namespace {

using Timeline = std::vector<TimelinePoint>;

absl::StatusOr<Simulation> Replay(const LinkedProblem& linked, const Schedule& schedule,
                                  Timeline* timeline) {
  if (const Graph* graph = std::get_if<Graph>(&linked.problem)) {
    return linked.transfers ? SimulateGraph(*graph, schedule, *linked.transfers, timeline)
                            : SimulateGraph(*graph, schedule, timeline);
  }
  const Chain& chain = std::get<Chain>(linked.problem);
  return linked.transfers ? Simulate(chain, schedule, *linked.transfers, timeline)
                          : Simulate(chain, schedule, timeline);
}

absl::StatusOr<ScheduleBlocks> Blocks(const LinkedProblem& linked, const Schedule& schedule) {
  return std::visit(
      [&](const auto& kind) {
        return linked.transfers ? BlocksOf(kind, schedule, *linked.transfers)
                                : BlocksOf(kind, schedule);
      },
      linked.problem);
}

MemoryUse UseOf(BlockUse use) {
  switch (use) {
    case BlockUse::kActivation:
      return MemoryUse::kActivations;
    case BlockUse::kSaved:
      return MemoryUse::kSaved;
    case BlockUse::kGradient:
      return MemoryUse::kGradients;
    case BlockUse::kWorkspace:
      return MemoryUse::kWorkspace;
  }
  return MemoryUse::kWorkspace;
}

// What each moment holds, for all of them at once: as blocks come and go.
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

  // By moment (schedule_blocks.h).
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
void MoveReduced(const Schedule& schedule, const ScheduleBlocks& blocks, MemoryBook* book) {
  std::multimap<int32_t, BlockLife> saved;
  for (size_t b = 0; b < blocks.lives.size(); ++b) {
    const BlockName& name = blocks.names[b];
    if (name.use == BlockUse::kSaved) saved.emplace(name.stage, blocks.lives[b]);
  }
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].op != Op::kReduce) continue;
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
    const int64_t moment = 2 * static_cast<int64_t>(index);
    if (i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart) {
      started[tensor] = moment;
      continue;
    }
    const MemoryUse from =
        i.tensor == TensorKind::kSaved ? MemoryUse::kSaved : MemoryUse::kActivations;
    book->Move(from, MemoryUse::kCopies, MovedBytes(problem, i), started[tensor], moment + 1);
  }
}

Schedule OnCompute(Schedule schedule) {
  for (Instruction& i : schedule) {
    if (i.stream == Stream::kCommunication) i.stream = Stream::kCompute;
  }
  return schedule;
}

// By moment. Of a schedule that the referee accepts.
absl::StatusOr<std::vector<MemoryByUse>> MemoryOf(const LinkedProblem& linked,
                                                  const Schedule& schedule,
                                                  const Timeline& timeline) {
  const Schedule plain = OnCompute(schedule);
  const absl::StatusOr<ScheduleBlocks> blocks = Blocks(linked, plain);
  if (!blocks.ok()) return blocks.status();
  MemoryBook book(schedule.size());
  for (size_t b = 0; b < blocks->lives.size(); ++b) {
    const BlockLife& life = blocks->lives[b];
    book.Take(UseOf(blocks->names[b].use), life.size, life.begin, life.end);
  }
  MoveReduced(plain, *blocks, &book);
  MoveCopies(linked.problem, plain, &book);
  std::vector<MemoryByUse> memory = book.Finish();
  // What the schedule takes beyond what it would with everything on compute, communications keep.
  for (size_t m = 0; m < memory.size(); ++m) {
    const TimelinePoint& point = timeline[m / 2];
    const Bytes kept = (m % 2 == 0 ? point.running : point.held) - memory[m].total();
    if (kept < Bytes(0) || (kept > Bytes(0) && plain == schedule)) {
      return absl::InternalError(absl::StrCat("moment ", m, ": uses do not add up"));
    }
    memory[m][MemoryUse::kCommunication] = kept;
  }
  return memory;
}

StepWork WorkOf(const Instruction& i, bool repeated) {
  switch (i.op) {
    case Op::kForwardKeepAll:
    case Op::kForwardKeepInput:
    case Op::kForwardKeepNothing:
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
    case Op::kReduce:
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

absl::StatusOr<StepTimeline> TimelineOf(const LinkedProblem& linked, const Schedule& schedule) {
  Timeline timeline;
  absl::StatusOr<Simulation> simulation = Replay(linked, schedule, &timeline);
  if (!simulation.ok()) return simulation.status();
  const absl::StatusOr<std::vector<MemoryByUse>> memory = MemoryOf(linked, schedule, timeline);
  if (!memory.ok()) return memory.status();
  StepTimeline step;
  step.simulation = *simulation;
  step.events.reserve(schedule.size());
  std::vector<bool> ran(static_cast<size_t>(StageCount(linked.problem)) + 1, false);
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

}  // namespace stowage
