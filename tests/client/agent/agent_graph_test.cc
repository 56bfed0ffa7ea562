// The agent on models of any shape.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/agent/batch.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "tests/client/agent/fake_training.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

Batch Moved(const Batch& batch, const TrainingDevice& device) {
  Batch moved;
  for (const at::Tensor& input : batch.inputs) moved.inputs.push_back(input.to(device.device));
  for (const at::Tensor& target : batch.target) moved.target.push_back(target.to(device.device));
  return moved;
}

class AgentOnDevicesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  AgentOptions Options() const {
    AgentOptions options;
    options.profile.repeats = 2;
    options.device = device_.execution;
    return options;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

// Two inputs, a residual connection, dropout, and a loss that reads the target. No convolutions, whose workspaces
// differ between processors: a share of its memory allows the same everywhere.
struct TwoInputs {
  explicit TwoInputs(const TrainingDevice& device) : model("two_inputs") {
    torch::manual_seed(7);
    const int points = model.AddInput("points");
    const int scale = model.AddInput("scale");
    int x = model.AddModule("stem", "linear", points, nn::Linear(3, 8));
    x = model.AddFunction("scaled", "mul", {x, scale},
                          [](const std::vector<at::Tensor>& in) { return in[0] * in[1]; });
    for (int block = 0; block < 3; ++block) {
      int y = model.AddModule("mix", "linear", x, nn::Linear(8, 8));
      y = model.AddFunction("tanh", "tanh", {y},
                            [](const std::vector<at::Tensor>& in) { return in[0].tanh(); });
      y = model.AddModule("drop", "dropout", y, nn::Dropout(0.3));
      x = model.AddFunction("sum", "add", {x, y},
                            [](const std::vector<at::Tensor>& in) { return in[0] + in[1]; });
    }
    x = model.AddFunction("pool", "mean", {x},
                          [](const std::vector<at::Tensor>& in) { return in[0].mean(1); });
    x = model.AddModule("head", "linear", x, nn::Linear(8, 5));
    ModelNode loss;
    loss.name = "loss";
    loss.op_kind = "cross_entropy";
    loss.inputs = {x};
    loss.reads_target = true;
    loss.forward = [](const std::vector<at::Tensor>& in) {
      return nn::functional::cross_entropy(in[0], in[1]);
    };
    model.AddNode(std::move(loss));
    batch.inputs = {torch::randn({4, 256, 3}), torch::rand({4, 1, 8}) + 0.5};
    batch.target = torch::randint(5, {4}, torch::kLong);
    MoveTo(device.device, model);
    batch = Moved(batch, device);
    torch::manual_seed(8);
    random = RandomState::Capture(device.device);
  }

  Batch CopyOfBatch() const {
    return {{batch.inputs[0].clone(), batch.inputs[1].clone()}, batch.target};
  }

  GraphModel model;
  Batch batch;
  RandomState random;  // of a step
};

TEST(TrainedModels, KeptPartsMayCommunicate) {
  for (const bool kept : {false, true}) {
    ModelStage stage;
    stage.must_keep = kept;
    stage.name = stage.op_kind = "stage";
    stage.forward = [](const at::Tensor& x) { return x * 2; };
    ChainModel chain("chain");
    chain.AddStage(stage);
    EXPECT_EQ(MakeTrainedModel(&chain)->may_communicate(), kept);

    GraphModel graph("graph");
    ModelNode node;
    node.must_keep = kept;
    node.name = node.op_kind = "node";
    node.inputs = {graph.AddInput("x")};
    node.forward = [](const std::vector<at::Tensor>& x) { return x[0] * 2; };
    graph.AddNode(std::move(node));
    EXPECT_EQ(MakeTrainedModel(&graph)->may_communicate(), kept);
  }
}

class AgentGraphTest : public AgentOnDevicesTest {};

TEST_P(AgentGraphTest, TrainsByPlansLikePlainTraining) {
  TwoInputs planned(device_);
  Agent agent(&planned.model, Options());
  const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(planned.batch, ShareOfStoreAll{0.75});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);

  TwoInputs plain(device_);
  planned.random.Restore();
  const absl::StatusOr<StepReport> expected =
      PlainGraphStep(plain.model, plain.CopyOfBatch().inputs, plain.batch.target, device_.meter());
  ASSERT_TRUE(expected.ok()) << expected.status();
  planned.random.Restore();
  const absl::StatusOr<StepReport> step = agent.Step(planned.CopyOfBatch());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(planned.model), GradientDigest(plain.model));
  EXPECT_LE(step->peak, adopted->plan.budget);
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->recomputed_forwards, adopted->plan.prediction.recomputed_forwards);
}

