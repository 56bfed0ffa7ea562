// Offloading where a stage's saved tensors go one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"
#include "tests/solvers/transfer/random_offload.h"

namespace stowage::testing {
namespace {

Stage Saving(int64_t output, const std::vector<int64_t>& tensors) {
  Stage stage;
  stage.output = stage.saved = Bytes(output);
  for (const int64_t bytes : tensors) {
    stage.saved += Bytes(bytes);
    stage.saved_tensors.push_back(Bytes(bytes));
  }
  return stage;
}

std::vector<std::vector<int>> PartsOf(const std::vector<PartGroup>& groups) {
  std::vector<std::vector<int>> parts;
  for (const PartGroup& group : groups) parts.push_back(group.parts);
  return parts;
}

using Parts = std::vector<std::vector<int>>;

TEST(PartGroups, AreLargeEnough) {
  EXPECT_TRUE(PartGroupsOf(Saving(100, {})).empty());
  EXPECT_EQ(PartsOf(PartGroupsOf(Saving(400, {200, 200}))), (Parts{{1}, {2}, {3}}));
  // Nothing is worth a copy below 1/800; neighbours make up 100 together.
  EXPECT_EQ(PartsOf(PartGroupsOf(Saving(400, {61, 1, 39, 300}))), (Parts{{1, 3}, {4}, {5}}));
  // What is left over goes with the group before.
  EXPECT_EQ(PartsOf(PartGroupsOf(Saving(400, {300, 2, 90}))), (Parts{{1, 2, 3}, {4}}));
  EXPECT_EQ(PartsOf(PartGroupsOf(Saving(780, {10, 10}))), (Parts{{1, 2}, {3}}));
  EXPECT_EQ(PartsOf(PartGroupsOf(Saving(0, {0, 0}))), (Parts{{3}}));
  EXPECT_LE(PartGroupsOf(Saving(10, std::vector<int64_t>(990, 1))).size(), 8u);
}

TEST(PartGroups, HoldAllButTheSmallest) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int64_t> tensors(rng() % 20 + 1);
    for (int64_t& bytes : tensors) bytes = static_cast<int64_t>(rng() % (i % 2 == 0 ? 1000 : 30));
    const Stage stage = Saving(static_cast<int64_t>(rng() % 100), tensors);
    const std::vector<PartGroup> groups = PartGroupsOf(stage);
    Bytes sum;
    for (const PartGroup& group : groups) sum += group.bytes;
    EXPECT_LE(groups.size(), 9u);
    EXPECT_LE(sum, stage.saved);
    EXPECT_GE(sum.value(), stage.saved.value() -
                               static_cast<int64_t>(tensors.size()) * (stage.saved.value() / 800));
    EXPECT_EQ(groups.back().parts, std::vector<int>{stage.parts()});
  }
}

// By how much the copies of parts may take longer than copies of the groups.
Nanos CopiesBeside(const ComputeTrace& trace, const TraceProblem& problem, const Chain& chain,
                   const OffloadTimeline& timeline) {
  Nanos more;
  for (const TimedCopy& copy : timeline.offloads) {
    const int index = problem.tensor[static_cast<size_t>(copy.activation)];
    if (index < 0) continue;
    const ComputeTrace::Tensor& tensor = trace.tensors[static_cast<size_t>(index)];
    for (const CopyCost& cost :
         {problem.problem.link().to_host, problem.problem.link().to_device}) {
      for (const int part : tensor.parts) {
        more += CopyTime(cost, chain.stage(tensor.stage).part(part));
      }
      if (!tensor.parts.empty()) more -= CopyTime(cost, tensor.bytes);
    }
  }
  return more;
}

