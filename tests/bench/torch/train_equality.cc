// Trains the reference networks, on small images, plain and by plans, as chains and as graphs, and
// holds one against the other: loss, gradients, buffers and random state bit for bit, measured memory
// against the budget and the prediction.
//
// usage: train_equality [network...]     all of them; exit code 1 if a step differs or is over its budget
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/models/models.h"
#include "client/models/network_model.h"
#include "client/torch/chain_executor.h"
#include "client/torch/chain_profiler.h"
#include "client/torch/graph_executor.h"
#include "client/torch/graph_profiler.h"
#include "client/torch/model_state.h"
#include "client/torch/plain_step.h"
#include "client/torch/state_digest.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/networks/networks.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kClasses = 10;
// Of one plan; the search of large graphs would go on for minutes.
constexpr std::chrono::seconds kPatience(3);

struct Asked {
  const char* solver;
  double share;  // of what storing everything takes
};
constexpr Asked kChainPlans[] = {
    {"", 0.8}, {"", 0.6}, {"optimal_persistent", 0.7}, {"revolve", 0.9}, {"chen_greedy", 0.9}};
constexpr Asked kGraphPlans[] = {{"", 0.9}, {"", 0.75}, {"", 0.6}, {"", 0.45}, {"", 0.3}};

// Small, yet no smaller than the network takes.
int64_t ImageOf(const std::string& name) {
  if (name.rfind("inception", 0) == 0) return 96;
  if (name.rfind("alexnet", 0) == 0) return 64;
  // Few stages with many parameters: on smaller images the gradients of these are most of a step.
  if (name == "resnet18" || name == "resnet34") return 96;
  return 32;
}

struct Outcome {
  double loss = 0;
  Digest gradients;
  Digest buffers;
  RandomState random = RandomState::Capture();

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.loss == b.loss && a.gradients == b.gradients && a.buffers == b.buffers &&
           a.random == b.random;
  }
};

// One row of the table.
struct Row {
  int plans = 0;
  int recomputed_forwards = 0;
  int different = 0;
  int over_budget = 0;
  double least_ratio = 1;  // of measured to predicted peak
  double most_ratio = 0;
};

// What both forms of a model have.
class Comparison {
 public:
  explicit Comparison(const ModelTensors& model)
      : model_(model),
        buffers_(BufferState::Capture(model.buffers())),
        random_(RandomState::Capture()) {}

  template <class Step>
  absl::StatusOr<Outcome> After(const Step& step, Bytes* peak) {
    buffers_.Restore();
    random_.Restore();
    model_.ZeroGradients();
    const absl::StatusOr<StepReport> report = step();
    if (!report.ok()) return report.status();
    *peak = report->peak;
    Outcome outcome;
    outcome.loss = report->loss;
    outcome.gradients = GradientDigest(model_);
    outcome.buffers = BufferDigest(model_);
    return outcome;
  }

 private:
  const ModelTensors& model_;
  const BufferState buffers_;
  const RandomState random_;
};

void Count(const Plan& plan, const Outcome& planned, const Outcome& plain, Bytes peak, Row* row) {
  ++row->plans;
  row->recomputed_forwards += plan.prediction.recomputed_forwards;
  row->different += planned == plain ? 0 : 1;
  row->over_budget += peak > plan.budget ? 1 : 0;
  const double ratio =
      static_cast<double>(peak.value()) / static_cast<double>(plan.prediction.peak.value());
  row->least_ratio = std::min(row->least_ratio, ratio);
  row->most_ratio = std::max(row->most_ratio, ratio);
}

absl::StatusOr<Plan> PlanFor(const Profile& profile, const Asked& asked) {
  const StopToken stop(std::chrono::steady_clock::now() + kPatience);
  PlanOptions options;
  options.solver = asked.solver;
  const absl::StatusOr<Bytes> budget =
      ResolveBudget(profile, Budget(ShareOfStoreAll{asked.share}), options);
  if (!budget.ok()) return budget.status();
  options.solve.stop = &stop;
  return MakePlan(profile, *budget, options);
}

ProfileOptions BytesOnly() {
  ProfileOptions options;
  options.bytes_only = true;
  return options;
}

