#include "client/torch/run_backward.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <utility>

#include "client/torch/autograd_node.h"

namespace stowage {
namespace {

// Runs after everything else in a queue: the engine takes the youngest first, and drops what belongs
// to a backward that is over.
class Oldest final : public torch::autograd::Node {
 public:
  explicit Oldest(const at::Tensor& gradient) : Node(/*sequence_nr=*/0) {
    add_input_metadata(gradient);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*gradients*/) override {
    return {};
  }
};

// The root of a backward, which gives its gradients away; the engine's own would hold them to the end.
class Root final : public torch::autograd::Node {
 public:
  Root(torch::autograd::edge_list places, std::vector<at::Tensor> gradients,
       const at::Tensor& nothing)
      : Node(std::move(places)), gradients_(std::move(gradients)) {
    add_input_metadata(nothing);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*gradients*/) override {
    return std::move(gradients_);
  }

 private:
  std::vector<at::Tensor> gradients_;
};

void Execute(const std::vector<torch::autograd::Edge>& roots,
             const std::vector<at::Tensor>& gradients) {
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

void EmptyQueue() {
  const at::Tensor nothing = at::empty({0});
  Execute({torch::autograd::Edge(MakeNode<Oldest>(nothing), 0)}, {nothing});
}

}  // namespace

void RunBackward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients) {
  try {
    torch::autograd::backward(roots, gradients);
  } catch (...) {
    EmptyQueue();
    throw;
  }
}

void RunBackwardFrom(std::vector<torch::autograd::Edge> roots, std::vector<at::Tensor> gradients) {
  const at::Tensor nothing = at::empty({0});
  const NodePtr root = MakeNode<Root>(std::move(roots), std::move(gradients), nothing);
  RunBackwardAt({torch::autograd::Edge(root, 0)}, {nothing});
}

void RunBackwardAt(const std::vector<torch::autograd::Edge>& roots,
                   const std::vector<at::Tensor>& gradients) {
  try {
    Execute(roots, gradients);
  } catch (...) {
    EmptyQueue();
    throw;
  }
}

}  // namespace stowage
