// The exact least memory against the plain recurrence.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/reference_recurrence.h"

namespace stowage {
namespace {

using ::stowage::testing::Describe;
using ::stowage::testing::PeriodicChain;
using ::stowage::testing::RandomChain;
using ::stowage::testing::RandomChainOptions;
using ::stowage::testing::ReferenceRecurrence;

// The table's own feasibility, found by another recurrence.
TEST(MinimumMemory, IsTheFirstMemoryWithAValue) {
  std::mt19937_64 rng(10);
  for (int round = 0; round < 200; ++round) {
    RandomChainOptions options;
    options.max_size = 8;
    options.with_flags = round % 2 == 0;
    options.with_stops = round % 5 > 2;
    const Chain chain = round % 3 == 0 ? PeriodicChain(20, 1 + round % 5, &rng)
                                       : RandomChain(1 + round % 30, options, &rng);
    const PersistentSpace space(chain, 1);
    const absl::StatusOr<MinimumMemory> least = ComputeMinimumMemory(space, SolveOptions());
    ASSERT_TRUE(least.ok());
    const int64_t memory = least->table(1, space.last()).memory;
    const ReferenceRecurrence reference(chain, 1, space.activation(0) + memory);
    EXPECT_TRUE(reference.Overhead(space.activation(0) + memory).has_value()) << Describe(chain);
    EXPECT_FALSE(reference.Overhead(space.activation(0) + memory - 1).has_value())
        << Describe(chain);

    // The splits attain it.
    const Schedule schedule = PersistentBacktrack::Run(
        space, memory, [&least](int s, int t, int64_t) { return least->table(s, t).split; });
    const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(schedule);
    ASSERT_TRUE(simulation.ok()) << simulation.status() << Describe(chain);
    EXPECT_LE(simulation->peak.value(), LeastBudgetOf(space, *least)) << Describe(chain);
  }
}

// Scaled by more than a double holds, the choices stay the same.
TEST(MinimumMemory, IsExactForHugeSizes) {
  std::mt19937_64 rng(11);
  for (int round = 0; round < 50; ++round) {
    const Chain chain = RandomChain(1 + round % 20, RandomChainOptions(), &rng);
    constexpr int64_t kScale = (int64_t{1} << 49) + 1;
    const auto scale = [](Bytes* size) { *size = Bytes(size->value() * kScale); };
    ChainSpec spec = chain.spec();
    scale(&spec.input);
    spec.stages.push_back(spec.loss);
    for (Stage& s : spec.stages) {
      for (Bytes* size : {&s.output, &s.saved, &s.output_gradient, &s.forward_saving_overhead,
                          &s.forward_overhead, &s.backward_overhead}) {
        scale(size);
      }
    }
    spec.loss = spec.stages.back();
    spec.stages.pop_back();
    const absl::StatusOr<Chain> scaled = Chain::Create(spec);
    ASSERT_TRUE(scaled.ok()) << scaled.status();
    const auto small = ComputeMinimumMemory(PersistentSpace(chain, 1), SolveOptions());
    const auto large = ComputeMinimumMemory(PersistentSpace(*scaled, 1), SolveOptions());
    ASSERT_TRUE(small.ok() && large.ok());
    for (int s = 1; s <= chain.length() + 1; ++s) {
      for (int t = s; t <= chain.length() + 1; ++t) {
        EXPECT_EQ(large->table(s, t).memory, small->table(s, t).memory * kScale);
        EXPECT_EQ(large->table(s, t).split, small->table(s, t).split);
      }
    }
  }
}

}  // namespace
}  // namespace stowage