TEST(WithTransfers, OfPartsIsAcceptedWithinTheMemory) {
  std::mt19937_64 rng(2);
  int in_parts = 0, late = 0;
  for (int i = 0; i < 3000; ++i) {
    const Chain chain = WithSavedTensors(RandomChain(1 + i % 6, VariedOptions(i), &rng), &rng);
    const TransferModel link = RandomTransferModel(&rng);
    const Schedule compute = i % 2 == 0 ? RandomSchedule(chain, &rng) : StoreAllSchedule(chain);
    const ComputeTrace trace = *TraceOf(chain, compute, Granularity::kParts);
    const Simulation plain = *Evaluator(chain).Run(compute);
    for (int k = 0; k < 4; ++k) {
      const Bytes memory(
          static_cast<int64_t>(rng() % static_cast<uint64_t>(plain.peak.value() + 1)));
      const TraceProblem problem = *MakeTraceProblem(trace, link, memory);
      ASSERT_EQ(problem.problem.peak(), plain.peak) << Describe(chain);
      const std::optional<OffloadTimeline> timeline =
          ReplaySet(problem.problem, RandomSet(problem, &rng));
      if (!timeline) continue;
      const Schedule schedule = WithTransfers(compute, trace, problem, *timeline);
      const absl::StatusOr<Simulation> simulation = Evaluator(Instance(chain, link)).Run(schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(chain);
      EXPECT_LE(simulation->peak, memory) << Describe(chain);
      EXPECT_EQ(simulation->offloaded, timeline->host_peak);
      EXPECT_EQ(simulation->prefetched, simulation->offloaded);
      in_parts += std::any_of(schedule.begin(), schedule.end(),
                              [](const Instruction& s) { return s.part != 0; });
      const Nanos limit = timeline->makespan + CopiesBeside(trace, problem, chain, *timeline);
      if (simulation->makespan <= limit) continue;
      EXPECT_TRUE(OffloadsMeetPrefetches(problem.problem, *timeline)) << Describe(chain);
      ++late;
    }
  }
  EXPECT_GT(in_parts, 1500);
  EXPECT_LT(late, in_parts / 5);  // about a seventh, whatever is drawn
}

// Two stages of 1000 ns each way that save 800 bytes beside an output of 100. A byte takes 1 ns.
struct Half {
  Chain chain;
  TransferModel link;
};

Half HalfIsEnough() {
  ChainSpec spec;
  spec.stages = {Saving(100, {400, 400}), Saving(100, {400, 400})};
  for (Stage& stage : spec.stages) stage.forward_time = stage.backward_time = Nanos(1000);
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = 1000000000;
  link.host_memory = Bytes(1000000);
  return {*Chain::Create(spec), link};
}

TEST(OffloadFrom, MovesHalfOfAStageWhereThatIsFaster) {
  const Half half = HalfIsEnough();
  const Schedule compute = StoreAllSchedule(half.chain);
  // 1800 in all; 400 have to go, before stage 2 runs.
  const Bytes memory(1400);
  const ComputeTrace whole = *TraceOf(half.chain, compute);
  for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
    const auto at_once =
        OffloadFrom(Instance(half.chain, half.link), compute, whole, memory, *strategy, {});
    const auto found = OffloadFrom(Instance(half.chain, half.link), compute, memory, *strategy, {});
    ASSERT_TRUE(at_once.ok() && found.ok());
    ASSERT_TRUE(found->has_value());
    // A copy of 400 waits before forward 2 and, coming back, before backward 1. Saved 1 as a whole
    // is read by forward 2 and cannot be away by then.
    EXPECT_EQ((*found)->prediction.offloaded, Bytes(400));
    EXPECT_EQ((*found)->prediction.makespan, Nanos(4000 + 400 + 400));
    if (at_once->has_value()) {
      EXPECT_GT((*at_once)->prediction.makespan, (*found)->prediction.makespan);
    }
  }
}

TEST(OffloadFrom, OfPartsIsFasterOnNetworks) {
  TransferModel link;
  link.to_host = link.to_device = {12200000000, Nanos(10000)};
  link.host_memory = Bytes(int64_t{1} << 40);
  for (const char* name : {"resnet50", "densenet121"}) {
    NetworkOptions options;
    options.name = name;
    options.batch = 32;
    const Chain chain = *NetworkChain(options, ModelledV100());
    const Schedule compute = StoreAllSchedule(chain);
    const ComputeTrace whole = *TraceOf(chain, compute);
    const Bytes peak = Evaluator(chain).Run(compute)->peak;
    int faster = 0;
    for (const int percent : {90, 80, 70, 60, 50}) {
      const Bytes memory(peak.value() / 100 * percent);
      const auto at_once =
          OffloadFrom(Instance(chain, link), compute, whole, memory, GreedyOffload(), {});
      const auto found = OffloadFrom(Instance(chain, link), compute, memory, GreedyOffload(), {});
      ASSERT_TRUE(at_once.ok() && found.ok());
      ASSERT_TRUE(found->has_value()) << name << percent;
      if (!at_once->has_value()) continue;
      EXPECT_LE((*found)->prediction.makespan, (*at_once)->prediction.makespan);
      faster += (*found)->prediction.makespan < (*at_once)->prediction.makespan;
    }
    EXPECT_GE(faster, 3) << name;
  }
}

}  // namespace
}  // namespace stowage::testing
