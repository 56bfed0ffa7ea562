// TorchScript modules trained by plans against the modules themselves, and what is refused.
#include "client/torch/script/script_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/script/script_modules.h"
#include "tests/client/torch/script/scripted_modules.h"
#include "tests/client/torch/test_graphs.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

at::Tensor LossOf(const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
  const at::Tensor loss = torch::nn::functional::cross_entropy(outputs[0], target);
  return outputs.size() == 1 ? loss : loss + 0.4 * outputs[1].pow(2).mean();
}

ScriptModel WithLoss(absl::StatusOr<ScriptModel> imported) {
  EXPECT_TRUE(imported.ok()) << imported.status();
  ScriptModel script = std::move(imported).value();
  ModelNode loss;
  loss.name = "loss";
  loss.op_kind = "cross_entropy";
  loss.inputs.assign(script.outputs.begin(), script.outputs.end());
  loss.reads_target = true;
  loss.forward = [](std::vector<at::Tensor> x) {
    const at::Tensor target = x.back();
    x.pop_back();
    return LossOf(x, target);
  };
  script.model.AddNode(std::move(loss));
  return script;
}

std::vector<std::string> Kinds(const GraphModel& model) {
  std::vector<std::string> kinds;
  for (int v = 0; v < model.size(); ++v) kinds.push_back(model.node(v).op_kind);
  return kinds;
}

// A module, and its model, from the same state each time.
class ScriptTraining : public GraphTraining {
 public:
  explicit ScriptTraining(const ScriptSample& sample)
      : GraphTraining(TestGraph{WithLoss(ImportScript(sample.module, "test")).model, sample.inputs,
                                sample.target}),
        module_(sample.module) {}

  const GraphModel& model() const { return graph_.model; }
  const torch::jit::Module& module() const { return module_; }
  void SetSample(std::vector<at::Tensor> inputs, at::Tensor target) {
    graph_.inputs = std::move(inputs);
    graph_.target = std::move(target);
  }

  // The module itself under autograd, without TorchScript's own optimisation.
  GraphOutcome PlainModule() {
    Rewind();
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    const c10::IValue made =
        module_.forward(torch::jit::Stack(graph_.inputs.begin(), graph_.inputs.end()));
    std::vector<at::Tensor> outputs;
    if (made.isTensor()) {
      outputs = {made.toTensor()};
    } else {
      for (const c10::IValue& each : made.toTupleRef().elements()) {
        outputs.push_back(each.toTensor());
      }
    }
    const at::Tensor loss = LossOf(outputs, graph_.target.front());
    loss.backward();
    return After(loss.item<double>());
  }

  // Stored whole and by plans; returns how many of these recompute.
  int ExpectAllLikePlain() {
    const Profile profile = Profiled();
    const Graph& graph = std::get<Graph>(profile.problem);
    const Graph fixed = WithFixedCosts(graph);
    const GraphOutcome plain = PlainModule();
    ExpectLikePlain(graph, StoreAllSchedule(graph), plain);
    int recomputing = 0;
    for (const double share : {0.95, 0.85, 0.7, 0.6}) {
      // The first schedule that fits will do; where none does, the search need not prove it.
      Schedule schedule;
      StopToken stop(std::chrono::steady_clock::now() + std::chrono::seconds(60));
      PlanOptions options;
      options.solve.stop = &stop;
      options.solve.incumbent = [&](const Schedule& fits) {
        schedule = fits;
        stop.RequestStop();
      };
      const auto budget = ResolveBudget(fixed, ShareOfStoreAll{share}, PlanOptions());
      const auto plan = MakePlan(fixed, budget.value(), options);
      if (plan.ok()) schedule = plan->schedule;
      if (schedule.empty()) continue;
      const testing::ScopedTrace trace(__FILE__, __LINE__, share);
      const StepReport report = ExpectLikePlain(graph, schedule, plain);
      recomputing += report.recomputed_forwards > 0 ? 1 : 0;
    }
    return recomputing;
  }

