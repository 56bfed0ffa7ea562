#include "tests/client/torch/random_schedule.h"

#include <utility>

#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

int Pick(int low, int high, std::mt19937* random) {
  return std::uniform_int_distribution<int>(low, high)(*random);
}

// Backwards of stages t..s; a^{s-1} is held.
void Persistent(int s, int t, std::mt19937* random, Schedule* schedule) {
  if (s == t || Pick(0, 2, random) == 0) {
    schedule->push_back(ForwardKeepAll(s));
    if (s < t) Persistent(s + 1, t, random, schedule);
    schedule->push_back(Backward(s));
    return;
  }
  const int split = Pick(s + 1, t, random);
  schedule->push_back(ForwardKeepInput(s));
  for (int l = s + 1; l < split; ++l) schedule->push_back(ForwardKeepNothing(l));
  Persistent(split, t, random, schedule);
  Persistent(s, split - 1, random, schedule);
}

std::pair<Instruction, Instruction> RandomPair(int l, std::mt19937* random) {
  const Instruction discard_plain = Discard(TensorKind::kActivation, l);
  const Instruction discard_saved = Discard(TensorKind::kSaved, l);
  switch (Pick(0, 5, random)) {
    case 0:
      return {discard_plain, ForwardKeepInput(l)};
    case 1:
      return {ForwardKeepInput(l), discard_plain};
    case 2:
      return {ForwardKeepAll(l), discard_saved};
    case 3:
      return {discard_saved, ForwardKeepAll(l)};
    case 4:
      return {Reduce(l), ForwardKeepAll(l)};
    default:
      return {ForwardKeepAll(l), Reduce(l)};
  }
}

}  // namespace

Schedule RandomPersistentSchedule(const Chain& chain, std::mt19937* random) {
  Schedule schedule;
  Persistent(1, chain.length() + 1, random, &schedule);
  return schedule;
}

Schedule Disturb(const Chain& chain, Schedule schedule, int count, std::mt19937* random) {
  // Most random pairs are not valid; the referee says which are.
  for (int attempt = 0; attempt < 200 * count && count > 0; ++attempt) {
    const auto [first, second] = RandomPair(Pick(1, chain.length() + 1, random), random);
    const int i = Pick(0, static_cast<int>(schedule.size()) - 1, random);
    const int j = Pick(i, static_cast<int>(schedule.size()) - 1, random);
    Schedule changed = schedule;
    changed.insert(changed.begin() + j, second);
    changed.insert(changed.begin() + i, first);
    if (!Simulate(chain, changed).ok()) continue;
    schedule = std::move(changed);
    --count;
  }
  return schedule;
}

}  // namespace stowage
