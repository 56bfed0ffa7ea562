#include "client/torch/execute/tensor_versions.h"

#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

TensorVersions::TensorVersions(std::string what, const std::vector<at::Tensor>& tensors)
    : what_(std::move(what)) {
  versions_.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    versions_.emplace_back();
    if (!tensor.defined()) continue;
    const c10::VariableVersion& counter = torch::autograd::impl::version_counter(tensor);
    versions_.back() = Version{counter, counter.current_version()};
  }
}

void TensorVersions::CheckUnchanged() const {
  for (size_t i = 0; i < versions_.size(); ++i) Check(i);
}

void TensorVersions::CheckUnchanged(const std::vector<size_t>& numbers) const {
  for (const size_t number : numbers) Check(number);
}

void TensorVersions::Check(size_t number) const {
  const std::optional<Version>& version = versions_[number];
  if (!version || version->counter.current_version() == version->then) return;
  ThrowStatus(absl::FailedPreconditionError(
      absl::StrCat(what_, " ", number,
                   " of a planned step was written over between its forward and its backward, "
                   "which runs parts of the forward again")));
}

}  // namespace stowage
