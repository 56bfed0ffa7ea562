#include "client/torch/model/batch_shape.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
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

absl::Status Check(const char* what, const at::Tensor& tensor, const TensorShape& planned) {
  const TensorShape shape = TensorShape::Of(tensor);
  if (Fits(shape, planned)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", what, " is ", ToString(shape), ", the plan is for ", ToString(planned), " at most"));
}

}  // namespace

TensorShape TensorShape::Of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.scalar_type(), tensor.sizes().vec()};
}

BatchShape BatchShape::Of(const at::Tensor& input, const at::Tensor& target) {
  return {TensorShape::Of(input), TensorShape::Of(target), AutocastState::Capture().ToString()};
}

absl::Status BatchShape::CheckInput(const at::Tensor& tensor) const {
  const std::string now = AutocastState::Capture().ToString();
  if (now != autocast) {
    return absl::InvalidArgumentError(
        absl::StrCat("autocast is ", now, ", the plan is for ", autocast));
  }
  return Check("input", tensor, input);
}

absl::Status BatchShape::CheckTarget(const at::Tensor& tensor) const {
  return Check("target", tensor, target);
}

}  // namespace stowage
