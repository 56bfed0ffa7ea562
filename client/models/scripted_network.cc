#include "client/models/scripted_network.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/models/seeded_random.h"
#include "client/torch/base/rethrow_as_thrown.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/node_runner.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/model/model_state.h"
#include "client/torch/script/script_model.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

using torch::jit::Module;

std::string Quoted(const std::string& text) { return absl::StrCat("\"", text, "\""); }

// LibTorch's errors go on for pages: what is wrong is in the first line.
std::string FirstLine(absl::string_view message) {
  constexpr size_t kMost = 400;
  const std::string line(message.substr(0, message.find('\n')));
  return line.size() <= kMost ? line : absl::StrCat(line.substr(0, kMost), "...");
}

// What else than memory is wrong is wrong with the field.
absl::Status WrongField(const std::string& field, const std::string& value, const std::string& what,
                        const absl::Status& error) {
  const std::string rule = absl::StrCat(what, ": ", FirstLine(error.message()));
  if (absl::IsResourceExhausted(error)) return absl::ResourceExhaustedError(rule);
  return FieldError(field, value, rule);
}

absl::Status CheckReadable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return FieldError("script", Quoted(path), "is a folder, not a file of torch.jit.save");
  }
  errno = 0;
  if (std::ifstream(path, std::ios::binary)) return absl::OkStatus();
  return FieldError("script", Quoted(path), absl::StrCat("cannot be read: ", std::strerror(errno)));
}

// LibTorch 1.13 reads onto CPUs and GPUs alone, and its Module::to keeps to tensors of one kind.
void MoveTo(c10::Device device, Module* module) {
  std::map<c10::TensorImpl*, at::Tensor> moved;  // tied ones stay so
  for (Module part : module->modules()) {
    for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
      if (!attribute.value.isTensor()) continue;
      const at::Tensor& tensor = attribute.value.toTensor();
      at::Tensor& there = moved[tensor.unsafeGetTensorImpl()];
      if (!there.defined()) {
        there = tensor.detach().to(device).requires_grad_(tensor.requires_grad());
      }
      part.setattr(attribute.name, there);
    }
  }
}

absl::StatusOr<Module> LoadModule(const std::string& path, c10::Device device) {
  absl::Status status = CheckReadable(path);
  if (!status.ok()) return status;
  try {
    if (device.is_cpu() || device.is_cuda()) return torch::jit::load(path, device);
    Module module = torch::jit::load(path, c10::kCPU);
    MoveTo(device, &module);
    return module;
  } catch (...) {
    return WrongField("script", Quoted(path),
                      "is no TorchScript, as torch.jit.trace(module, inputs).save(FILE) writes it "
                      "(torch.save writes something else)",
                      CurrentExceptionToStatus("LibTorch", absl::StatusCode::kInvalidArgument));
  }
}

// The arguments of forward, without the module itself.
std::vector<std::string> ArgumentsOf(const Module& module) {
  std::vector<std::string> names;
  const auto& arguments = module.get_method("forward").function().getSchema().arguments();
  for (size_t i = 1; i < arguments.size(); ++i) names.push_back(arguments[i].name());
  return names;
}

// "2x3x64x64 float32, 2x8 int64".
std::string TextOf(const std::vector<InputSpec>& inputs) {
  std::vector<std::string> texts;
  for (const InputSpec& input : inputs) {
    texts.push_back(ToString(TensorShape{input.type, input.sizes}));
  }
  return absl::StrJoin(texts, ", ");
}

absl::Status CheckCount(const Module& module, const std::vector<InputSpec>& inputs) {
  const std::vector<std::string> names = ArgumentsOf(module);
  if (names.size() == inputs.size()) return absl::OkStatus();
  return FieldError("input", Quoted(TextOf(inputs)),
                    absl::StrCat("forward takes ", names.size(), " (", absl::StrJoin(names, ", "),
                                 "), here ", inputs.size() == 1 ? "is " : "are ", inputs.size(),
                                 ": one shape for each, commas between"));
}

absl::Status CheckTrains(const GraphModel& model, const std::string& path) {
  if (AnyTrains(model.parameters())) return absl::OkStatus();
  return FieldError("script", Quoted(path),
                    "has nothing to train: forward uses no parameter with requires_grad (frozen "
                    "modules have none)");
}

