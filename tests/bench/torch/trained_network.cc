#include "tests/bench/torch/trained_network.h"

#include <torch/torch.h>

#include <chrono>
#include <utility>
#include <variant>

#include "client/models/network_model.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/profile/graph_profiler.h"

namespace stowage {
namespace {

constexpr uint64_t kSeed = 1;

bool IsDecoder(const std::string& name) { return name == kDecoder || name == kTiedDecoder; }

// Small, yet no smaller than the network takes.
int64_t SmallImage(const std::string& name) {
  if (name.rfind("inception", 0) == 0) return 96;
  if (name.rfind("alexnet", 0) == 0) return 64;
  // Few stages with many parameters: on smaller images the gradients of these are most of a step.
  if (name == "resnet18" || name == "resnet34") return 96;
  // A third of a thousand blocks, of which none makes the image smaller at the start.
  if (name == "resnet1001") return 16;
  return 32;
}

absl::StatusOr<Network> DescribedBy(const NetworkChoice& choice) {
  if (IsDecoder(choice.name)) {
    DecoderOptions decoder = choice.decoder;
    decoder.batch = choice.batch;
    return MakeDecoder(decoder);
  }
  NetworkOptions options;
  options.name = choice.name;
  options.image = choice.image > 0 ? choice.image : SmallImage(choice.name);
  options.batch = choice.batch;
  options.classes = choice.classes;
  return MakeNetwork(options);
}

absl::StatusOr<Sample> DataFor(const NetworkChoice& choice, const Network& network,
                               c10::Device device) {
  if (IsDecoder(choice.name)) {
    return MakeTokenSample(choice.batch, choice.decoder.length, choice.decoder.vocabulary, kSeed,
                           device);
  }
  return MakeImageSample(choice.batch, network.ops.front().shape.back(), choice.classes, kSeed,
                         device);
}

absl::StatusOr<StepReport> TimedLoop(const std::function<at::Tensor()>& loss) {
  try {
    const auto start = std::chrono::steady_clock::now();
    loss().backward();
    StepReport report;
    report.wall_time =
        Nanos(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("training loop", absl::StatusCode::kInternal);
  }
}

}  // namespace

std::vector<std::string> TrainedNames() {
  std::vector<std::string> names = ModelNames();
  names.emplace_back(kDecoder);
  names.emplace_back(kTiedDecoder);
  return names;
}

DecoderOptions NetworkChoice::SmallDecoder() {
  DecoderOptions options;
  options.layers = 6;
  options.width = 64;
  options.heads = 4;
  options.length = 64;
  options.vocabulary = 200;
  return options;
}

const char* ToString(Form form) { return form == Form::kChain ? "chain" : "graph"; }

absl::StatusOr<std::unique_ptr<TrainedNetwork>> TrainedNetwork::Make(const NetworkChoice& choice,
                                                                     Form form,
                                                                     ExecutionDevice* device) {
  absl::StatusOr<Network> network = DescribedBy(choice);
  if (!network.ok()) return network.status();
  const c10::Device place = device != nullptr ? device->device() : c10::Device(c10::kCPU);
  absl::StatusOr<Sample> sample = DataFor(choice, *network, place);
  if (!sample.ok()) return sample.status();
  torch::manual_seed(kSeed);
  NetworkModelOptions options;
  options.tied_embedding = choice.name == kTiedDecoder;
  options.device = place;
  auto made = std::unique_ptr<TrainedNetwork>(new TrainedNetwork(*std::move(network), device));
  if (form == Form::kChain) made->chain_ = ChainModelOf(made->described_, options);
  if (form == Form::kGraph) made->graph_ = GraphModelOf(made->described_, options);
  made->sample_ = *std::move(sample);
  made->tensors().EnsureGradients();
  return made;
}

const ModelTensors& TrainedNetwork::tensors() const {
  return chain_ ? static_cast<const ModelTensors&>(*chain_) : *graph_;
}

Bytes TrainedNetwork::parameter_bytes() const {
  Bytes bytes;
  for (const at::Tensor& parameter : tensors().parameters()) {
    bytes += Bytes(static_cast<int64_t>(parameter.nbytes()));
  }
  return bytes;
}

absl::StatusOr<Profile> TrainedNetwork::Measure(const ProfileOptions& asked) const {
  ProfileOptions options = asked;
  if (options.device == nullptr) options.device = device_;
  if (chain_) return ProfileChain(*chain_, sample_.input, sample_.target, options);
  return ProfileGraph(*graph_, {sample_.input}, sample_.target, options);
}

// A graph's input goes where the plan drops it, if nobody else holds it: hence a copy for each step.
absl::StatusOr<StepReport> TrainedNetwork::Plain() const {
  const StepMeters meters(device_);
  if (chain_) return PlainStep(*chain_, sample_.input, sample_.target, meters);
  return PlainGraphStep(*graph_, {sample_.input.clone()}, sample_.target, meters);
}

absl::StatusOr<Step> TrainedNetwork::Planned(const Problem& problem, const Schedule& schedule,
                                             ExecutionDevice* device,
                                             Later<MeasuredStep>* measured) const {
  if (device == nullptr) device = device_;
  if (chain_) {
    auto made = Executor::Create(&*chain_, std::get<Chain>(problem), schedule, device);
    if (!made.ok()) return made.status();
    (*made)->MeasureInto(measured);
    return Step([this, executor = std::shared_ptr<Executor>(*std::move(made))] {
      return executor->Step(sample_.input, sample_.target);
    });
  }
  auto made = Executor::Create(&*graph_, std::get<Graph>(problem), schedule, device);
  if (!made.ok()) return made.status();
  (*made)->MeasureInto(measured);
  return Step([this, executor = std::shared_ptr<Executor>(*std::move(made))] {
    return executor->Step({sample_.input.clone()}, sample_.target);
  });
}

absl::StatusOr<StepReport> TrainedNetwork::PlainLoop() const {
  return TimedLoop([this] {
    if (chain_) return chain_->loss()(PlainForward(*chain_, sample_.input), sample_.target);
    return SumOf(PlainLosses(*graph_, {sample_.input.clone()}, sample_.target));
  });
}

absl::StatusOr<Step> TrainedNetwork::PlannedLoop(const Problem& problem,
                                                 const Schedule& schedule) const {
  auto made = chain_ ? PlannedModule::Create(&*chain_, std::get<Chain>(problem), schedule, device_)
                     : PlannedModule::Create(&*graph_, std::get<Graph>(problem), schedule, device_);
  if (!made.ok()) return made.status();
  return Step([this, module = std::shared_ptr<PlannedModule>(*std::move(made))] {
    return TimedLoop([&] {
      if (chain_) return chain_->loss()(module->forward(sample_.input), sample_.target);
      return module->forward({sample_.input.clone()}, sample_.target);
    });
  });
}

ProfileOptions OnePass() {
  ProfileOptions options;
  options.repeats = 1;
  return options;
}

int ParametersWithoutGradient(const ModelTensors& model) {
  int without = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    const at::Tensor& gradient = parameter.grad();
    without += gradient.defined() && gradient.ne(0).any().item<bool>() ? 0 : 1;
  }
  return without;
}

}  // namespace stowage
