#include "tests/solvers/random_communication.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace stowage::testing {
namespace {

template <class IsCollective>
Schedule Communicating(Schedule schedule, const IsCollective& is_collective, std::mt19937_64* rng) {
  for (Instruction& i : schedule) {
    const bool is_op = IsForward(i.op) || i.op == Op::kBackward;
    if (is_op && is_collective(i.stage) && (*rng)() % 4 != 0) i.stream = Stream::kCommunication;
  }
  return schedule;
}

}  // namespace

Chain WithCollectives(const Chain& chain, const Schedule& schedule, std::mt19937_64* rng) {
  ChainSpec spec = chain.spec();
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const auto runs = std::count_if(schedule.begin(), schedule.end(), [l](const Instruction& i) {
      return IsForward(i.op) && i.stage == l;
    });
    Stage& stage = l <= chain.length() ? spec.stages[static_cast<size_t>(l) - 1] : spec.loss;
    stage.collective = runs == 1 && (*rng)() % 3 != 0;
  }
  return *Chain::Create(std::move(spec));
}

Schedule WithRandomCommunication(const Chain& chain, Schedule schedule, std::mt19937_64* rng) {
  return Communicating(
      std::move(schedule), [&chain](int l) { return chain.stage(l).collective; }, rng);
}

Schedule WithRandomCommunication(const Graph& graph, Schedule schedule, std::mt19937_64* rng) {
  return Communicating(
      std::move(schedule), [&graph](int v) { return graph.vertex(v - 1).collective; }, rng);
}

Schedule WithoutCommunication(Schedule schedule) {
  for (Instruction& i : schedule) {
    if (i.stream == Stream::kCommunication) i.stream = Stream::kCompute;
  }
  return schedule;
}

Schedule WithOtherStream(Schedule schedule, std::mt19937_64* rng) {
  Instruction& i = schedule[(*rng)() % schedule.size()];
  i.stream = i.stream == Stream::kCommunication ? StreamOf(i.op) : Stream::kCommunication;
  return schedule;
}

}  // namespace stowage::testing
