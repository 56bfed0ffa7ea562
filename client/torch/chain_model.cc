#include "client/torch/chain_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {
void ChainModel::AddStage(ModelStage stage) {
  AddTensors(stage.parameters, stage.buffers);
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

bool ChainModel::NeedsInputGradient(int l) const {
  return std::any_of(stages_.begin(), stages_.begin() + (l - 1),
                     [](const ModelStage& stage) { return AnyTrains(stage.parameters); });
}

std::string ChainModel::Describe(int l) const {
  if (l == 0) return "the input";  // where a copy names an activation
  if (l > length()) return absl::StrCat("the loss (", loss_op_kind_, ")");
  return absl::StrCat("stage ", l, " (", stage(l).name, ", ", stage(l).op_kind, ")");
}

}  // namespace stowage
