#include "client/torch/run_backward.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <memory>

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

void Execute(const std::vector<torch::autograd::Edge>& roots,
             const std::vector<at::Tensor>& gradients) {
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

void EmptyQueue() {
  const at::Tensor nothing = at::empty({0});
  Execute({torch::autograd::Edge(std::make_shared<Oldest>(nothing), 0)}, {nothing});
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
