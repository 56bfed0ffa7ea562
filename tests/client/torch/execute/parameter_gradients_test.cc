// When gradients of parameters are complete: hooks on them as reducers of data-parallel training hang
// them up, and what executors tell.
#include "client/torch/execute/parameter_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

// Numbers of the parameters of a model.
using Order = std::vector<size_t>;

class Told : public torch::autograd::FunctionPostHook {
 public:
  Told(size_t number, Order* order) : number_(number), order_(order) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    order_->push_back(number_);
    return outputs;
  }

 private:
  size_t number_;
  Order* order_;
};

// Hooks on every trained parameter of a model: before its gradient is accumulated, and after.
class Hooks {
 public:
  explicit Hooks(const ModelTensors& model) : model_(model), gradients_(model.parameters().size()) {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const at::Tensor& parameter = model.parameters()[i];
      if (!parameter.requires_grad()) continue;
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
      accumulators_.back()->add_post_hook(std::make_unique<Told>(i, &after_));
      numbers_.push_back(parameter.register_hook([this, i](const at::Tensor& gradient) {
        before_.push_back(i);
        gradients_[i] = gradient.clone();
      }));
    }
  }

  // What was seen since the last call.
  struct Seen {
    Order before;
    Order after;
    std::vector<at::Tensor> gradients;
  };
  Seen Take() {
    Seen seen{std::move(before_), std::move(after_), std::move(gradients_)};
    before_.clear();
    after_.clear();
    gradients_.assign(model_.parameters().size(), at::Tensor());
    return seen;
  }

 private:
  const ModelTensors& model_;
  std::vector<NodePtr> accumulators_;
  std::vector<unsigned> numbers_;
  Order before_;
  Order after_;
  std::vector<at::Tensor> gradients_;
};

// Of a part of a model each of its own, in whatever order.
Order ByPart(const Order& order, const std::vector<size_t>& part_of) {
  Order parts;
  for (const size_t number : order) parts.push_back(part_of[number]);
  return parts;
}

void ExpectSame(const Hooks::Seen& plain, const Hooks::Seen& planned,
                const std::vector<size_t>& part_of) {
  EXPECT_THAT(planned.before, testing::UnorderedElementsAreArray(plain.before));
  EXPECT_THAT(planned.after, testing::UnorderedElementsAreArray(plain.after));
  EXPECT_EQ(ByPart(plain.before, part_of), ByPart(planned.before, part_of));
  EXPECT_EQ(ByPart(plain.after, part_of), ByPart(planned.after, part_of));
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    ASSERT_EQ(plain.gradients[i].defined(), planned.gradients[i].defined()) << i;
    if (!plain.gradients[i].defined()) continue;
    EXPECT_TRUE(plain.gradients[i].equal(planned.gradients[i])) << i;
  }
}

size_t NumberOf(const ModelTensors& model, const at::Tensor& parameter) {
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    if (model.parameters()[i].is_same(parameter)) return i;
  }
  return model.parameters().size();
}

class ReadyGradientsTest : public testing::TestWithParam<NetworkCase> {
 protected:
  ReadyGradientsTest()
      : network_(MakeTestNetwork(std::get<0>(GetParam()), device_)),
        chain_(ChainWithTimes(network_.model, network_.input, network_.target, device_.execution)),
        start_(network_.model, device_.device) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  std::unique_ptr<Executor> MakeExecutor() {
    return Executor::Create(&network_.model, chain_, RecomputeAll(chain_), device_.execution)
        .value();
  }
  std::unique_ptr<PlannedModule> MakePlanned() {
    return PlannedModule::Create(&network_.model, chain_, RecomputeAll(chain_), device_.execution)
        .value();
  }

  // From the last stage to the first that uses it, each stage's own from the last to the first.
  Order ExpectedOrder() const {
    const ChainModel& model = network_.model;
    Order order;
    for (int l = 1; l <= model.length(); ++l) {
      for (const at::Tensor& parameter : model.stage(l).parameters) {
        const size_t number = NumberOf(model, parameter);
        const bool known = std::find(order.begin(), order.end(), number) != order.end();
        if (parameter.requires_grad() && !known) order.insert(order.begin(), number);
      }
    }
    return order;
  }

  // By parameter, the first stage that uses it.
  std::vector<size_t> Stages() const {
    const ChainModel& model = network_.model;
    std::vector<size_t> stages(model.parameters().size());
    for (int l = model.length(); l >= 1; --l) {
      for (const at::Tensor& parameter : model.stage(l).parameters) {
        stages[NumberOf(model, parameter)] = static_cast<size_t>(l);
      }
    }
    return stages;
  }