  // Returns how many of 7 limits ended a step, each as it must.
  int CountOutOfMemory() {
    const Profile profile = Profiled();
    const Graph& graph = std::get<Graph>(profile.problem);
    const GraphOutcome plain = PlainModule();
    auto executor = Executor::Create(&model(), graph, StoreAllSchedule(graph)).value();
    TrackingAllocator* const meter = TrackingAllocator::Get();
    const int64_t peak = executor->prediction().peak.value();
    int failures = 0;
    for (int64_t part = 1; part < 8; ++part) {
      Rewind();
      meter->SetLimit(meter->current() + Bytes(part * peak / 10));
      const absl::Status status = executor->Step(Inputs(), graph_.target).status();
      meter->ClearLimit();
      failures += absl::IsResourceExhausted(status) ? 1 : 0;
    }
    ExpectLikePlain(graph, StoreAllSchedule(graph), plain);
    return failures;
  }

 private:
  torch::jit::Module module_;
};

class ScriptModelTest : public testing::TestWithParam<std::string> {};

TEST_P(ScriptModelTest, PlansTrainAsTheModuleDoes) {
  ScriptTraining training(MakeScriptSample(GetParam()));
  EXPECT_GT(training.ExpectAllLikePlain(), 0);
}

TEST_P(ScriptModelTest, ListsAllThatTheModuleHas) {
  const ScriptTraining training(MakeScriptSample(GetParam()));
  const torch::jit::Module& module = training.module();
  EXPECT_EQ(training.model().parameters().size(), module.parameters().size());
  EXPECT_EQ(training.model().buffers().size(), module.buffers().size());
}

