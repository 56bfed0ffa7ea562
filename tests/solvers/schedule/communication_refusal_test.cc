// What may not communicate beside compute, and what does not know of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "tests/solvers/schedule/branches.h"
#include "tests/solvers/schedule/digits_chain.h"

namespace stowage {
namespace {

using testing::Branches;
using testing::BranchesSchedule;
using testing::Communicating;
using testing::DigitsLink;
using ::testing::HasSubstr;
using testing::operator+;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

std::string RefusalOf(const Schedule& schedule) {
  const absl::StatusOr<Simulation> s = Evaluator(Instance(Branches(), DigitsLink())).Run(schedule);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(s.status().message());
}

TEST(Communication, IsForTheOpsOfCollectiveVertices) {
  EXPECT_THAT(RefusalOf({Communicating(ForwardSave(1))}),
              HasSubstr("instruction 0 (communication: forward-save 1): only vertices that are "
                        "collective run on the communication stream"));
  const Schedule two = {ForwardSave(1), ForwardSave(2)};
  Instruction part = Communicating(Backward(2));
  part.part = 1;
  const std::vector<std::pair<Instruction, std::string>> cases = {
      {Communicating(ForwardNoSave(3)), "only vertices that are collective"},
      {Communicating(Backward(5)), "only vertices that are collective"},
      {Communicating(ForwardSave(0)), "the graph's vertices are 1 to 5"},
      {Communicating(Backward(6)), "the graph's vertices are 1 to 5"},
      {Communicating(ForwardSave(std::numeric_limits<int32_t>::min())), "vertices are 1 to 5"},
      {Communicating(ForwardNoSaveFreeInput(2)), "no place in the accounting of a graph"},
      {Communicating(ForwardSave(2)), "the vertex must not be recomputed"},
      {Communicating(Discard(kSaved, 2)), "runs on the compute stream only"},
      {Communicating(DropSavedKeepOutput(2)), "runs on the compute stream only"},
      {Communicating(OffloadStart(kSaved, 2)), "runs on the to-host stream only"},
      {Communicating(OffloadWait(kSaved, 2)), "runs on the compute stream only"},
      {Communicating(PrefetchStart(kSaved, 2)), "runs on the to-device stream only"},
      {part, "there is no such part"}};
  for (const auto& [instruction, reason] : cases) {
    EXPECT_THAT(RefusalOf(two + Schedule{instruction}),
                HasSubstr("instruction 2 (communication: "));
    EXPECT_THAT(RefusalOf(two + Schedule{instruction}), HasSubstr(reason));
  }
}

TEST(Communication, IsForTheOpsOfCollectiveStages) {
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[1].collective = true;
  const Chain chain = *Chain::Create(spec);
  const auto refusal = [&chain](const Schedule& schedule) {
    return std::string(Evaluator(chain).Run(schedule).status().message());
  };
  Schedule schedule = StoreAllSchedule(chain);
  ASSERT_EQ(schedule[1], ForwardSave(2));
  schedule[1] = Communicating(schedule[1]);
  EXPECT_TRUE(Evaluator(chain).Run(schedule).ok());
  schedule[2] = Communicating(schedule[2]);
  EXPECT_THAT(refusal(schedule),
              HasSubstr("instruction 2 (communication: forward-save 3): only stages that are "
                        "collective run on the communication stream"));
  EXPECT_THAT(refusal({Communicating(Backward(4))}), HasSubstr("the chain's stages are 1 to 3"));
  EXPECT_THAT(refusal({Communicating(ForwardSave(0))}), HasSubstr("the chain's stages are 1 to 3"));
}

TEST(Communication, RefusesWhatOverflows) {
  ChainSpec spec;
  spec.stages.resize(1);
  spec.stages[0].collective = true;
  spec.stages[0].forward_time = Nanos(1000);
  const Chain chain = *Chain::Create(spec);
  TransferModel late = DigitsLink();
  late.to_host.latency = Nanos(kMaxTotal - 100);
  const Schedule schedule = {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0),
                             PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0),
                             Communicating(ForwardSave(1))};
  EXPECT_THAT(std::string(Evaluator(Instance(chain, late)).Run(schedule).status().message()),
              HasSubstr("the communications overflow"));
}

TEST(Communication, ItsTimeIsTakenOffThePlansLowerBound) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(1000000);
  plan.schedule = BranchesSchedule();
  ASSERT_TRUE(ValidatePlan(Branches(), &plan).ok());
  EXPECT_EQ(plan.bounds.lower_bound, Nanos(640 - 200));
  EXPECT_EQ(plan.bounds.store_all_makespan, Nanos(640));
  EXPECT_EQ(plan.prediction.makespan, Nanos(520));
  plan.schedule = StoreAllSchedule(Branches());
  ASSERT_TRUE(ValidatePlan(Branches(), &plan).ok());
  EXPECT_EQ(plan.bounds.lower_bound, Nanos(640));
  EXPECT_EQ(plan.gap(), 0.0);
}

TEST(Communication, IsNoPartOfAnOrder) {
  for (const Instruction& i : WithDiscards(Branches(), BranchesSchedule())) {
    EXPECT_EQ(i.stream, Stream::kCompute);
  }
  EXPECT_TRUE(CheckNoCommunication(WithDiscards(Branches(), BranchesSchedule())).ok());
  EXPECT_EQ(CheckNoCommunication(BranchesSchedule()).message(),
            "instruction 1 (communication: forward-save 2): must run on the compute stream "
            "here");
}

}  // namespace
}  // namespace stowage
