// Steps whose loss and backward are the caller's, under an agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/torch/execute/plain_step.h"
#include "tests/client/agent/agent_fixture.h"
#include "tests/client/agent/agent_life_fixture.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ForwardOf = std::function<at::Tensor(const at::Tensor& input)>;

class AgentForwardTest : public AgentTest, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentForwardTest()
      : AgentTest(TrainingDeviceNamed(GetParam())), start_(network_.model, device_.device) {
    options_.drift.replans = 0;
  }
  ~AgentForwardTest() override { device_.ClearLimit(); }

  // With a plan that recomputes.
  std::unique_ptr<Agent> Planned(double share = 0.7) {
    auto agent = std::make_unique<Agent>(&network_.model, options_);
    plan_ = agent->Plan(network_.input, network_.target, ShareOfStoreAll{share}).value().plan;
    EXPECT_EQ(plan_.status, PlanStatus::kFound);
    return agent;
  }

  ForwardOf Plain() {
    return [this](const at::Tensor& input) { return PlainForward(network_.model, input); };
  }
  ForwardOf By(Agent* agent) {
    return [this, agent](const at::Tensor& input) {
      const auto output = agent->Forward(input, network_.target.narrow(0, 0, input.size(0)));
      EXPECT_TRUE(output.ok()) << output.status();
      return output.value();
    };
  }

  // A loss of the caller's, which is not the model's.
  at::Tensor OwnLoss(const at::Tensor& output) {
    return network_.model.loss()(output, network_.target.narrow(0, 0, output.size(0))) * 2 +
           output.square().mean();
  }

  // What `loop` leaves behind from the start, with the loss that it returns.
  Outcome After(const std::function<double()>& loop) {
    start_.Rewind();
    const double loss = loop();
    return Outcome::Of(network_.model, loss, device_.device);
  }

  double StepWith(const ForwardOf& forward) {
    const at::Tensor loss = OwnLoss(forward(network_.input));
    loss.backward();
    return loss.item<double>();
  }

  Rewinder start_;
  stowage::Plan plan_;
};

TEST_P(AgentForwardTest, ALoopWithItsOwnLossIsThePlainOneAndIsNoted) {
  const Outcome plain = After([&] { return StepWith(Plain()); });
  options_.measure_steps = true;
  const auto agent = Planned();
  const Outcome planned = After([&] { return StepWith(By(agent.get())); });
  ExpectEqual(plain, planned);
  EXPECT_EQ(agent->steps().planned, 1);
  EXPECT_EQ(agent->memory().budget, plan_.budget);
  EXPECT_GT(agent->memory().peak, Bytes(0));
  EXPECT_TRUE(CheckMeasuredStep(agent->measured(), plan_.schedule).ok());
}

// With the model's own loss memory is that of the prediction; the caller holds the loss, the engine its gradient.
TEST_P(AgentForwardTest, MemoryIsThePredicted) {
  const auto agent = Planned();
  start_.Rewind();
  const at::Tensor loss = network_.model.loss()(By(agent.get())(network_.input), network_.target);
  loss.backward();
  EXPECT_LE(agent->memory().peak, plan_.prediction.peak + Bytes(8));
  // Elsewhere plans count whole blocks.
  if (device_.exact) {
    EXPECT_GE(agent->memory().peak, plan_.prediction.peak);
  }
}

TEST_P(AgentForwardTest, ForwardsMayComeBeforeBackwardsAndEvaluationsBetween) {
  const auto loop = [this](const ForwardOf& forward) {
    const at::Tensor first = OwnLoss(forward(network_.input));
    double sum = 0;
    {
      const torch::NoGradGuard no_grad;
      sum += OwnLoss(forward(network_.input)).item<double>();
    }
    const at::Tensor second = OwnLoss(forward(network_.input));
    second.backward();
    first.backward();
    return sum + first.item<double>() + second.item<double>();
  };
  const Outcome plain = After([&] { return loop(Plain()); });
  options_.drift.window = 1;
  options_.drift.replans = 9;
  options_.drift.time = 0;
  const auto agent = Planned();
  const Bytes live = device_.live();
  ExpectEqual(plain, After([&] { return loop(By(agent.get())); }));
  EXPECT_EQ(device_.live(), live);
  EXPECT_EQ(agent->steps().planned, 2);
  // What they held together is no drift of the plan.
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 0);
}

TEST_P(AgentForwardTest, EvaluationsAreNoSteps) {
  Agent agent(&network_.model, options_);
  const torch::NoGradGuard no_grad;
  const auto output = agent.Forward(network_.input, network_.target);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_FALSE(output->requires_grad());
  EXPECT_EQ(agent.steps().planned + agent.steps().plain + agent.steps().dropped, 0);
  EXPECT_EQ(agent.events().of<ProfileTakenEvent>(), 0);
}