// What the outputs are like, after a forward without gradients that drops each value behind its last
// reader. INVALID_ARGUMENT, which names the node, for what it throws.
absl::StatusOr<std::vector<TensorShape>> OutputsOf(const ScriptModel& script,
                                                   const std::vector<at::Tensor>& inputs) {
  const GraphModel& model = script.model;
  const StateGuard restore(model.buffers(), DeviceOf(inputs));
  std::vector<int> readers(static_cast<size_t>(model.size()));
  for (int v = 0; v < model.size(); ++v) {
    for (const NodeOutput input : model.node(v).inputs) ++readers[static_cast<size_t>(input.node)];
  }
  for (const int output : script.outputs) ++readers[static_cast<size_t>(output)];
  std::vector<at::Tensor> values(readers.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[static_cast<size_t>(model.inputs()[i].node)] = inputs[i];
  }
  int v = 0;
  try {
    NodeRunner runner(&model, DeviceOf(inputs));
    runner.BeginStep({});
    for (; v < model.size(); ++v) {
      if (model.is_input(v)) continue;
      std::vector<at::Tensor> read;
      for (const NodeOutput input : model.node(v).inputs) {
        read.push_back(values[static_cast<size_t>(input.node)]);
      }
      values[static_cast<size_t>(v)] = runner.Forward(v, read).front();
      for (const NodeOutput input : model.node(v).inputs) {
        const auto u = static_cast<size_t>(input.node);
        if (--readers[u] == 0) values[u].reset();
      }
    }
    std::vector<TensorShape> shapes;
    for (const int output : script.outputs) {
      shapes.push_back(TensorShape::Of(values[static_cast<size_t>(output)]));
    }
    return shapes;
  } catch (...) {
    const ModelNode& node = model.node(std::min(v, model.size() - 1));
    return CurrentExceptionToStatus(absl::StrCat("at ", node.name, " (", node.op_kind, ")"),
                                    absl::StatusCode::kInvalidArgument);
  }
}

// What forward returned, tuples and lists taken apart.
void TakeApart(const c10::IValue& value, std::vector<at::Tensor>* tensors) {
  if (value.isTensor()) {
    tensors->push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) TakeApart(each, tensors);
  } else {
    for (const c10::IValue& each : value.toListRef()) TakeApart(each, tensors);
  }
}