TEST_P(AgentGraphTest, ASecondJobFindsThePlanByKey) {
  FakeService service;
  TwoInputs first(device_);
  TwoInputs second(device_);
  std::vector<Digest> digests;
  for (TwoInputs* job : {&first, &second}) {
    Agent agent(MakeTrainedModel(&job->model), service.Connect(), Options());
    const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(job->batch, ShareOfStoreAll{0.75});
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    digests.push_back(adopted->digest);
    EXPECT_TRUE(agent.Step(job->CopyOfBatch()).ok());
  }
  EXPECT_EQ(service.computed, 1);
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_P(AgentGraphTest, SwitchedOffItTrainsPlain) {
  TwoInputs job(device_);
  AgentOptions options = Options();
  options.off = [] { return true; };
  Agent agent(&job.model, options);
  const absl::StatusOr<StepReport> step = agent.Step(job.CopyOfBatch());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->recomputed_forwards, 0);
  EXPECT_EQ(agent.steps().plain, 1);
}

TEST_P(AgentGraphTest, TheNumberOfInputsIsTheModels) {
  TwoInputs job(device_);
  Agent agent(&job.model, Options());
  EXPECT_EQ(agent.Plan(job.batch.inputs[0], job.batch.target, ShareOfStoreAll{1.0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A chain whose blocks take and make pairs, read a mask of the batch, and are trained by two targets.
struct Blocks {
  explicit Blocks(const TrainingDevice& device) : model("blocks") {
    torch::manual_seed(7);
    const int mask = model.AddSideInput("mask");
    for (int block = 0; block < 4; ++block) {
      nn::Linear in(16, 48), out(48, 16);
      ModelStage stage;
      stage.name = stage.op_kind = "block";
      stage.outputs = 2;
      stage.side_inputs = {mask};
      stage.parameters = in->parameters();
      for (const at::Tensor& parameter : out->parameters()) stage.parameters.push_back(parameter);
      stage.forward = [in, out](const Tensors& x) mutable {
        const at::Tensor wide = in->forward(x[0] * x.back()).tanh();
        const at::Tensor hidden = at::dropout(out->forward(wide), 0.2, true) + x[0];
        return Tensors{hidden, x.size() == 2 ? wide.exp() : x[1] * wide};
      };
      model.AddStage(std::move(stage));
    }
    model.SetLoss("both", [](const Tensors& made, const Tensors& targets) {
      return at::mse_loss(made[0], targets[0]) + at::mse_loss(made[1], targets[1]);
    });
    batch.inputs = {torch::randn({64, 16}), torch::rand({64, 16})};
    batch.target = {torch::randn({64, 16}), torch::randn({64, 48})};
    MoveTo(device.device, model);
    batch = Moved(batch, device);
    torch::manual_seed(8);
    random = RandomState::Capture(device.device);
  }

  ChainModel model;
  Batch batch;
  RandomState random;  // of a step
};

class AgentBlocksTest : public AgentOnDevicesTest {};

TEST_P(AgentBlocksTest, ChainsOfBlocksTrainByPlansLikePlainTraining) {
  Blocks planned(device_);
  Agent agent(&planned.model, Options());
  const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(planned.batch, ShareOfStoreAll{0.8});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  Blocks plain(device_);
  planned.random.Restore();
  const auto expected =
      PlainStep(plain.model, plain.batch.inputs, plain.batch.target, device_.meter());
  ASSERT_TRUE(expected.ok()) << expected.status();
  planned.random.Restore();
  const absl::StatusOr<StepReport> step = agent.Step(planned.batch);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(planned.model), GradientDigest(plain.model));
  EXPECT_LE(step->peak, adopted->plan.budget);
  EXPECT_GT(step->recomputed_forwards, 0);

  planned.model.ZeroGradients();
  planned.random.Restore();
  const auto made = agent.Forward(planned.batch);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 2U);
  planned.model.loss()(*made, planned.batch.target).backward();
  EXPECT_EQ(GradientDigest(planned.model), GradientDigest(plain.model));
}

// The shapes of all of a batch's tensors are those that a plan is for.
TEST_P(AgentBlocksTest, APlanIsForShapesOfSideInputsAndTargets) {
  Blocks job(device_);
  Agent agent(&job.model, Options());
  ASSERT_TRUE(agent.Plan(job.batch, ShareOfStoreAll{1.0}).ok());
  const auto text = [&](const Batch& batch) { return BatchSignature::Of(batch, job.model).text(); };
  EXPECT_EQ(text(job.batch), "Float[64,16] Float[64,16] -> Float[64,16] Float[64,48]");
  Batch other = job.batch;
  other.inputs[1] = torch::ones({1, 16}).to(device_.device);
  EXPECT_NE(text(other), text(job.batch));
  EXPECT_TRUE(agent.Step(other).ok());
  EXPECT_EQ(agent.steps().by_larger, 1);
  EXPECT_EQ(agent.Step({{job.batch.inputs[0]}, job.batch.target}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Devices, AgentGraphTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });
INSTANTIATE_TEST_SUITE_P(Devices, AgentBlocksTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
