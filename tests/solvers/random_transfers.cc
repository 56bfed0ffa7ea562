#include "tests/solvers/random_transfers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

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

// Puts an offload of one tensor into the schedule, each step of it a few instructions after the one
// before. It need not fit.
Schedule TryTransfer(const Chain& chain, Schedule schedule, std::mt19937_64* rng) {
  const bool saved = Draw(0, 2, rng) > 0;
  const TensorKind tensor = saved ? TensorKind::kSaved : TensorKind::kActivation;
  const int stage = Draw(saved ? 1 : 0, chain.length() + (saved ? 1 : 0), rng);
  Schedule steps = {OffloadStart(tensor, stage), OffloadWait(tensor, stage)};
  if (Draw(0, 3, rng) > 0) {
    steps.push_back(PrefetchStart(tensor, stage));
    steps.push_back(PrefetchWait(tensor, stage));
  }
  int at = Draw(0, static_cast<int>(schedule.size()), rng);
  for (const Instruction& step : steps) {
    schedule.insert(schedule.begin() + at, step);
    at = std::min(at + 1 + Draw(0, 5, rng), static_cast<int>(schedule.size()));
  }
  return schedule;
}

}  // namespace

TransferModel RandomTransferModel(std::mt19937_64* rng) {
  return {RandomCost(rng), RandomCost(rng), Draw(0, 1, rng) == 1,
          Bytes(std::numeric_limits<int64_t>::max())};
}

Schedule WithRandomTransfers(const Chain& chain, const Schedule& schedule,
                             const TransferModel& transfers, std::mt19937_64* rng) {
  static constexpr int kTries = 80;
  Schedule best = schedule;
  for (int i = 0; i < kTries; ++i) {
    Schedule next = TryTransfer(chain, best, rng);
    if (NaiveReplay(chain, next, &transfers).valid) best = std::move(next);
  }
  return best;
}

}  // namespace stowage::testing