TEST_P(ScriptModelTest, AFileIsTheSameModel) {
  const ScriptTraining training(MakeScriptSample(GetParam()));
  const std::string path = testing::TempDir() + "/script_model_" + GetParam() + ".pt";
  training.module().save(path);
  const ScriptModel loaded = WithLoss(ImportScriptFile(path));
  std::filesystem::remove(path);
  EXPECT_EQ(Kinds(loaded.model), Kinds(training.model()));
  EXPECT_EQ(ParameterDigest(loaded.model).ToHex(), ParameterDigest(training.model()).ToHex());
  EXPECT_EQ(BufferDigest(loaded.model).ToHex(), BufferDigest(training.model()).ToHex());
  for (int v = 0; v < loaded.model.size(); ++v) {
    EXPECT_EQ(loaded.model.node(v).name, training.model().node(v).name);
    EXPECT_EQ(loaded.model.node(v).inputs, training.model().node(v).inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(Modules, ScriptModelTest, testing::ValuesIn(ScriptSampleNames()),
                         [](const auto& sample) { return sample.param; });

TEST(ScriptModel, CutsAsFinelyAsWritesInPlaceAllow) {
  const ScriptTraining training(MakeScriptSample("residual"));
  std::vector<std::string> expected = {"Input", "_convolution", "add_+batch_norm+relu_",
                                       "max_pool2d"};
  for (int block = 0; block < 6; ++block) {
    for (const char* kind : {"_convolution", "add_+batch_norm+relu_", "_convolution"}) {
      expected.emplace_back(kind);
    }
    // The shortcut, which stands between the norm and the addition that writes over it.
    if (block == 4) expected.insert(expected.end(), {"_convolution", "add_+batch_norm"});
    expected.emplace_back("add_+batch_norm+add_+relu_");
    if (block == 0) expected.emplace_back("mean");
  }
  for (const char* kind : {"adaptive_avg_pool2d", "flatten", "t+addmm", "cross_entropy"}) {
    expected.emplace_back(kind);
  }
  EXPECT_EQ(Kinds(training.model()), expected);
}

TEST(ScriptModel, SplitsStayWithTheirReaders) {
  const ScriptTraining training(MakeScriptSample("attention"));
  const std::string attend = "chunk+ListUnpack+transpose+matmul+div+add+softmax+dropout+matmul";
  EXPECT_THAT(Kinds(training.model()),
              ElementsAre("Input", "embedding", "layer_norm", "t+matmul+add_", attend, "add",
                          "layer_norm", "t+matmul+add_", attend, "add", "linear", "softmax",
                          "matmul", "add", "linear", "flatten", "cross_entropy"));
}

TEST(ScriptModel, ShapesCrossCutsWithoutTheirTensors) {
  const ScriptTraining training(MakeScriptSample("scripted"));
  const GraphModel& model = training.model();
  const std::vector<std::string> kinds = Kinds(model);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "shape"), 1);
  // The sizes of the input are asked for to the end, the input itself only at the start.
  for (int v = 3; v < model.size(); ++v) {
    EXPECT_THAT(model.node(v).inputs, testing::Not(testing::Contains(0))) << model.Describe(v);
  }
  EXPECT_THAT(kinds, testing::Contains(testing::StartsWith("sum+slice+slice+mul_")));
}

// What a tensor is made like is not held for it.
TEST(ScriptModel, MasksAndExpansionsReadShapesAlone) {
  const ScriptModel script = *ImportScript(MakeScripted(R"(
def forward(self, x):
    y = torch.tanh(x * self.w)
    mask = y.new_zeros([y.size(0), 4])
    mask[:, 0:2].fill_(-9.0)
    row = torch.relu(x.sum(0, True)).expand_as(y)
    return torch.linear(y, self.w) + mask + row
)"),
                                           "masks");
  for (int v = 0; v < script.model.size(); ++v) {
    const ModelNode& node = script.model.node(v);
    const bool made = node.op_kind == "new_zeros+slice+slice+fill_";
    if (!made && node.op_kind != "expand_as") continue;
    EXPECT_EQ(script.model.node(node.inputs.back().node).name, "shape of tanh");
    EXPECT_EQ(node.inputs.size(), made ? 1u : 2u);
  }
  EXPECT_THAT(Kinds(script.model),
              testing::IsSupersetOf({"new_zeros+slice+slice+fill_", "expand_as"}));
}

// It returns its input, which is then written over.
TEST(ScriptModel, ADropoutOfNothingIsWithTheMakerOfItsInput) {
  const ScriptModel script = *ImportScript(MakeScripted(R"(
def forward(self, x):
    y = torch.dropout(x * self.w, 0.0, True)
    return torch.tanh(y.add_(1.0))
)"),
                                           "dropout");
  EXPECT_THAT(Kinds(script.model), ElementsAre("Input", "mul+dropout+add_", "tanh"));
}

TEST(ScriptModel, AnotherBatchIsTheSameModel) {
  ScriptTraining training(MakeScriptSample("scripted"));
  training.SetSample({torch::randn({2, 3, 10, 10})}, torch::randint(5, {2}, torch::kLong));
  training.ExpectAllLikePlain();
}

TEST(ScriptModel, FrozenParametersAreNotTrained) {
  ScriptSample sample = MakeScriptSample("residual");
  int frozen = 0;
  for (const at::Tensor& parameter : sample.module.parameters()) {
    if (frozen++ < 4) at::Tensor(parameter).requires_grad_(false);
  }
  ScriptTraining training(sample);
  training.ExpectAllLikePlain();
  EXPECT_FALSE(training.model().parameters()[0].grad().defined());
}

TEST(ScriptModel, AModuleOfAnotherTypeTrainsInIt) {
  ScriptSample sample = MakeScriptSample("residual");
  sample.module.to(torch::kDouble);
  sample.inputs[0] = sample.inputs[0].to(torch::kDouble);
  ScriptTraining training(sample);
  training.ExpectAllLikePlain();
  EXPECT_EQ(training.model().parameters()[0].grad().scalar_type(), torch::kDouble);
}

TEST(ScriptModel, TheModeOfTheModuleCounts) {
  ScriptSample sample = MakeScriptSample("scripted");
  sample.module.eval();
  ScriptTraining training(sample);
  const std::string kinds = testing::PrintToString(Kinds(training.model()));
  EXPECT_THAT(kinds, testing::Not(HasSubstr("dropout")));
  EXPECT_THAT(kinds, testing::Not(HasSubstr("add_")));
  training.ExpectAllLikePlain();
}

TEST(ScriptModel, OutOfMemoryIsSaidAsSuch) {
  EXPECT_EQ(ScriptTraining(MakeScriptSample("branches")).CountOutOfMemory(), 7);
}

}  // namespace
}  // namespace stowage
