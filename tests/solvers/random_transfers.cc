#include "tests/solvers/random_transfers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "tests/solvers/naive_graph_replay.h"
#include "tests/solvers/naive_replay.h"

namespace stowage::testing {
namespace {

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

CopyCost RandomCost(std::mt19937_64* rng) {
  static constexpr std::array<int64_t, 7> kBandwidths = {200000000,
                                                         333333333,
                                                         1000000000,
                                                         1000000000,
                                                         1700000000,
                                                         4000000000,
                                                         std::numeric_limits<int64_t>::max()};
  return {kBandwidths[static_cast<size_t>(Draw(0, 6, rng))],
          Nanos(Draw(0, 1, rng) * Draw(0, 9, rng))};
}

// Puts an offload of the tensor into the schedule, each step of it a few instructions after the one
// before. It need not fit.
Schedule TryTransfer(TensorKind tensor, int stage, int part, Schedule schedule,
                     std::mt19937_64* rng) {
  Schedule steps = {OffloadStart(tensor, stage, part), OffloadWait(tensor, stage, part)};
  if (Draw(0, 3, rng) > 0) {
    steps.push_back(PrefetchStart(tensor, stage, part));
    steps.push_back(PrefetchWait(tensor, stage, part));
  }
  int at = Draw(0, static_cast<int>(schedule.size()), rng);
  for (const Instruction& step : steps) {
    schedule.insert(schedule.begin() + at, step);
    at = std::min(at + 1 + Draw(0, 5, rng), static_cast<int>(schedule.size()));
  }
  return schedule;
}

// Keeps what `is_valid` accepts. `parts` says how many a stage has. Tensors are those of stages 1..last; `has_input`: and activation 0,
// but not the last activation.
template <class Parts, class IsValid>
Schedule TryTransfers(int last, bool has_input, const Schedule& schedule, const Parts& parts,
                      const IsValid& is_valid, std::mt19937_64* rng) {
  static constexpr int kTries = 80;
  Schedule best = schedule;
  for (int i = 0; i < kTries; ++i) {
    const bool saved = Draw(0, 2, rng) > 0;
    const int shift = has_input && !saved ? 1 : 0;
    const int stage = Draw(1 - shift, last - shift, rng);
    const int count = saved ? parts(stage) : 0;
    const int part = count > 0 ? std::max(0, Draw(-1, count, rng)) : 0;
    Schedule next =
        TryTransfer(saved ? TensorKind::kSaved : TensorKind::kActivation, stage, part, best, rng);
    if (is_valid(next)) best = std::move(next);
  }
  return best;
}

}  // namespace

TransferModel RandomTransferModel(std::mt19937_64* rng) {
  return {RandomCost(rng), RandomCost(rng), Draw(0, 1, rng) == 1,
          Bytes(std::numeric_limits<int64_t>::max())};
}

Schedule WithRandomTransfers(const Chain& chain, const Schedule& schedule,
                             const TransferModel& transfers, std::mt19937_64* rng) {
  const auto is_valid = [&](const Schedule& s) { return NaiveReplay(chain, s, &transfers).valid; };
  const auto parts = [&chain](int l) { return chain.stage(l).parts(); };
  return TryTransfers(chain.length() + 1, /*has_input=*/true, schedule, parts, is_valid, rng);
}

Schedule WithRandomTransfers(const Graph& graph, const Schedule& schedule,
                             const TransferModel& transfers, std::mt19937_64* rng) {
  const auto is_valid = [&](const Schedule& s) {
    return NaiveGraphReplay(graph, s, &transfers).valid;
  };
  const auto parts = [](int) { return 0; };
  return TryTransfers(graph.size(), /*has_input=*/false, schedule, parts, is_valid, rng);
}

Schedule Broken(Schedule schedule, int way, std::mt19937_64* rng) {
  const int last = static_cast<int>(schedule.size()) - 1;
  const int at = Draw(0, last, rng);
  Instruction& i = schedule[static_cast<size_t>(at)];
  switch (way) {
    case 0:
      schedule.erase(schedule.begin() + at);
      break;
    case 1:
      i.op = static_cast<Op>(Draw(0, 9, rng));
      i.stream = StreamOf(i.op);
      break;
    case 2:
      i.stage += Draw(0, 1, rng) == 0 ? 1 : -1;
      break;
    case 3:
      i.tensor = i.tensor == TensorKind::kSaved ? TensorKind::kActivation : TensorKind::kSaved;
      break;
    case 4:
      i.stream = static_cast<Stream>(Draw(0, 3, rng));
      break;
    case 5:
      if (at > 0) std::swap(i, schedule[static_cast<size_t>(at) - 1]);
      break;
    default: {
      const Instruction again = schedule[static_cast<size_t>(Draw(0, last, rng))];
      schedule.insert(schedule.begin() + at, again);
    }
  }
  return schedule;
}

}  // namespace stowage::testing
