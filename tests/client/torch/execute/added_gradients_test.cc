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
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/network_case.h"

namespace stowage {
namespace {

class AddedGradientsTest : public testing::TestWithParam<NetworkCase>, protected ChainTraining {
 protected:
  AddedGradientsTest()
      : ChainTraining(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}
  ~AddedGradientsTest() override { training_device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(training_device_); }

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

  // Bytes of those that it takes away.
  Bytes DropGradients() {
    int64_t bytes = 0;
    for (const at::Tensor& parameter : network_.model.parameters()) {
      if (!parameter.grad().defined()) continue;
      bytes += static_cast<int64_t>(parameter.grad().nbytes());
      parameter.mutable_grad().reset();
    }
    return Bytes(bytes);
  }

  // Gradients as parts of one tensor, as Megatron's are.
  void JoinGradients() {
    int64_t numbers = 0;
    for (const at::Tensor& parameter : network_.model.parameters()) numbers += parameter.numel();
    const at::Tensor all = at::zeros({numbers}, network_.model.parameters().front().options());
    int64_t begin = 0;
    for (const at::Tensor& parameter : network_.model.parameters()) {
      if (!parameter.requires_grad() || parameter.scalar_type() != at::kFloat) continue;
      parameter.mutable_grad() = all.narrow(0, begin, parameter.numel()).view(parameter.sizes());
      begin += parameter.numel();
    }
  }
};

// What the parameters have for gradients when a step begins.
enum class Start { kZeros, kPartsOfOne, kNoneAndAnArena, kNoneAndMeasured };

// By an allocator with less and less room, so that memory runs out in the forward, in recomputes and in backwards.
TEST_P(AddedGradientsTest, TheSecondTryAddsWhatTheFirstDidNot) {
  if (!training_device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  ExecutionDevice* const device = training_device_.execution;
  auto least = Executor::Create(&network_.model, chain, Least(chain), device).value();
  std::vector<int> hooked(network_.model.parameters().size());
  for (size_t i = 0; i < hooked.size(); ++i) {
    const at::Tensor& parameter = network_.model.parameters()[i];
    if (!parameter.requires_grad()) continue;
    parameter.register_hook([&hooked, i](const at::Tensor&) { ++hooked[i]; });
  }
  Rewind();
  ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target, meter_).ok());
  const std::vector<int> hooked_once = hooked;
  for (const Start start :
       {Start::kZeros, Start::kPartsOfOne, Start::kNoneAndAnArena, Start::kNoneAndMeasured}) {
    SCOPED_TRACE(static_cast<int>(start));
    if (start == Start::kPartsOfOne) JoinGradients();
    std::mt19937 random(3);
    int failed = 0;
    int between = 0;
    for (int i = 0; i < 3; ++i) {
      const Schedule schedule =
          i == 0 ? StoreAllSchedule(chain) : RandomPersistentSchedule(chain, &random);
      auto executor = Executor::Create(&network_.model, chain, schedule, device).value();
      Later<MeasuredStep> measured;
      if (start == Start::kNoneAndMeasured) executor->MeasureInto(&measured);
      for (int share = 98; share > 10; share -= 11) {
        SCOPED_TRACE(share);
        Rewind();
        hooked.assign(hooked.size(), 0);
        Bytes gradients;  // that the step makes, of zeros
        if (start >= Start::kNoneAndAnArena) gradients = DropGradients();
        const AddedGradients added(network_.model.parameters());
        if (start == Start::kNoneAndAnArena) {  // the agent makes them
          network_.model.EnsureGradients();
          gradients = Bytes(0);
        }
        training_device_.LimitMemory(gradients +
                                     Bytes(executor->prediction().peak.value() * share / 100));
        const auto first = executor->Step(network_.input, network_.target);
        training_device_.ClearLimit();
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
    const std::string& name = std::get<0>(GetParam());
    const bool adds = name == "norm_cnn" || name == "plain_cnn";
    if (adds && start != Start::kNoneAndMeasured) {
      EXPECT_GT(between, 0);
    }
  }
  // Accumulators are as they were.
  Rewind();
  const auto after = PlainStep(network_.model, network_.input, network_.target, meter_);
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectEqual(plain, After(*after));
}

INSTANTIATE_TEST_SUITE_P(Networks, AddedGradientsTest,
                         testing::Combine(testing::Values("plain_cnn", "norm_cnn", "mlp", "tied"),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, AddedGradientsTest,
                         testing::Combine(testing::Values("norm_cnn"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

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

TEST(AddedGradients, ZerosInPlaceOfNoneAreNotAdded) {
  at::Tensor parameter = at::ones({2}).requires_grad_();
  const AddedGradients added({parameter});
  parameter.mutable_grad() = at::zeros({2});
  EXPECT_TRUE(added.Parameters().empty());
  parameter.sum().backward();
  EXPECT_EQ(added.Parameters().size(), 1U);
}

TEST(AddedGradients, KnowsPartsOfOneTensorApart) {
  const at::Tensor gradients = at::zeros({4});
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 2; ++i) {
    parameters.push_back(at::ones({2}).requires_grad_());
    parameters.back().mutable_grad() = gradients.narrow(0, 2 * i, 2);
  }
  const AddedGradients added(parameters);
  parameters[1].sum().backward();
  const std::vector<at::Tensor> found = added.Parameters();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].is_same(parameters[1]));
}

// Hooks of others stay.
TEST(AddedGradients, TakesItsHooksAway) {
  at::Tensor parameter = at::ones({2}).requires_grad_();
  const AddedGradients outer({parameter});
  const at::Tensor sum = parameter.sum();
  { const AddedGradients inner({parameter}); }
  sum.backward();
  EXPECT_EQ(outer.Parameters().size(), 1U);
}

}  // namespace
}  // namespace stowage
