#include "client/torch/model/chain_model.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {
void ChainModel::AddStage(ModelStage stage) {
  const auto fail = [&](const std::string& rule) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("stage ", length() + 1, " (", stage.name, ", ", stage.op_kind, "): ", rule));
  };
  if (stage.outputs < 1) fail("makes no tensor");
  for (const int side : stage.side_inputs) {
    if (side >= 0 && side < static_cast<int>(side_inputs_.size())) continue;
    fail(absl::StrCat("reads side input ", side, " of ", side_inputs_.size()));
  }
  AddTensors(stage.parameters, stage.buffers, stage.modes);
  stages_.push_back(std::move(stage));
}

int ChainModel::AddSideInput(std::string name) {
  side_inputs_.push_back(std::move(name));
  return static_cast<int>(side_inputs_.size()) - 1;
}

void ChainModel::AddFunction(std::string name, std::string op_kind, StageFunction forward) {
  ModelStage stage;
  stage.name = std::move(name);
  stage.op_kind = std::move(op_kind);
  stage.forward = std::move(forward);
  AddStage(std::move(stage));
}

void ChainModel::SetLoss(std::string op_kind, LossFunction loss) {
  loss_op_kind_ = std::move(op_kind);
  loss_ = std::move(loss);
}

void ChainModel::Complete(int l, const FoundState& found) {
  if (l > length()) {
    if (loss_op_kind_.empty()) loss_op_kind_ = found.op_kind;
    return;
  }
  ModelStage& stage = stages_[static_cast<size_t>(l) - 1];
  AddFound(found, &stage.op_kind, &stage.parameters, &stage.buffers);
}

namespace {

// A view of an input would keep it alive where the plan lets it go.
Tensors OwnMemory(Tensors outputs, const Tensors& inputs) {
  const auto is_shared = [&](const c10::StorageImpl* storage) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const at::Tensor& input) { return StorageOf(input) == storage; });
  };
  for (at::Tensor& output : outputs) {
    const c10::StorageImpl* const storage = StorageOf(output);
    if (storage != nullptr && is_shared(storage)) output = output.clone();
  }
  return outputs;
}

}  // namespace

std::vector<NodeOutput> ChainModel::InputsOf(int l) const {
  std::vector<NodeOutput> inputs;
  const int before = l == 1 ? 1 : stage(l - 1).outputs;
  for (int i = 0; i < before; ++i) inputs.emplace_back(l - 1, i);
  if (l > length()) return inputs;
  for (const int side : stage(l).side_inputs) inputs.emplace_back(0, side + 1);
  return inputs;
}

GraphModel ChainModel::InLine(bool with_loss) const {
  GraphModel line(name_);
  line.AddInput("input", 1 + static_cast<int>(side_inputs_.size()));
  for (int l = 1; l <= length(); ++l) {
    const ModelStage& described = stage(l);
    ModelNode node;
    node.name = described.name;
    node.op_kind = described.op_kind;
    node.inputs = InputsOf(l);
    node.outputs = described.outputs;
    node.forward = [forward = described.forward](const Tensors& x) {
      return OwnMemory(forward(x), x);
    };
    node.parameters = described.parameters;
    node.buffers = described.buffers;
    node.random = described.random;
    node.stateful = described.stateful;
    node.must_keep = described.must_keep;
    node.modes = described.modes;
    line.AddNode(std::move(node));
  }
  if (!with_loss || !loss_) {
    for (int i = 0; length() > 0 && i < stage(length()).outputs; ++i) {
      line.MarkOutput({length(), i});
    }
    return line;
  }
  ModelNode node;
  node.op_kind = loss_op_kind_;
  node.inputs = InputsOf(length() + 1);
  node.reads_target = true;
  node.forward = [loss = loss_, outputs = node.inputs.size()](const Tensors& x) {
    const auto targets = x.begin() + static_cast<std::ptrdiff_t>(outputs);
    at::Tensor value = loss(Tensors(x.begin(), targets), Tensors(targets, x.end()));
    if (value.defined() && value.numel() != 1) throw StageRuleError("the loss must be a scalar");
    return OwnMemory(std::move(value), Tensors(x.begin(), targets));
  };
  line.AddNode(std::move(node));
  return line;
}

absl::Status ChainModel::CheckInputs(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != side_inputs_.size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", inputs.size(), " inputs, the chain reads ",
        side_inputs_.empty() ? std::string("one")
                             : absl::StrCat("one and ", side_inputs_.size(), " side inputs")));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) continue;
    const std::string name = i == 0 ? "the input" : "the side input " + side_inputs_[i - 1];
    return absl::InvalidArgumentError(name + " is an undefined tensor");
  }
  return absl::OkStatus();
}

std::string ChainModel::Describe(int l) const {
  if (l == 0) return "the input";  // where a copy names an activation
  if (l > length()) return absl::StrCat("the loss (", loss_op_kind_, ")");
  return absl::StrCat("stage ", l, " (", stage(l).name, ", ", stage(l).op_kind, ")");
}

}  // namespace stowage
