// The agent on models of any shape.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/state_digest.h"
#include "tests/client/agent/fake_training.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

// Two inputs, a residual connection, dropout, and a loss that reads the target. No convolutions, whose workspaces
// differ between processors: a share of its memory allows the same everywhere.
struct TwoInputs {
  TwoInputs() : model("two_inputs") {
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
    torch::manual_seed(8);
  }

  Batch CopyOfBatch() const {
    return {{batch.inputs[0].clone(), batch.inputs[1].clone()}, batch.target};
  }

  GraphModel model;
  Batch batch;
};

TEST(AgentGraph, TrainsByPlansLikePlainTraining) {
  TwoInputs planned;
  AgentOptions options;
  options.profile.repeats = 2;
  Agent agent(&planned.model, options);
  const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(planned.batch, ShareOfStoreAll{0.75});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);

  TwoInputs plain;
  const absl::StatusOr<StepReport> expected =
      PlainGraphStep(plain.model, plain.CopyOfBatch().inputs, plain.batch.target);
  ASSERT_TRUE(expected.ok()) << expected.status();
  torch::manual_seed(8);
  const absl::StatusOr<StepReport> step = agent.Step(planned.CopyOfBatch());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, expected->loss);
  EXPECT_EQ(GradientDigest(planned.model), GradientDigest(plain.model));
  EXPECT_LE(step->peak, adopted->plan.budget);
  EXPECT_GT(step->recomputed_forwards, 0);
  EXPECT_EQ(step->recomputed_forwards, adopted->plan.prediction.recomputed_forwards);
}

TEST(AgentGraph, ASecondJobFindsThePlanByKey) {
  FakeService service;
  TwoInputs first;
  TwoInputs second;
  std::vector<Digest> digests;
  for (TwoInputs* job : {&first, &second}) {
    Agent agent(MakeTrainedModel(&job->model), service.Connect(), {});
    const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(job->batch, ShareOfStoreAll{0.75});
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    digests.push_back(adopted->digest);
    EXPECT_TRUE(agent.Step(job->CopyOfBatch()).ok());
  }
  EXPECT_EQ(service.computed, 1);
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(AgentGraph, SwitchedOffItTrainsPlain) {
  TwoInputs job;
  AgentOptions options;
  options.off = [] { return true; };
  Agent agent(&job.model, options);
  const absl::StatusOr<StepReport> step = agent.Step(job.CopyOfBatch());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->recomputed_forwards, 0);
  EXPECT_EQ(agent.steps().plain, 1);
}

TEST(AgentGraph, TheNumberOfInputsIsTheModels) {
  TwoInputs job;
  Agent agent(&job.model, {});
  EXPECT_EQ(agent.Plan(job.batch.inputs[0], job.batch.target, ShareOfStoreAll{1.0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage
