#include "solvers/transfer/offload_problem.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

TransferModel Link() {
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = 1000000000;
  link.host_memory = Bytes(1000);
  return link;
}

OffloadSpec Spec() {
  OffloadSpec spec;
  spec.activations = {Bytes(1), Bytes(2), Bytes(3)};
  spec.ops = {{Nanos(1), Nanos(2), Bytes(1), Bytes(4)}, {Nanos(3), Nanos(4), Bytes(0), Bytes(2)}};
  spec.link = Link();
  spec.memory = Bytes(8);
  return spec;
}

TEST(OffloadProblem, KnownValues) {
  const OffloadProblem problem = *OffloadProblem::Create(Spec());
  EXPECT_EQ(problem.peak(), Bytes(8));          // op 1: 1+2+3 and 2
  EXPECT_EQ(problem.least_memory(), Bytes(7));  // both ops: 1+2+4, 2+3+2
  EXPECT_EQ(problem.ideal_time(), Nanos(10));
  EXPECT_EQ(problem.LowerBound(), Nanos(10));
  EXPECT_TRUE(problem.Admits({}));
  OffloadSpec spec = Spec();
  spec.memory = Bytes(7);
  spec.link.to_host.bytes_per_second = 100000000;
  spec.link.to_host.latency = Nanos(5);
  const OffloadProblem tight = *OffloadProblem::Create(spec);
  EXPECT_EQ(tight.overflow_bytes(), Bytes(1));
  EXPECT_EQ(tight.LowerBound(), Nanos(5 + 10 + 1));
  EXPECT_FALSE(tight.Admits({}));
  EXPECT_TRUE(tight.Admits({0}));
  EXPECT_FALSE(tight.Admits({1})) << "op 1 reads activation 1";
  spec.link.host_memory = Bytes(0);
  EXPECT_FALSE(OffloadProblem::Create(spec)->Admits({0}));
}

TEST(OffloadProblem, PeakIsTheEvaluatorsOfStoreAll) {
  std::mt19937_64 rng(51);
  for (int i = 0; i < 500; ++i) {
    const Chain chain = RandomChain(1 + i % 8, VariedOptions(i), &rng);
    const OffloadProblem problem = *MakeOffloadProblem(chain, Link(), Bytes(0));
    const auto all = Evaluator(chain).Run(StoreAllSchedule(chain));
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(problem.peak(), all->peak) << Describe(chain);
    EXPECT_EQ(problem.ideal_time(), all->makespan);
    EXPECT_EQ(problem.size(), chain.length() + 1);
  }
}

TEST(OffloadProblem, RefusesWhatItCannotMean) {
  const std::vector<std::pair<std::string, std::function<void(OffloadSpec*)>>> changes = {
      {"offload.ops", [](OffloadSpec* s) { s->ops.clear(); }},
      {"offload.activations", [](OffloadSpec* s) { s->activations.pop_back(); }},
      {"offload.activations[1]", [](OffloadSpec* s) { s->activations[1] = Bytes(-1); }},
      {"offload.activations[2]", [](OffloadSpec* s) { s->activations[2] = Bytes(kMaxTotal); }},
      {"offload.activations[2]",
       [](OffloadSpec* s) { s->activations[2] = Bytes(std::numeric_limits<int64_t>::max()); }},
      {"offload.ops[0].forward_need", [](OffloadSpec* s) { s->ops[0].forward_need = Bytes(-1); }},
      {"offload.ops[0].backward_need", [](OffloadSpec* s) { s->ops[0].backward_need = Bytes(-1); }},
      {"offload.ops[0].backward_need",
       [](OffloadSpec* s) { s->ops[0].backward_need = Bytes(kMaxTotal - 1); }},
      {"offload.ops[1].forward_time", [](OffloadSpec* s) { s->ops[1].forward_time = Nanos(-1); }},
      {"offload.ops[1].backward_time",
       [](OffloadSpec* s) { s->ops[1].backward_time = Nanos(kMaxTimeTotal); }},
      {"offload.activations[1].copy_time",
       [](OffloadSpec* s) {
         s->activations[1] = Bytes(kMaxTotal / 2);
         s->link.to_host.bytes_per_second = 1;
       }},
      {"offload.memory", [](OffloadSpec* s) { s->memory = Bytes(-1); }},
      {"transfers.to_host.bytes_per_second",
       [](OffloadSpec* s) { s->link.to_host.bytes_per_second = 0; }},
      {"transfers.to_device.latency_ns",
       [](OffloadSpec* s) { s->link.to_device.latency = Nanos(-1); }},
      {"transfers.host_memory_bytes", [](OffloadSpec* s) { s->link.host_memory = Bytes(-1); }},
  };
  for (const auto& [field, change] : changes) {
    OffloadSpec spec = Spec();
    change(&spec);
    const auto problem = OffloadProblem::Create(spec);
    ASSERT_FALSE(problem.ok()) << field;
    const auto violation = GetFieldViolation(problem.status());
    ASSERT_TRUE(violation.has_value()) << problem.status();
    EXPECT_EQ(violation->field, field);
  }
}

}  // namespace
}  // namespace stowage::testing
