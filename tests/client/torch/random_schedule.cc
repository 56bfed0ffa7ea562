#include "tests/client/torch/random_schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

int Pick(int low, int high, std::mt19937* random) {
  return std::uniform_int_distribution<int>(low, high)(*random);
}

// Backwards of stages t..s; a^{s-1} is held.
void Persistent(int s, int t, std::mt19937* random, Schedule* schedule) {
  if (s == t || Pick(0, 2, random) == 0) {
    schedule->push_back(ForwardSave(s));
    if (s < t) Persistent(s + 1, t, random, schedule);
    schedule->push_back(Backward(s));
    return;
  }
  const int split = Pick(s + 1, t, random);
  schedule->push_back(ForwardNoSave(s));
  for (int l = s + 1; l < split; ++l) schedule->push_back(ForwardNoSaveFreeInput(l));
  Persistent(split, t, random, schedule);
  Persistent(s, split - 1, random, schedule);
}

std::pair<Instruction, Instruction> RandomPair(int l, std::mt19937* random) {
  const Instruction discard_plain = Discard(TensorKind::kActivation, l);
  const Instruction discard_saved = Discard(TensorKind::kSaved, l);
  switch (Pick(0, 5, random)) {
    case 0:
      return {discard_plain, ForwardNoSave(l)};
    case 1:
      return {ForwardNoSave(l), discard_plain};
    case 2:
      return {ForwardSave(l), discard_saved};
    case 3:
      return {discard_saved, ForwardSave(l)};
    case 4:
      return {DropSavedKeepOutput(l), ForwardSave(l)};
    default:
      return {ForwardSave(l), DropSavedKeepOutput(l)};
  }
}

// Of all tensors that the evaluator may let go: activations, saved tensors whole and in parts.
std::vector<Instruction> OffloadStarts(const Chain& chain) {
  std::vector<Instruction> starts;
  for (int l = 0; l <= chain.length(); ++l) {
    starts.push_back(OffloadStart(TensorKind::kActivation, l));
  }
  for (int l = 1; l <= chain.length() + 1; ++l) {
    for (int k = 0; k <= chain.stage(l).parts(); ++k) {
      starts.push_back(OffloadStart(TensorKind::kSaved, l, k));
    }
  }
  return starts;
}

// What vertices own, and their extras.
std::vector<Instruction> OffloadStarts(const Graph& graph) {
  std::vector<Instruction> starts;
  for (int v = 0; v < graph.size(); ++v) {
    if (graph.storage(v) == v) starts.push_back(OffloadStart(TensorKind::kActivation, v + 1));
    if (graph.vertex(v).extra_saved > Bytes(0)) {
      starts.push_back(OffloadStart(TensorKind::kSaved, v + 1));
    }
  }
  return starts;
}

// `accepted` is the evaluator's word on a schedule.
Schedule AddTrips(const std::vector<Instruction>& starts,
                  const std::function<bool(const Schedule&)>& accepted, Schedule schedule,
                  int count, std::mt19937* random) {
  for (int attempt = 0; attempt < 400 * count && count > 0; ++attempt) {
    const Instruction start =
        starts[static_cast<size_t>(Pick(0, static_cast<int>(starts.size()) - 1, random))];
    const int size = static_cast<int>(schedule.size());
    const int low = Pick(0, size, random);
    const int high = Pick(low, size, random);
    std::array<int, 4> at{};
    for (int& position : at) position = Pick(low, high, random);
    std::sort(at.begin(), at.end());
    Schedule changed = schedule;
    const auto insert = [&](int position, const Instruction& instruction) {
      changed.insert(changed.begin() + position, instruction);
    };
    if (Pick(0, 4, random) == 0) {
      insert(at[2], Discard(start.tensor, start.stage));
    } else {
      insert(at[3], PrefetchWait(start.tensor, start.stage, start.part));
      insert(at[2], PrefetchStart(start.tensor, start.stage, start.part));
    }
    insert(at[1], OffloadWait(start.tensor, start.stage, start.part));
    insert(at[0], start);
    if (!accepted(changed)) continue;
    schedule = std::move(changed);
    --count;
  }
  return schedule;
}

// Which no executor carries out.
bool SavesAfterBackward(const Schedule& schedule) {
  std::set<int> done;
  return std::any_of(schedule.begin(), schedule.end(), [&done](const Instruction& instruction) {
    if (instruction.op == Op::kBackward) done.insert(instruction.stage);
    return instruction.op == Op::kForwardSave && done.count(instruction.stage) > 0;
  });
}

}  // namespace

Schedule RandomPersistentSchedule(const Chain& chain, std::mt19937* random) {
  Schedule schedule;
  Persistent(1, chain.length() + 1, random, &schedule);
  return schedule;
}

Schedule Disturb(const Chain& chain, Schedule schedule, int count, std::mt19937* random) {
  // Most random pairs are not valid; the evaluator says which are.
  for (int attempt = 0; attempt < 200 * count && count > 0; ++attempt) {
    const auto [first, second] = RandomPair(Pick(1, chain.length() + 1, random), random);
    const int i = Pick(0, static_cast<int>(schedule.size()) - 1, random);
    const int j = Pick(i, static_cast<int>(schedule.size()) - 1, random);
    Schedule changed = schedule;
    changed.insert(changed.begin() + j, second);
    changed.insert(changed.begin() + i, first);
    if (SavesAfterBackward(changed) || !Evaluator(chain).Run(changed).ok()) continue;
    schedule = std::move(changed);
    --count;
  }
  return schedule;
}

std::string Text(const Schedule& schedule) {
  std::string text;
  for (const Instruction& instruction : schedule) text += ToString(instruction) + "\n";
  return text;
}

TransferModel FastLink(bool full_duplex) {
  const CopyCost cost{int64_t{8} << 30, Nanos(1000)};
  return {cost, cost, full_duplex, Bytes(int64_t{1} << 30)};
}

Schedule WithTrips(const Chain& chain, const TransferModel& link, const Schedule& schedule,
                   int count, std::mt19937* random) {
  const auto accepted = [&](const Schedule& changed) {
    return Evaluator(Instance(chain, link)).Run(changed).ok();
  };
  return AddTrips(OffloadStarts(chain), accepted, schedule, count, random);
}

Schedule WithTrips(const Graph& graph, const TransferModel& link, const Schedule& schedule,
                   int count, std::mt19937* random) {
  const auto accepted = [&](const Schedule& changed) {
    return Evaluator(Instance(graph, link)).Run(changed).ok();
  };
  return AddTrips(OffloadStarts(graph), accepted, schedule, count, random);
}

Schedule RecomputeAll(const Chain& chain) {
  Schedule schedule;
  const int loss = chain.length() + 1;
  for (int l = 1; l < loss; ++l) schedule.push_back(ForwardNoSave(l));
  for (int l = loss; l >= 1; --l) {
    schedule.push_back(ForwardSave(l));
    schedule.push_back(Backward(l));
  }
  return schedule;
}

}  // namespace stowage