absl::StatusOr<Row> CompareChain(const ChainModel& model, const Sample& sample) {
  const auto profile = ProfileChain(model, sample.input, sample.target, BytesOnly());
  if (!profile.ok()) return profile.status();
  Comparison comparison(model);
  Bytes peak;
  const auto plain =
      comparison.After([&] { return PlainStep(model, sample.input, sample.target); }, &peak);
  if (!plain.ok()) return plain.status();
  Row row;
  for (const Asked& asked : kChainPlans) {
    const absl::StatusOr<Plan> plan = PlanFor(*profile, asked);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) continue;
    const auto executor =
        ChainExecutor::Create(&model, std::get<Chain>(profile->problem), plan->schedule);
    if (!executor.ok()) return executor.status();
    const auto planned =
        comparison.After([&] { return (*executor)->Step(sample.input, sample.target); }, &peak);
    if (!planned.ok()) return planned.status();
    Count(*plan, *planned, *plain, peak, &row);
  }
  return row;
}

absl::StatusOr<Row> CompareGraph(const GraphModel& model, const Sample& sample) {
  const auto profile = ProfileGraph(model, {sample.input}, sample.target, BytesOnly());
  if (!profile.ok()) return profile.status();
  Comparison comparison(model);
  Bytes peak;
  const auto plain = comparison.After(
      [&] { return PlainGraphStep(model, {sample.input.clone()}, sample.target); }, &peak);
  if (!plain.ok()) return plain.status();
  Row row;
  for (const Asked& asked : kGraphPlans) {
    const absl::StatusOr<Plan> plan = PlanFor(*profile, asked);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) continue;
    const auto executor =
        GraphExecutor::Create(&model, std::get<Graph>(profile->problem), plan->schedule);
    if (!executor.ok()) return executor.status();
    const auto planned = comparison.After(
        [&] { return (*executor)->Step({sample.input.clone()}, sample.target); }, &peak);
    if (!planned.ok()) return planned.status();
    Count(*plan, *planned, *plain, peak, &row);
  }
  return row;
}

// False if something was not as it should be.
bool Print(const std::string& name, const char* form, const absl::StatusOr<Row>& row) {
  if (!row.ok()) {
    std::printf("| %s | %s | %s |\n", name.c_str(), form,
                std::string(row.status().message()).c_str());
    return false;
  }
  std::printf("| %s | %s | %d | %d | %d | %d | %.4f to %.4f |\n", name.c_str(), form, row->plans,
              row->recomputed_forwards, row->plans - row->different, row->over_budget,
              row->least_ratio, row->most_ratio);
  std::fflush(stdout);
  return row->different == 0 && row->over_budget == 0;
}

bool Compare(const std::string& name, const Network& network, const Sample& sample) {
  bool good = Print(name, "chain", CompareChain(ChainModelOf(network), sample));
  good &= Print(name, "graph", CompareGraph(GraphModelOf(network), sample));
  return good;
}

bool CompareImages(const std::string& name) {
  NetworkOptions options;
  options.name = name;
  options.image = ImageOf(name);
  options.batch = kBatch;
  options.classes = kClasses;
  const absl::StatusOr<Network> network = MakeNetwork(options);
  if (!network.ok()) return Print(name, "", network.status());
  return Compare(name, *network, MakeImageSample(kBatch, options.image, kClasses, 1).value());
}

bool CompareDecoder() {
  DecoderOptions options;
  options.layers = 6;
  options.width = 64;
  options.heads = 4;
  options.length = 64;
  options.vocabulary = 200;
  options.batch = kBatch;
  return Compare("decoder", MakeDecoder(options).value(),
                 MakeTokenSample(kBatch, options.length, options.vocabulary, 1).value());
}

int Run(std::vector<std::string> names) {
  TrackingAllocator::Install();
  at::set_num_threads(1);
  if (names.empty()) {
    names = ModelNames();
    names.emplace_back("decoder");
  }
  std::printf(
      "| network | form | plans | recomputed | equal | over budget | peak / predicted |\n"
      "|---|---|---|---|---|---|---|\n");
  bool good = true;
  for (const std::string& name : names) {
    good &= name == "decoder" ? CompareDecoder() : CompareImages(name);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Run(std::vector<std::string>(argv + 1, argv + argc));
}