std::string CountOf(size_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

class ScriptedNetworkMaker {
 public:
  explicit ScriptedNetworkMaker(const ScriptedOptions& options) : options_(options) {}

  absl::StatusOr<ScriptedNetwork> Make() {
    absl::StatusOr<Module> module = LoadModule(options_.path, options_.device);
    if (!module.ok()) return module.status();
    absl::StatusOr<ScriptModel> script =
        ImportScript(*module, std::filesystem::path(options_.path).stem().string());
    if (!script.ok()) {
      return WrongField("script", Quoted(options_.path), "cannot be cut into ops", script.status());
    }
    absl::Status status = CheckTrains(script->model, options_.path);
    if (!status.ok()) return status;
    return WithLoss(*std::move(module), *std::move(script));
  }

 private:
  absl::StatusOr<ScriptedNetwork> WithLoss(Module module, ScriptModel script) const {
    absl::Status status = CheckCount(module, options_.inputs);
    if (!status.ok()) return status;
    const SeededRandom random(options_.seed);
    std::vector<at::Tensor> inputs;
    for (const InputSpec& input : options_.inputs) {
      inputs.push_back(DrawInput(input).to(options_.device));
    }
    const absl::StatusOr<std::vector<TensorShape>> outputs = OutputsOf(script, inputs);
    if (!outputs.ok()) {
      return WrongField("input", Quoted(TextOf(options_.inputs)), "the network refuses it",
                        outputs.status());
    }
    const absl::StatusOr<NetworkLoss> loss = NetworkLoss::For(options_.loss, *outputs);
    if (!loss.ok()) return loss.status();
    AddLoss(*loss, script.outputs, &script.model);
    ScriptedNetwork network(std::move(script.model), *loss);
    network.inputs_ = std::move(inputs);
    network.target_ = loss->DrawTarget();
    if (loss->has_target()) network.target_ = network.target_.to(options_.device);
    network.module_ = std::make_shared<Module>(std::move(module));
    Describe(*outputs, &network);
    return network;
  }

  static void AddLoss(const NetworkLoss& loss, const std::vector<int>& outputs, GraphModel* model) {
    ModelNode node;
    node.name = "loss";
    node.op_kind = ToString(loss.kind());
    for (const size_t output : loss.trained()) node.inputs.emplace_back(outputs[output]);
    node.reads_target = loss.has_target();
    node.forward = [loss](std::vector<at::Tensor> read) {
      at::Tensor target;
      if (loss.has_target()) {
        target = std::move(read.back());
        read.pop_back();
      }
      return loss.Of(read, target);
    };
    model->AddNode(std::move(node));
  }

  void Describe(const std::vector<TensorShape>& outputs, ScriptedNetwork* network) const {
    std::vector<std::string>& lines = network->description_;
    const GraphModel& model = network->model_;
    int64_t numbers = 0, bytes = 0;
    size_t trained = 0;
    for (const at::Tensor& parameter : model.parameters()) {
      if (!parameter.requires_grad()) continue;
      ++trained;
      numbers += parameter.numel();
      bytes += static_cast<int64_t>(parameter.nbytes());
    }
    const size_t frozen = model.parameters().size() - trained;
    lines.push_back(absl::StrCat(
        CountOf(static_cast<size_t>(model.size()), "node"), ", trains ",
        CountOf(trained, "parameter"), " of ", numbers, " numbers, ", ToString(Bytes(bytes)),
        frozen == 0 ? "" : absl::StrCat("; ", CountOf(frozen, "parameter"), " without gradients"),
        "; ", CountOf(model.buffers().size(), "buffer")));
    const std::vector<std::string> names = ArgumentsOf(*network->module_);
    for (size_t i = 0; i < names.size(); ++i) {
      lines.push_back(absl::StrCat("input ", i, " (", names[i],
                                   "): ", ToString(TensorShape::Of(network->inputs_[i]))));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      lines.push_back(absl::StrCat("output ", i, ": ", ToString(outputs[i])));
    }
    lines.push_back(absl::StrCat("loss: ", network->loss_.Describe()));
    if (!network->module_->is_training()) {
      lines.emplace_back(
          "the module was saved in evaluation mode: its norms and dropouts do not train; "
          "train() before tracing changes that");
    }
  }

  const ScriptedOptions& options_;
};

absl::StatusOr<ScriptedNetwork> ScriptedNetwork::Load(const ScriptedOptions& options) {
  try {
    return ScriptedNetworkMaker(options).Make();
  } catch (...) {
    return WrongField("script", Quoted(options.path), "cannot be made ready to train",
                      CurrentExceptionToStatus("LibTorch", absl::StatusCode::kInvalidArgument));
  }
}

LossValue ScriptedNetwork::Train(std::vector<at::Tensor> inputs, const at::Tensor& target) const {
  const AutocastState autocast = AutocastState::Capture();
  const at::AutoGradMode grad(true);
  at::Tensor loss;
  {
    const AutocastScope scope(autocast);
    const torch::jit::GraphOptimizerEnabledGuard op_by_op(false);
    const RethrowAsThrown rethrow;
    torch::jit::Stack arguments;
    for (at::Tensor& input : inputs) arguments.emplace_back(input.variable_data());
    inputs.clear();
    std::vector<at::Tensor> outputs;
    TakeApart(module_->forward(std::move(arguments)), &outputs);
    std::vector<at::Tensor> trained;
    for (const size_t output : loss_.trained()) trained.push_back(outputs[output]);
    loss = loss_.Of(trained, target);
  }
  LossValue value;
  value.Add(loss);
  const AutocastScope off(autocast.Off());
  RunBackward({loss}, {});
  return value;
}

absl::StatusOr<StepReport> ScriptedNetwork::PlainStep(std::vector<at::Tensor> inputs,
                                                      const at::Tensor& target,
                                                      const StepMeters& meters) const {
  if (inputs.size() != model_.inputs().size()) {
    return absl::InvalidArgumentError("not as many inputs as the model reads");
  }
  const absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meters.memory);
  if (!used_meter.ok()) return used_meter.status();
  try {
    model_.EnsureGradients();
    StateGuard before(model_.buffers(), DeviceOf(inputs));
    int64_t input_bytes = 0;
    for (const at::Tensor& input : inputs) input_bytes += static_cast<int64_t>(input.nbytes());
    StepMeter step(meters, *used_meter, Bytes(input_bytes));
    const LossValue loss = Train(std::move(inputs), target);
    step.Stop();
    StepReport report;
    step.Finish(loss, &report);
    report.forwards = model_.size() - static_cast<int>(model_.inputs().size());
    before.Dismiss();
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("plain training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