  OnGradientReady Listener() {
    return [this](const at::Tensor& parameter) {
      ready_.push_back(NumberOf(network_.model, parameter));
      complete_.push_back(parameter.grad().clone());
    };
  }

  void ExpectReadyOnceAndComplete() {
    EXPECT_EQ(ready_, ExpectedOrder());
    for (size_t i = 0; i < ready_.size(); ++i) {
      EXPECT_TRUE(network_.model.parameters()[ready_[i]].grad().equal(complete_[i])) << i;
    }
    ready_.clear();
    complete_.clear();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<1>(GetParam()));
  TestNetwork network_;
  Chain chain_;
  Rewinder start_;
  Order ready_;
  std::vector<at::Tensor> complete_;
};

TEST_P(ReadyGradientsTest, HooksSeeWhatTheySeeInPlainTraining) {
  start_.Rewind();
  Hooks hooks(network_.model);
  ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target, device_.meter()).ok());
  const Hooks::Seen plain = hooks.Take();
  const auto executor = MakeExecutor();
  start_.Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  ExpectSame(plain, hooks.Take(), Stages());
  const auto planned = MakePlanned();
  start_.Rewind();
  network_.model.loss()(planned->forward(network_.input), network_.target).backward();
  ExpectSame(plain, hooks.Take(), Stages());
}

TEST_P(ReadyGradientsTest, EachIsToldOnceInReverseOrderWhenComplete) {
  const auto executor = MakeExecutor();
  executor->TellReadyGradients(Listener());
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
    ExpectReadyOnceAndComplete();
  }
  const auto planned = MakePlanned();
  planned->TellReadyGradients(Listener());
  const at::Tensor loss = network_.model.loss()(planned->forward(network_.input), network_.target);
  EXPECT_TRUE(ready_.empty());
  loss.backward({}, /*retain_graph=*/true);
  ExpectReadyOnceAndComplete();
  loss.backward();
  ExpectReadyOnceAndComplete();
}

INSTANTIATE_TEST_SUITE_P(Networks, ReadyGradientsTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "frozen_prefix",
                                                          "tied"),
                                          testing::Values("cpu", "test", "cuda")),
                         NameOfNetworkCase);

class ReadyGradientsOfGraphsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(ReadyGradientsOfGraphsTest, TiedWeightsOfNodesAddUpAsInPlainTraining) {
  torch::manual_seed(3);
  GraphModel model("tied");
  const int image = model.AddInput("image");
  const nn::Conv2d shared(nn::Conv2dOptions(3, 3, 3).padding(1));
  const int one = model.AddModule("one", "conv", image, shared);
  const int two = model.AddModule("two", "conv", one, shared);
  const int sum =
      model.AddFunction("sum", "add", {one, two}, [](const auto& x) { return x[0] + x[1].tanh(); });
  const int three = model.AddModule("three", "conv", sum, shared);
  model.AddFunction("loss", "mean", {three}, [](const auto& x) { return x[0].square().mean(); });
  MoveTo(device_.device, model);
  const at::Tensor input = torch::randn({2, 3, 8, 8}).to(device_.device);
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device_.execution;
  const Profile profile = ProfileGraph(model, {input}, at::Tensor(), options).value();
  const Graph& graph = std::get<Graph>(profile.problem);
  const auto executor =
      Executor::Create(&model, graph, StoreAllSchedule(graph), device_.execution).value();
  Order ready;
  executor->TellReadyGradients(
      [&](const at::Tensor& parameter) { ready.push_back(NumberOf(model, parameter)); });
  Hooks hooks(model);
  // The second step adds to what the first one left.
  const auto train = [&](const auto& step) {
    model.ZeroGradients();
    EXPECT_TRUE(step().ok());
    EXPECT_TRUE(step().ok());
    return hooks.Take();
  };
  const Hooks::Seen plain =
      train([&] { return PlainGraphStep(model, {input.clone()}, {}, device_.meter()); });
  const Digest gradients = GradientDigest(model);
  ExpectSame(plain, train([&] { return executor->Step({input.clone()}, {}); }), {0, 0});
  EXPECT_EQ(GradientDigest(model), gradients);
  EXPECT_EQ(ready, (Order{1, 0, 1, 0}));
}

INSTANTIATE_TEST_SUITE_P(Devices, ReadyGradientsOfGraphsTest,
                         testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