TEST_P(AgentForwardTest, AGraphThatIsDroppedIsNoStep) {
  const auto agent = Planned();
  const Bytes live = device_.live();
  By(agent.get())(network_.input);
  EXPECT_EQ(device_.live(), live);
  EXPECT_EQ(agent->steps().dropped, 1);
  EXPECT_EQ(agent->steps().planned, 0);
}

// What a gradient scaler does: a loss that overflows makes no optimizer step, and is a step of the agent's.
TEST_P(AgentForwardTest, LossesMayBeScaled) {
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : network_.model.parameters()) {
    before.push_back(parameter.detach().clone());
  }
  const auto loop = [&](const ForwardOf& forward) {
    double sum = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const torch::NoGradGuard no_grad;
      at::Tensor(network_.model.parameters()[i]).copy_(before[i]);
    }
    for (const double scale : {65536.0, std::numeric_limits<double>::infinity(), 1024.0}) {
      for (const at::Tensor& parameter : network_.model.parameters()) {
        if (parameter.grad().defined()) parameter.mutable_grad().zero_();
      }
      const at::Tensor loss = OwnLoss(forward(network_.input));
      (loss * scale).backward();
      bool finite = true;
      for (const at::Tensor& parameter : network_.model.parameters()) {
        if (parameter.grad().defined()) finite &= at::isfinite(parameter.grad()).all().item<bool>();
      }
      EXPECT_EQ(finite, std::isfinite(scale));
      sum += loss.item<double>();
      if (!finite) continue;
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& parameter : network_.model.parameters()) {
        if (!parameter.grad().defined()) continue;
        at::Tensor(parameter).sub_(parameter.grad() / scale, 0.01);
      }
    }
    return sum;
  };
  const Outcome plain = After([&] { return loop(Plain()); });
  const auto agent = Planned();
  ExpectEqual(plain, After([&] { return loop(By(agent.get())); }));
  EXPECT_EQ(agent->steps().planned, 3);
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 0);
}

TEST_P(AgentForwardTest, ASmallerBatchTrainsByThePlanForALarger) {
  const at::Tensor fewer = network_.input.narrow(0, 0, 2).contiguous();
  const auto loop = [&](const ForwardOf& forward) {
    const at::Tensor loss = OwnLoss(forward(fewer));
    loss.backward();
    return loss.item<double>();
  };
  const Outcome plain = After([&] { return loop(Plain()); });
  const auto agent = Planned();
  ExpectEqual(plain, After([&] { return loop(By(agent.get())); }));
  EXPECT_EQ(agent->steps().by_larger, 1);
}

TEST_P(AgentForwardTest, ErrorsBeforeTheBackwardAreStatuses) {
  Agent agent(&network_.model, options_);
  EXPECT_EQ(agent.Forward(network_.input, network_.target).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(agent.Plan(network_.input, network_.target, Bytes(1)).ok());
  EXPECT_EQ(agent.Forward(network_.input, network_.target).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(AgentForwardTest, SwitchedOffOrInShadowTheForwardIsPlain) {
  const Outcome plain = After([&] { return StepWith(Plain()); });
  bool off = false;
  options_.off = [&off] { return off; };
  options_.shadow = true;
  options_.shadow_every = 1;
  options_.budget = ShareOfStoreAll{0.7};
  Agent agent(&network_.model, options_);
  ASSERT_TRUE(agent.Plan({{network_.input}, network_.target}).ok());
  ExpectEqual(plain, After([&] { return StepWith(By(&agent)); }));
  EXPECT_EQ(agent.steps().shadow, 1);
  EXPECT_EQ(agent.events().of<ShadowEvent>(), 1);
  off = true;
  ExpectEqual(plain, After([&] { return StepWith(By(&agent)); }));
  EXPECT_EQ(agent.steps().plain, 1);
  EXPECT_EQ(agent.steps().planned, 0);
}

// Wherever memory runs out, the next step begins with a smaller plan, and has lost nothing.
TEST_P(AgentForwardTest, AfterOutOfMemoryTheNextStepTakesLess) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Outcome plain = After([&] { return StepWith(Plain()); });
  int in_forward = 0;
  int in_backward = 0;
  for (const int percent : {100, 90, 70, 50, 30}) {
    std::string finding;
    options_.on_event = [&finding](const AgentEvent& event) {
      if (const auto* lack = std::get_if<OutOfMemoryEvent>(&event)) finding = lack->finding;
    };
    const auto agent = Planned(1.0);
    start_.Rewind();
    const Bytes live = device_.live();
    const Bytes input(static_cast<int64_t>(network_.input.nbytes()));
    device_.LimitMemory(Bytes(plan_.prediction.peak.value() * percent / 100) - input - Bytes(64));
    {
      const absl::StatusOr<at::Tensor> output = agent->Forward(network_.input, network_.target);
      if (!output.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(output.status())) << output.status();
        ++in_forward;
      } else {
        EXPECT_THROW(OwnLoss(*output).backward(), c10::OutOfMemoryError);
        ++in_backward;
      }
    }
    device_.ClearLimit();
    EXPECT_EQ(device_.live(), live);
    EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 1) << percent;
    EXPECT_THAT(finding, HasSubstr("out of memory at instruction "));
    EXPECT_EQ(agent->steps().planned, 0);
    ExpectEqual(plain, After([&] { return StepWith(By(agent.get())); }));
    EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
    EXPECT_LT(agent->memory().budget, plan_.budget);
  }
  EXPECT_GT(in_forward, 0);
  EXPECT_GT(in_backward, 0);
}

