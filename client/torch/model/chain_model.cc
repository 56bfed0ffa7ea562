#include "client/torch/model/chain_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {
void ChainModel::AddStage(ModelStage stage) {
  AddTensors(stage.parameters, stage.buffers, stage.modes);
  stages_.push_back(std::move(stage));
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

// A view of the input would keep the input alive where the plan lets it go.
at::Tensor OwnMemory(at::Tensor output, const at::Tensor& input) {
  const bool is_view = StorageOf(output) != nullptr && StorageOf(output) == StorageOf(input);
  return is_view ? output.clone() : output;
}

}  // namespace

GraphModel ChainModel::InLine(bool with_loss) const {
  GraphModel line(name_);
  int last = line.AddInput("input");
  for (const ModelStage& stage : stages_) {
    ModelNode node;
    node.name = stage.name;
    node.op_kind = stage.op_kind;
    node.inputs = {last};
    node.forward = [forward = stage.forward](const std::vector<at::Tensor>& x) {
      return OwnMemory(forward(x[0]), x[0]);
    };
    node.parameters = stage.parameters;
    node.buffers = stage.buffers;
    node.random = stage.random;
    node.stateful = stage.stateful;
    node.must_keep = stage.must_keep;
    node.modes = stage.modes;
    last = line.AddNode(std::move(node));
  }
  if (!with_loss || !loss_) {
    if (length() > 0) line.MarkOutput(last);
    return line;
  }
  ModelNode node;
  node.op_kind = loss_op_kind_;
  node.inputs = {last};
  node.reads_target = true;
  node.forward = [loss = loss_](const std::vector<at::Tensor>& x) {
    at::Tensor value = loss(x[0], x[1]);
    if (value.defined() && value.numel() != 1) throw StageRuleError("the loss must be a scalar");
    return OwnMemory(std::move(value), x[0]);
  };
  line.AddNode(std::move(node));
  return line;
}

std::string ChainModel::Describe(int l) const {
  if (l == 0) return "the input";  // where a copy names an activation
  if (l > length()) return absl::StrCat("the loss (", loss_op_kind_, ")");
  return absl::StrCat("stage ", l, " (", stage(l).name, ", ", stage(l).op_kind, ")");
}

}  // namespace stowage
