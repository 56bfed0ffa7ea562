#include "client/cli/workload.h"

#include <ATen/Parallel.h>

#include <cstdint>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/network_flags.h"
#include "client/cli/say.h"
#include "client/cli/script_flags.h"
#include "client/cli/training_commands.h"
#include "client/models/input_spec.h"
#include "client/models/models.h"
#include "client/models/network_loss.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Trains by plans of its graph, plain by the module itself.
class TrainedScript final : public TrainedModel {
 public:
  explicit TrainedScript(const ScriptedNetwork* network)
      : network_(network), graph_(MakeTrainedModel(&network->model())) {}

  const ModelTensors& tensors() const override { return graph_->tensors(); }
  Device DeviceOf(const ExecutionDevice* device) const override { return graph_->DeviceOf(device); }

  absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const override {
    return graph_->FromShapes(batch, meters);
  }
  absl::StatusOr<Profile> Measure(const Batch& batch,
                                  const ProfileOptions& options) const override {
    return graph_->Measure(batch, options);
  }
  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override {
    return network_->PlainStep(std::move(batch.inputs), batch.target.front(), meters);
  }
  absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const override {
    return graph_->PlainForward(std::move(batch));
  }
  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch& batch,
                                                       ExecutionDevice* device) const override {
    return graph_->Prepare(problem, schedule, batch, device);
  }

 private:
  const ScriptedNetwork* const network_;
  const std::unique_ptr<TrainedModel> graph_;
};

// Before anything is allocated.
absl::Status PrepareTorch() {
  TrackingAllocator::Install();
  const int threads = absl::GetFlag(FLAGS_threads);
  if (threads < 0) return FieldError("--threads", threads, "must be >= 0");
  if (threads > 0) at::set_num_threads(threads);
  return absl::OkStatus();
}

absl::StatusOr<Sample> SampleFromFlags(c10::Device device) {
  const int64_t length = absl::GetFlag(FLAGS_length);
  const absl::StatusOr<DecoderOptions> decoder = NamedDecoder({absl::GetFlag(FLAGS_model)});
  if (decoder.ok()) {
    return MakeTokenSample(absl::GetFlag(FLAGS_batch), length, decoder->vocabulary,
                           absl::GetFlag(FLAGS_seed), device);
  }
  return MakeImageSample(absl::GetFlag(FLAGS_batch), absl::GetFlag(FLAGS_image_size),
                         absl::GetFlag(FLAGS_classes), absl::GetFlag(FLAGS_seed), device);
}

template <class Model>
absl::StatusOr<Workload> WithSample(absl::StatusOr<Model> model, c10::Device device) {
  if (!model.ok()) return model.status();
  absl::StatusOr<Sample> sample = SampleFromFlags(device);
  if (!sample.ok()) return sample.status();
  return Workload{absl::GetFlag(FLAGS_model),
                  *std::move(model),
                  {{std::move(sample->input)}, std::move(sample->target)},
                  ToString(LossKind::kCrossEntropy)};
}

absl::StatusOr<Workload> ReferenceNetwork(c10::Device device) {
  const std::string name = absl::GetFlag(FLAGS_model);
  const ModelOptions options = {absl::GetFlag(FLAGS_classes), absl::GetFlag(FLAGS_seed),
                                absl::GetFlag(FLAGS_image_size), absl::GetFlag(FLAGS_length),
                                device};
  return absl::GetFlag(FLAGS_graph) ? WithSample(MakeGraphModel(name, options), device)
                                    : WithSample(MakeModel(name, options), device);
}

absl::StatusOr<Workload> OwnNetwork(c10::Device device) {
  absl::StatusOr<std::vector<InputSpec>> inputs = ParseInputs(absl::GetFlag(FLAGS_input));
  if (!inputs.ok()) return inputs.status();
  const absl::StatusOr<LossKind> loss = ParseLoss(absl::GetFlag(FLAGS_loss));
  if (!loss.ok()) return loss.status();
  const std::string path = absl::GetFlag(FLAGS_script);
  absl::StatusOr<ScriptedNetwork> network =
      ScriptedNetwork::Load({path, *std::move(inputs), *loss, absl::GetFlag(FLAGS_seed), device});
  if (!network.ok()) return network.status();
  for (const std::string& line : network->description()) Say(absl::StrCat(path, ": ", line));
  const Batch batch{network->inputs(), network->target()};
  return Workload{path, *std::move(network), batch, ToString(*loss)};
}

}  // namespace

absl::StatusOr<Workload> WorkloadFromFlags(c10::Device device) {
  absl::Status status = CheckScriptFlags();
  if (status.ok()) status = PrepareTorch();
  if (!status.ok()) return status;
  return absl::GetFlag(FLAGS_script).empty() ? ReferenceNetwork(device) : OwnNetwork(device);
}

std::unique_ptr<TrainedModel> TrainedModelOf(const Workload& workload) {
  if (const auto* script = std::get_if<ScriptedNetwork>(&workload.model)) {
    return std::make_unique<TrainedScript>(script);
  }
  if (const auto* graph = std::get_if<GraphModel>(&workload.model)) return MakeTrainedModel(graph);
  return MakeTrainedModel(&std::get<ChainModel>(workload.model));
}

std::vector<std::string> InputTexts(const Batch& batch) {
  std::vector<std::string> texts;
  for (const at::Tensor& input : batch.inputs) texts.push_back(ToString(TensorShape::Of(input)));
  return texts;
}

}  // namespace stowage
