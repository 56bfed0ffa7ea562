#include "client/torch/model/batch_shape.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/torch/model/autocast_state.h"

namespace stowage {
namespace {

std::string ToString(const TensorShape& shape) {
  if (shape.type == at::ScalarType::Undefined) return "undefined";
  return absl::StrCat(c10::toString(shape.type), "[", absl::StrJoin(shape.sizes, ", "), "]");
}

bool Fits(const TensorShape& shape, const TensorShape& planned) {
  return shape.type == planned.type && shape.sizes.size() == planned.sizes.size() &&
         std::equal(shape.sizes.begin(), shape.sizes.end(), planned.sizes.begin(),
                    std::less_equal<>());
}

absl::Status CheckAll(const std::string& what, const std::vector<at::Tensor>& tensors,
                      const std::vector<TensorShape>& planned) {
  if (tensors.size() != planned.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", tensors.size(), " ", what,
                                                   "s, the plan is for ", planned.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorShape shape = TensorShape::Of(tensors[i]);
    if (Fits(shape, planned[i])) continue;
    const std::string which = planned.size() == 1 ? "the " + what : absl::StrCat(what, " ", i);
    return absl::InvalidArgumentError(absl::StrCat(
        which, " is ", ToString(shape), ", the plan is for ", ToString(planned[i]), " at most"));
  }
  return absl::OkStatus();
}

std::vector<TensorShape> ShapesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<TensorShape> shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back(TensorShape::Of(tensor));
  return shapes;
}

}  // namespace

TensorShape TensorShape::Of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.scalar_type(), tensor.sizes().vec()};
}

BatchShape BatchShape::Of(const Tensors& inputs, const Tensors& targets) {
  return {ShapesOf(inputs), ShapesOf(targets), AutocastState::Capture().ToString()};
}

absl::Status BatchShape::CheckInputs(const std::vector<at::Tensor>& tensors) const {
  const std::string now = AutocastState::Capture().ToString();
  if (now != autocast) {
    return absl::InvalidArgumentError(
        absl::StrCat("autocast is ", now, ", the plan is for ", autocast));
  }
  return CheckAll("input", tensors, inputs);
}

absl::Status BatchShape::CheckTargets(const std::vector<at::Tensor>& tensors) const {
  return CheckAll("target", tensors, targets);
}

}  // namespace stowage
