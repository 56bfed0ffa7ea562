#include "client/models/network_loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/models/input_spec.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status LossError(LossKind kind, const std::string& rule) {
  return FieldError("loss", ToString(kind), rule);
}

std::vector<int64_t> WithoutClasses(std::vector<int64_t> sizes) {
  sizes.erase(sizes.begin() + 1);
  return sizes;
}

}  // namespace

const char* ToString(LossKind kind) {
  switch (kind) {
    case LossKind::kCrossEntropy:
      return "cross_entropy";
    case LossKind::kMse:
      return "mse";
    case LossKind::kSum:
      return "sum";
  }
  return "";
}

absl::StatusOr<LossKind> ParseLoss(const std::string& text) {
  for (const LossKind kind : {LossKind::kCrossEntropy, LossKind::kMse, LossKind::kSum}) {
    if (text == ToString(kind)) return kind;
  }
  return FieldError("loss", absl::StrCat("\"", text, "\""), "must be cross_entropy, mse or sum");
}

absl::Status NetworkLoss::AddOutput(const std::vector<TensorShape>& outputs, size_t i) {
  const std::string output = absl::StrCat("output ", i, " is ", ToString(outputs[i]));
  std::vector<int64_t> target = outputs[i].sizes;
  if (kind_ == LossKind::kCrossEntropy) {
    if (target.size() < 2) {
      return LossError(kind_, absl::StrCat("wants [N, C, ...] with C classes, ", output,
                                           "; mse and sum take any shape"));
    }
    classes_ = trained_.empty() ? target[1] : std::min(classes_, target[1]);
    target = WithoutClasses(std::move(target));
  }
  if (trained_.empty()) {
    target_ = std::move(target);
  } else if (kind_ != LossKind::kSum && target != target_) {
    return LossError(kind_, absl::StrCat("holds all outputs against one target: ", output,
                                         ", yet output ", trained_[0], " is ",
                                         ToString(outputs[trained_[0]]), "; sum takes any shapes"));
  }
  trained_.push_back(i);
  return absl::OkStatus();
}

absl::StatusOr<NetworkLoss> NetworkLoss::For(LossKind kind,
                                             const std::vector<TensorShape>& outputs) {
  NetworkLoss loss(kind);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!at::isFloatingType(outputs[i].type)) continue;
    const absl::Status status = loss.AddOutput(outputs, i);
    if (!status.ok()) return status;
  }
  if (!loss.trained_.empty()) return loss;
  std::vector<std::string> shapes;
  for (const TensorShape& output : outputs) shapes.push_back(ToString(output));
  return LossError(kind, absl::StrCat("needs an output of floating type; forward returns ",
                                      absl::StrJoin(shapes, " and ")));
}

at::Tensor NetworkLoss::DrawTarget() const {
  switch (kind_) {
    case LossKind::kCrossEntropy:
      return at::randint(classes_, target_, at::dtype(at::kLong));
    case LossKind::kMse:
      return at::randn(target_);
    case LossKind::kSum:
      return {};
  }
  return {};
}

at::Tensor NetworkLoss::OfOne(at::Tensor output, const at::Tensor& target) const {
  // As autocast does: 16 bits are too few for sums, and some kernels do not take them.
  if (output.element_size() == 2) output = output.to(at::kFloat);
  switch (kind_) {
    case LossKind::kCrossEntropy:
      return at::cross_entropy_loss(output, target);
    case LossKind::kMse:
      return at::mse_loss(output, target.to(output.scalar_type()));
    case LossKind::kSum:
      return output.sum();
  }
  return {};
}

at::Tensor NetworkLoss::Of(const std::vector<at::Tensor>& outputs, const at::Tensor& target) const {
  at::Tensor sum = OfOne(outputs[0], target);
  for (size_t i = 1; i < outputs.size(); ++i) sum = sum + OfOne(outputs[i], target);
  return sum;
}

std::string NetworkLoss::Describe() const {
  std::string text = ToString(kind_);
  if (kind_ == LossKind::kCrossEntropy) absl::StrAppend(&text, " over ", classes_, " classes");
  if (trained_.size() == 1) return absl::StrCat(text, ", of output ", trained_[0]);
  const std::vector<size_t> first(trained_.begin(), trained_.end() - 1);
  return absl::StrCat(text, ", of outputs ", absl::StrJoin(first, ", "), " and ", trained_.back(),
                      " added up");
}

}  // namespace stowage
