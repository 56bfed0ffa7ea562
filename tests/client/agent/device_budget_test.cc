#include "client/agent/device_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/agent/agent.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/model/field_error.h"
#include "tests/client/agent/some_tensors.h"
#include "tests/client/device/test_device.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

int64_t ItemOf(const DeviceBudget& budget, const std::string& what) {
  for (const DeviceBudget::Item& item : budget.subtracted) {
    if (item.what.rfind(what, 0) == 0) return item.bytes.value();
  }
  return -1;
}

TEST(DeviceBudget, SubtractsEverythingElse) {
  const SomeTensors model;
  DeviceLimit limit;
  limit.memory = Bytes(10000);
  limit.optimizer = OptimizerKind::kAdam;
  limit.buckets = Bytes(70);
  limit.other = Bytes(30);
  limit.reserve = 0.1;
  const absl::StatusOr<DeviceBudget> budget = BudgetOfDevice(model, limit);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(ItemOf(*budget, "parameters"), 500);
  EXPECT_EQ(ItemOf(*budget, "buffers"), 40);
  EXPECT_EQ(ItemOf(*budget, "gradients (to be allocated)"), 400);
  EXPECT_EQ(ItemOf(*budget, "optimizer state (Adam, estimated)"), 800);
  EXPECT_EQ(ItemOf(*budget, "communication buckets"), 70);
  EXPECT_EQ(ItemOf(*budget, "other"), 30);
  EXPECT_EQ(ItemOf(*budget, "reserve (10% of the device)"), 1000);
  EXPECT_EQ(budget->activations, Bytes(10000 - 500 - 40 - 400 - 800 - 70 - 30 - 1000));
  const std::string text = ToString(*budget);
  EXPECT_THAT(text, HasSubstr("- parameters"));
  EXPECT_THAT(text, HasSubstr("= activations"));
}

TEST(DeviceBudget, CountsGradientsOnceAllocatedOrNot) {
  const SomeTensors model;
  DeviceLimit limit;
  limit.memory = Bytes(10000);
  const Bytes before = BudgetOfDevice(model, limit)->activations;
  model.EnsureGradients();
  const absl::StatusOr<DeviceBudget> after = BudgetOfDevice(model, limit);
  EXPECT_EQ(after->activations, before);
  EXPECT_EQ(ItemOf(*after, "gradients (allocated)"), 400);
}

TEST(DeviceBudget, KnowsOptimizersOrIsTold) {
  const SomeTensors model;
  DeviceLimit limit;
  limit.memory = Bytes(10000);
  EXPECT_EQ(ItemOf(*BudgetOfDevice(model, limit), "optimizer state"), 0);
  limit.optimizer = OptimizerKind::kMomentum;
  EXPECT_EQ(ItemOf(*BudgetOfDevice(model, limit), "optimizer state"), 400);
  limit.optimizer_state = Bytes(123);
  EXPECT_EQ(ItemOf(*BudgetOfDevice(model, limit), "optimizer state (given)"), 123);
}

TEST(DeviceBudget, NamesWhatDoesNotFit) {
  const SomeTensors model;
  DeviceLimit limit;
  limit.memory = Bytes(1200);
  limit.optimizer = OptimizerKind::kAdam;
  limit.reserve = 0;
  const absl::Status status = BudgetOfDevice(model, limit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(GetFieldViolation(status));
  EXPECT_THAT(GetFieldViolation(status)->rule, HasSubstr("260 B, optimizer state (Adam"));
  EXPECT_THAT(GetFieldViolation(status)->rule, HasSubstr("800 B"));
  limit.memory = Bytes(1741);
  EXPECT_EQ(BudgetOfDevice(model, limit)->activations, Bytes(1));
}

// Of memory that it knows, and that a caller need not state.
TEST(DeviceBudget, IsWhatTheDeviceHasFreeWhereTheCallerSaysNothing) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  const TestNetwork network = MakeTestNetwork("mlp", device);
  const DeviceLimit nothing;
  TestDevice::memory().SetLimit(int64_t{200} << 20);
  const auto budget_of = [&] { return BudgetOfDevice(network.model, nothing, device.execution); };
  const absl::StatusOr<DeviceBudget> budget = budget_of();
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->device, Bytes(int64_t{200} << 20) - device.execution->meter()->block_bytes() +
                                Bytes(ItemOf(*budget, "parameters") + ItemOf(*budget, "buffers") +
                                      ItemOf(*budget, "gradients (allocated)")));
  {
    // What else is live is not the activations', what is kept and unused is.
    const at::Tensor other =
        torch::empty({8 << 20}, at::TensorOptions(device.device).dtype(at::kByte));
    EXPECT_EQ(budget_of()->device, budget->device - Bytes(8 << 20));
  }
  EXPECT_EQ(budget_of()->device, budget->device);
  // An agent asks when it is made.
  AgentOptions options;
  options.device = device.execution;
  options.device_limit = nothing;
  Agent agent(&network.model, options);
  const auto adopted = agent.Plan(Batch{{network.input}, network.target});
  EXPECT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_LE(adopted->plan.budget, budget->activations);
  TestDevice::memory().SetLimit(INT64_MAX);
  EXPECT_EQ(BudgetOfDevice(network.model, nothing, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

Bytes BytesOf(const std::vector<at::Tensor>& tensors) {
  Bytes bytes;
  for (const at::Tensor& tensor : tensors) bytes += Bytes(static_cast<int64_t>(tensor.nbytes()));
  return bytes;
}

// A device that has what the budget says and not 64 bytes more.
TEST(DeviceBudget, StepsFitExactlyAlsoWithTiedParameters) {
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  for (const char* const name : {"tied", "norm_cnn"}) {
    SCOPED_TRACE(name);
    const TestNetwork network = MakeTestNetwork(name);
    const Bytes input = BytesOf({network.input});
    const Bytes model = BytesOf(network.model.parameters()) + BytesOf(network.model.parameters()) +
                        BytesOf(network.model.buffers());
    AgentOptions options;
    options.out_of_memory.tries = 0;
    Agent first(&network.model, options);
    const auto wanted = first.Plan(network.input, network.target, LeastBudget{});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const Bytes peak = wanted->plan.prediction.peak;
    DeviceLimit limit;
    limit.reserve = 0;
    limit.other = allocator->current() - model - input;
    limit.memory = limit.other + model + TiedSums(network.model) + peak;
    const absl::StatusOr<DeviceBudget> budget = BudgetOfDevice(network.model, limit);
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->activations, peak);
    EXPECT_EQ(Bytes(ItemOf(*budget, "sums of tied")), TiedSums(network.model));
    EXPECT_EQ(ItemOf(*budget, "sums of tied") > 0, std::string(name) == "tied");

    options.device_limit = limit;
    Agent agent(&network.model, options);
    const Batch batch{{network.input}, network.target};
    ASSERT_TRUE(agent.UseProfile(batch, *first.profile()).ok());
    const auto adopted = agent.Plan(batch);
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
    const Bytes spare = peak - adopted->plan.prediction.peak;
    allocator->SetLimit(limit.memory - spare - Bytes(64));
    EXPECT_TRUE(absl::IsResourceExhausted(agent.Step(batch).status()));
    allocator->SetLimit(limit.memory - spare);
    const absl::StatusOr<StepReport> step = agent.Step(batch);
    allocator->ClearLimit();
    EXPECT_TRUE(step.ok()) << step.status();
  }
}

}  // namespace
}  // namespace stowage
