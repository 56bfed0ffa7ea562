// A step that fails somewhere is ended by another plan: gradients, and how often hooks are called, are those of plain
// training.
#include "client/torch/execute/added_gradients.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "solvers/planner.h"
#include "tests/client/torch/execute/chain_training.h"

namespace stowage {
namespace {

class AddedGradientsTest : public testing::TestWithParam<std::string>, protected ChainTraining {
 protected:
  AddedGradientsTest() : ChainTraining(GetParam()) {}

  static Schedule Least(const Chain& chain) {
    PlanOptions options;
    options.recompute_only = true;
    const auto plan = MakePlan(Instance(chain), LeastBudget{}, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->status, PlanStatus::kFound);
    return plan->schedule;
  }

  int64_t Trained() const {
    int64_t trained = 0;
    for (const at::Tensor& parameter : network_.model.parameters()) {
      trained += parameter.requires_grad() ? 1 : 0;
    }
    return trained;
  }
};

// By an allocator with less and less room, so that memory runs out in the forward, in recomputes and in backwards.
TEST_P(AddedGradientsTest, TheSecondTryAddsWhatTheFirstDidNot) {
  TrackingAllocator* meter = TrackingAllocator::Get();
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  auto least = Executor::Create(&network_.model, chain, Least(chain)).value();
  std::vector<int> hooked(network_.model.parameters().size());
  for (size_t i = 0; i < hooked.size(); ++i) {
    const at::Tensor& parameter = network_.model.parameters()[i];
    if (!parameter.requires_grad()) continue;
    parameter.register_hook([&hooked, i](const at::Tensor&) { ++hooked[i]; });
  }
  Rewind();
  ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target).ok());
  const std::vector<int> hooked_once = hooked;
  std::mt19937 random(3);
  int failed = 0;
  int between = 0;
  for (int i = 0; i < 3; ++i) {
    const Schedule schedule =
        i == 0 ? StoreAllSchedule(chain) : RandomPersistentSchedule(chain, &random);
    auto executor = Executor::Create(&network_.model, chain, schedule).value();
    for (int share = 98; share > 10; share -= 8) {
      SCOPED_TRACE(share);
      Rewind();
      hooked.assign(hooked.size(), 0);
      const AddedGradients added(network_.model.parameters());
      meter->SetLimit(meter->current() + Bytes(executor->prediction().peak.value() * share / 100));
      const auto first = executor->Step(network_.input, network_.target);
      meter->ClearLimit();
      if (first.ok()) continue;
      ASSERT_EQ(first.status().code(), absl::StatusCode::kResourceExhausted) << first.status();
      ++failed;
      const std::vector<at::Tensor> done = added.Parameters();
      const auto count = static_cast<int64_t>(done.size());
      if (count > 0 && count < Trained()) ++between;
      absl::StatusOr<StepReport> second = absl::UnknownError("");
      {
        const LeavingGradients leaving(done);
        second = least->Step(network_.input, network_.target);
      }
      ASSERT_TRUE(second.ok()) << second.status();
      ExpectEqual(plain, After(*second));
      EXPECT_EQ(hooked, hooked_once);
    }
  }
  EXPECT_GT(failed, 3);
  // As where the last stages are what takes the memory.
  if (GetParam() == "norm_cnn" || GetParam() == "plain_cnn") EXPECT_GT(between, 0);
  // Accumulators are as they were.
  Rewind();
  const auto after = PlainStep(network_.model, network_.input, network_.target);
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectEqual(plain, After(*after));
}

INSTANTIATE_TEST_SUITE_P(Networks, AddedGradientsTest, testing::ValuesIn(TestNetworkNames()),
                         [](const auto& network) { return network.param; });

TEST(AddedGradients, KnowsFirstGradientsAndThoseThatAreAddedTo) {
  at::Tensor none = at::ones({2}).requires_grad_();
  at::Tensor some = at::ones({2}).requires_grad_();
  at::Tensor other = at::ones({2}).requires_grad_();
  (some * other).sum().backward();
  const AddedGradients added({none, some, other, at::ones({2})});
  EXPECT_TRUE(added.Parameters().empty());
  (some * 2 + none).sum().backward();
  const std::vector<at::Tensor> found = added.Parameters();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].is_same(none));
  EXPECT_TRUE(found[1].is_same(some));
  const at::Tensor before = some.grad().clone();
  {
    const LeavingGradients leaving(found);
    (some * none * other).sum().backward();
  }
  EXPECT_TRUE(some.grad().equal(before));
  EXPECT_TRUE(other.grad().equal(at::full({2}, 2.0)));
  (some * 3).sum().backward();
  EXPECT_TRUE(some.grad().equal(before + 3));
}

}  // namespace
}  // namespace stowage
