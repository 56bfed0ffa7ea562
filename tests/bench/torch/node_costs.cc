// What the executor costs per node: CPU time of chains and graphs of many tiny nodes, by plans and plain, in turns.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/base/flag_parser.h"
#include "solvers/schedule/instance.h"
#include "tests/bench/torch/asked_plan.h"
#include "tests/bench/torch/turns.h"

ABSL_FLAG(int32_t, nodes, 120, "nodes: a linear layer, a batch normalisation and a ReLU in turn");
ABSL_FLAG(int32_t, rounds, 100, "steps of each way, in turns");
ABSL_FLAG(std::string, way, "",
          "plain, kept or recomputed: runs these steps alone, for a profiler");
ABSL_FLAG(std::string, form, "", "chain or graph alone");

namespace stowage {
namespace {

constexpr int kUsageError = 2;
constexpr int64_t kWidth = 8;
constexpr double kShare = 0.6;
const char* const kWays[] = {"plain", "kept", "recomputed"};

at::Tensor SquareLoss(const at::Tensor& y) { return y.mul(y).mean(); }

struct Model {
  ChainModel chain{"tiny"};
  GraphModel graph{"tiny"};
};

// The same nodes in either form.
std::unique_ptr<Model> MakeModel(int nodes) {
  auto model = std::make_unique<Model>();
  int last = model->graph.AddInput("x");
  const auto relu = [](const at::Tensor& x) { return at::relu(x); };
  for (int i = 0; i < nodes; ++i) {
    const std::string name = std::to_string(i);
    if (i % 3 == 0) {
      const torch::nn::Linear linear(kWidth, kWidth);
      model->chain.AddStage(name, "linear", linear);
      last = model->graph.AddModule(name, "linear", last, linear);
    } else if (i % 3 == 1) {
      const torch::nn::BatchNorm1d norm(kWidth);
      model->chain.AddStage(name, "batch_norm", norm);
      last = model->graph.AddModule(name, "batch_norm", last, norm);
    } else {
      model->chain.AddFunction(name, "relu", relu);
      last = model->graph.AddFunction(name, "relu", {last},
                                      [](const Tensors& x) { return at::relu(x[0]); });
    }
  }
  model->chain.SetLoss("square",
                       [](const at::Tensor& y, const at::Tensor&) { return SquareLoss(y); });
  model->graph.AddFunction("loss", "square", {last},
                           [](const Tensors& x) { return SquareLoss(x[0]); });
  return model;
}

struct Ways {
  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<Step> steps;  // as kWays has them
  int recomputed = 0;
};

template <class Problem, class Of>
absl::Status AddPlan(const Of& of, const Problem& problem, const Schedule& schedule,
                     const at::Tensor& x, Ways* ways) {
  auto executor = Executor::Create(&of, problem, schedule);
  if (!executor.ok()) return executor.status();
  ways->steps.emplace_back([used = executor->get(), x] { return used->Step(x, {at::Tensor()}); });
  ways->executors.push_back(*std::move(executor));
  return absl::OkStatus();
}

template <class Problem, class Of>
absl::Status AddPlans(const Of& of, const Problem& problem, bool recomputing, const at::Tensor& x,
                      Ways* ways) {
  const absl::Status status = AddPlan(of, problem, StoreAllSchedule(problem), x, ways);
  if (!status.ok() || !recomputing) return status;
  const absl::StatusOr<Plan> plan =
      PlanFor(problem, {"", kShare, false}, LinkFor(problem), std::chrono::seconds(2));
  if (!plan.ok()) return plan.status();
  ways->recomputed = plan->prediction.recomputed_forwards;
  return AddPlan(of, problem, plan->schedule, x, ways);
}

// `recomputing`: with the plan for less memory.
absl::StatusOr<Ways> MakeWays(Form form, int nodes, bool recomputing) {
  Ways ways;
  ways.model = MakeModel(nodes);
  const Model* const model = ways.model.get();
  const at::Tensor x = at::randn({4, kWidth});
  const Tensors target = {at::Tensor()};
  const ProfileOptions options = OnePass();
  if (form == Form::kChain) {
    model->chain.EnsureGradients();
    const absl::StatusOr<Profile> profile = ProfileChain(model->chain, x, target, options);
    if (!profile.ok()) return profile.status();
    ways.steps.emplace_back([=] { return PlainStep(model->chain, {x}, target, {}); });
    const absl::Status status =
        AddPlans(model->chain, std::get<Chain>(profile->problem), recomputing, x, &ways);
    if (!status.ok()) return status;
  } else {
    model->graph.EnsureGradients();
    const absl::StatusOr<Profile> profile = ProfileGraph(model->graph, {x}, target, options);
    if (!profile.ok()) return profile.status();
    ways.steps.emplace_back([=] { return PlainGraphStep(model->graph, {x}, target, {}); });
    const absl::Status status =
        AddPlans(model->graph, std::get<Graph>(profile->problem), recomputing, x, &ways);
    if (!status.ok()) return status;
  }
  return ways;
}

double Least(const std::vector<Nanos>& times) {
  return static_cast<double>(std::min_element(times.begin(), times.end())->value());
}

absl::Status Print(Form form, const Ways& ways, int nodes, int rounds) {
  const absl::StatusOr<std::vector<StepTimes>> times = TakeTurns(ways.steps, 3, rounds);
  if (!times.ok()) return times.status();
  const double plain = Least((*times)[0].cpu);
  for (size_t way = 0; way < ways.steps.size(); ++way) {
    const double step = Least((*times)[way].cpu);
    std::printf("| %s | %s | %d | %d | %.2f | %.2f |\n", ToString(form), kWays[way], nodes,
                way == 2 ? ways.recomputed : 0, step / nodes / 1e3, (step - plain) / nodes / 1e3);
  }
  return absl::OkStatus();
}

absl::Status RunAlone(const Ways& ways, const std::string& way, int rounds) {
  const auto* const known = std::find(std::begin(kWays), std::end(kWays), way);
  if (known == std::end(kWays)) return absl::InvalidArgumentError("no such way: " + way);
  const Step& step = ways.steps[static_cast<size_t>(known - std::begin(kWays))];
  for (int round = 0; round < rounds; ++round) {
    const absl::StatusOr<StepReport> report = step();
    if (!report.ok()) return report.status();
  }
  return absl::OkStatus();
}

absl::Status Run() {
  const std::string way = absl::GetFlag(FLAGS_way), only = absl::GetFlag(FLAGS_form);
  const int nodes = absl::GetFlag(FLAGS_nodes), rounds = absl::GetFlag(FLAGS_rounds);
  if (way.empty()) {
    std::printf(
        "| form | way | nodes | recomputed | a node, CPU us | beyond plain, CPU us |\n"
        "|---|---|---:|---:|---:|---:|\n");
  }
  for (const Form form : {Form::kChain, Form::kGraph}) {
    if (!only.empty() && only != ToString(form)) continue;
    const absl::StatusOr<Ways> ways =
        MakeWays(form, nodes, /*recomputing=*/way.empty() || way == kWays[2]);
    if (!ways.ok()) return ways.status();
    const absl::Status status =
        way.empty() ? Print(form, *ways, nodes, rounds) : RunAlone(*ways, way, rounds);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"nodes", "rounds", "way", "form"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (!help.ok()) {
    std::fprintf(stderr, "node_costs: %s\n", std::string(help.status().message()).c_str());
    return kUsageError;
  }
  if (*help) {
    std::printf("usage: node_costs [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  TrackingAllocator::Install();
  at::set_num_threads(1);
  const absl::Status status = Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "node_costs: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
