#include "tests/bench/transfer_ways.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/strategies.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage {
namespace {

constexpr char kDecoder[] = "decoder_";
// Of a solve, by the clock; the largest networks would take longer.
constexpr std::chrono::seconds kJointTime(10);

TransferWay RecomputeWay(const Frontier& frontier) {
  return {kChainWay, [&frontier](Bytes memory) -> Makespan {
            const Frontier::Point* point = frontier.At(memory);
            if (point == nullptr) return std::nullopt;
            return std::optional<Nanos>(point->makespan);
          }};
}

TransferWay OffloadWay(const Chain& chain, const OffloadStrategy& strategy,
                       const TransferModel& link) {
  return {strategy.info().name, [&chain, &strategy, link](Bytes memory) -> Makespan {
            const auto found = testing::OffloadFrom(Instance(chain, link), StoreAllSchedule(chain),
                                                    memory, strategy, SolveOptions());
            if (!found.ok()) return found.status();
            if (!found->has_value()) return std::nullopt;
            return std::optional<Nanos>((*found)->prediction.makespan);
          }};
}

TransferWay JointWay(const Chain& chain, const TransferModel& link) {
  return {kJointWay, [&chain, link](Bytes memory) -> Makespan {
            const StopToken stop(StopToken::Clock::now() + kJointTime);
            PlanOptions options;
            options.solver = kJointWay;
            options.solve.stop = &stop;
            const absl::StatusOr<Plan> plan = MakePlan(Instance(chain, link), memory, options);
            if (absl::IsDeadlineExceeded(plan.status())) return std::nullopt;
            if (!plan.ok()) return plan.status();
            if (plan->status != PlanStatus::kFound) return std::nullopt;
            return std::optional<Nanos>(plan->prediction.makespan);
          }};
}

}  // namespace

TransferModel HalfDuplexLink(int64_t bytes_per_second) {
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = bytes_per_second;
  link.host_memory = Bytes(int64_t{1} << 50);
  return link;
}

absl::StatusOr<Chain> ModelledChain(const Configuration& configuration) {
  const std::string& name = configuration.network;
  DecoderOptions decoder;
  decoder.batch = configuration.batch;
  if (absl::StartsWith(name, kDecoder) &&
      absl::SimpleAtoi(name.substr(sizeof(kDecoder) - 1), &decoder.layers)) {
    const absl::StatusOr<Network> network = MakeDecoder(decoder);
    if (!network.ok()) return network.status();
    return ChainOf(*network, ModelledV100());
  }
  NetworkOptions options;
  options.name = name;
  options.image = configuration.image;
  options.batch = configuration.batch;
  return NetworkChain(options, ModelledV100());
}

absl::StatusOr<Frontier> RecomputeFrontier(const Chain& chain) {
  return MakeFrontier(chain, PlanOptions());
}

std::vector<TransferWay> AllTransferWays(const Chain& chain, const Frontier& recompute,
                                         const TransferModel& link) {
  std::vector<TransferWay> ways = {RecomputeWay(recompute)};
  for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
    ways.push_back(OffloadWay(chain, *strategy, link));
  }
  ways.push_back(JointWay(chain, link));
  return ways;
}

std::vector<TransferWay> Choose(std::vector<TransferWay> ways,
                                const std::vector<std::string>& names) {
  std::vector<TransferWay> chosen;
  for (const std::string& name : names) {
    const auto way = std::find_if(ways.begin(), ways.end(),
                                  [&](const TransferWay& w) { return w.name == name; });
    if (way != ways.end()) chosen.push_back(std::move(*way));
  }
  return chosen;
}

}  // namespace stowage
