#include "client/torch/execute/tensor_versions.h"

#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

TensorVersions::TensorVersions(std::string what, const std::vector<at::Tensor>& tensors)
    : what_(std::move(what)) {
  versions_.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const c10::VariableVersion& counter = torch::autograd::impl::version_counter(tensor);
    versions_.push_back({counter, counter.current_version()});
  }
}

void TensorVersions::CheckUnchanged() const {
  for (size_t i = 0; i < versions_.size(); ++i) {
    if (versions_[i].counter.current_version() == versions_[i].then) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat(what_, " ", i,
                     " of a planned step was written over between its forward and its backward, "
                     "which runs parts of the forward again")));
  }
}

}  // namespace stowage
