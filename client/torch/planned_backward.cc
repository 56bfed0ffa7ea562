#include "client/torch/planned_backward.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

using torch::autograd::variable_list;

class PlannedBackward : public torch::autograd::Node {
 public:
  explicit PlannedBackward(std::unique_ptr<PlannedRest> rest) : rest_(std::move(rest)) {}

  variable_list apply(variable_list&& gradients) override {
    if (at::GradMode::is_enabled()) {
      ThrowStatus(absl::UnimplementedError("a planned step has no gradient of its gradient"));
    }
    if (rest_ == nullptr) {
      ThrowStatus(
          absl::FailedPreconditionError("Trying to backward through a planned step a second time: "
                                        "what it held for that is freed. "
                                        "Set retain_graph the first time."));
    }
    std::unique_ptr<PlannedRest> rest = std::move(rest_);
    at::Tensor gradient = rest->Backward(std::move(gradients[0]));
    if (!last_) rest_ = std::move(rest);
    return {std::move(gradient)};
  }

  void will_release_variables() override { last_ = true; }
  void release_variables() override { rest_.reset(); }
  std::string name() const override { return "PlannedBackward"; }

 private:
  std::unique_ptr<PlannedRest> rest_;
  bool last_ = false;  // the graph goes after the next apply
};

}  // namespace

torch::autograd::Edge EdgeTo(const at::Tensor& input) {
  return torch::autograd::impl::gradient_edge(input);
}

void SetBackward(const at::Tensor& output, torch::autograd::Edge next,
                 std::unique_ptr<PlannedRest> rest) {
  const std::shared_ptr<PlannedBackward> node(new PlannedBackward(std::move(rest)),
                                              torch::autograd::deleteNode);
  node->add_next_edge(std::move(next));
  torch::autograd::impl::set_gradient_edge(output, {node, node->add_input_metadata(output)});
}

TensorVersions::TensorVersions(std::string what, const std::vector<at::Tensor>& tensors)
    : what_(std::move(what)) {
  for (const at::Tensor& tensor : tensors) {
    counters_.push_back(torch::autograd::impl::version_counter(tensor));
    versions_.push_back(counters_.back().current_version());
  }
}

void TensorVersions::CheckUnchanged() const {
  for (size_t i = 0; i < versions_.size(); ++i) {
    if (counters_[i].current_version() == versions_[i]) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat(what_, " ", i,
                     " of a planned step was written over between its forward and its backward, "
                     "which runs parts of the forward again")));
  }
}

}  // namespace stowage