// A hook of the caller's that throws is nothing that another plan would help.
TEST_P(AgentForwardTest, WhatFailsInTheCallersBackwardIsHis) {
  const auto agent = Planned();
  {
    const at::Tensor output = By(agent.get())(network_.input);
    output.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("mine"); });
    EXPECT_THROW(OwnLoss(output).backward(), std::runtime_error);
  }
  EXPECT_EQ(agent->steps().planned, 0);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 0);
}

TEST_P(AgentForwardTest, AGraphMayOutliveItsAgent) {
  const Outcome plain = After([&] { return StepWith(Plain()); });
  ExpectEqual(plain, After([&] {
                at::Tensor loss;
                {
                  const auto agent = Planned();
                  start_.Rewind();
                  loss = OwnLoss(By(agent.get())(network_.input));
                }
                loss.backward();
                return loss.item<double>();
              }));
}

INSTANTIATE_TEST_SUITE_P(On, AgentForwardTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Modules in another mode are another network: it is planned for itself.
TEST_F(AgentTest, ModesOfModulesArePartOfTheShape) {
  torch::manual_seed(3);
  torch::nn::Dropout drop(0.4);
  ChainModel model("modes");
  model.AddStage("linear", "linear", torch::nn::Linear(6, 8));
  model.AddStage("drop", "dropout", drop);
  model.SetLoss("square", [](const at::Tensor& y, const at::Tensor&) { return y.square().mean(); });
  const Batch batch{{torch::randn({5, 6})}, torch::zeros({5})};
  const BatchSignature training = BatchSignature::Of(batch, model);
  drop->eval();
  const BatchSignature evaluating = BatchSignature::Of(batch, model);
  EXPECT_THAT(evaluating.text(), HasSubstr(" eval=1"));
  EXPECT_FALSE(evaluating.FitsInto(training));
  drop->train();
  EXPECT_EQ(BatchSignature::Of(batch, model), training);
}

// Of a model that only pretends to train: what follows from the ends of steps is what follows from those of Step.
class AgentForwardLifeTest : public AgentLifeTest {
 protected:
  void TrainOften(Agent* agent, int steps) {
    for (int i = 0; i < steps; ++i) {
      const auto outputs = agent->Forward(FakeBatch(4));
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      outputs->front().sum().backward();
    }
  }
};

TEST_F(AgentForwardLifeTest, DriftAndReportsComeOfForwards) {
  options_.report_after = 2;
  world_.slower = 2;
  // A plan of a server's.
  ASSERT_TRUE(MakeAgent()->Plan(FakeBatch(4), StoreAll(4)).ok());
  auto agent = MakeAgent();
  ASSERT_TRUE(agent->Plan(FakeBatch(4), StoreAll(4)).ok());
  TrainOften(agent.get(), 4);
  EXPECT_EQ(agent->steps().planned, 4);
  EXPECT_EQ(service_.reports.size(), 1U);
  EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
  EXPECT_EQ(Last<ReplanEvent>().reason, ReplanReason::kTime);
  TrainOften(agent.get(), 1);
  EXPECT_THAT(world_.measured, ::testing::Contains(CostSource::kMeasured));
}

TEST_F(AgentForwardLifeTest, OutOfMemoryIsThatOfTheBackwardsEnd) {
  auto agent = MakeAgent();
  const auto adopted = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
  world_.room = Bytes(adopted->plan.prediction.peak.value() * 85 / 100);
  TrainOften(agent.get(), 1);
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 1);
  EXPECT_EQ(Last<OutOfMemoryEvent>().got, world_.room);
  TrainOften(agent.get(), 1);
  EXPECT_EQ(agent->steps().planned, 1);
}

}  // namespace
}  // namespace stowage
