#include "client/torch/execute/run_backward.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <exception>
#include <memory>
#include <utility>

#include "client/torch/base/autograd_node.h"

namespace stowage {
namespace {

thread_local const c10::Device* thread_of = nullptr;  // of OnBackwardsThread

bool IsOnBackwardsThread(c10::Device device) {
  return thread_of != nullptr && *thread_of == device;
}

// Runs after everything else in a queue: the engine takes the youngest first, and drops what belongs
// to a backward that is over.
class LastInQueue final : public torch::autograd::Node {
 public:
  explicit LastInQueue(const at::Tensor& gradient) : Node(/*sequence_nr=*/0) {
    add_input_metadata(gradient);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*gradients*/) override {
    return {};
  }
};

// The root of a backward, which gives its gradients away; the engine's own would hold them to the end. It runs on the
// thread of the device, which so is given all of them before it runs any: the engine's own, on the calling thread, hands
// them over one by one, and the device's thread may be ahead of it, in another order than that of the numbers.
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

// What throws is told to the caller as it is: LibTorch 1.13 makes another exception of it.
class Errand final : public torch::autograd::Node {
 public:
  Errand(const std::function<void()>* run, const at::Tensor& nothing)
      : run_(run), device_(nothing.device()) {
    add_input_metadata(nothing);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*gradients*/) override {
    const c10::AutoGradMode grad(true);
    const OnBackwardsThread here(device_);
    try {
      (*run_)();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return {};
  }

  const std::exception_ptr& thrown() const { return thrown_; }

 private:
  const std::function<void()>* const run_;
  const c10::Device device_;
  std::exception_ptr thrown_;
};

void Execute(const std::vector<torch::autograd::Edge>& roots,
             const std::vector<at::Tensor>& gradients) {
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

// Of the calling thread, or of the one that autograd has for another device. That one may hold on to what it ran last when
// the caller goes on already: when this has run there, it has let go.
void EmptyQueue(c10::Device device) {
  const at::Tensor nothing = at::empty({0}, at::TensorOptions(device));
  Execute({torch::autograd::Edge(MakeNode<LastInQueue>(nothing), 0)}, {nothing});
}

// The one that they are on.
c10::Device DeviceOfAll(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) return tensor.device();
  }
  return c10::kCPU;
}

template <class Run>
void RunAndEmpty(c10::Device device, const Run& run) {
  try {
    run();
  } catch (...) {
    EmptyQueues(device);
    throw;
  }
  if (!device.is_cpu() && !IsOnBackwardsThread(device)) EmptyQueue(device);
}

// With one place the engine has no root.
bool NeedsRoot(size_t places, c10::Device device) { return places > 1 && !device.is_cpu(); }

}  // namespace

void EmptyQueues(c10::Device device) {
  EmptyQueue(c10::kCPU);
  if (!device.is_cpu()) EmptyQueue(device);
}

void RunBackward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients) {
  const c10::Device device = DeviceOfAll(roots);
  if (!NeedsRoot(roots.size(), device)) {
    return RunAndEmpty(device, [&] { torch::autograd::backward(roots, gradients); });
  }
  torch::autograd::edge_list places;
  std::vector<at::Tensor> given = gradients;
  for (const at::Tensor& root : roots) {
    places.push_back(torch::autograd::impl::gradient_edge(root));
    if (gradients.empty()) given.push_back(at::ones_like(root));
  }
  RunBackwardFrom(std::move(places), std::move(given));
}

void RunBackwardFrom(std::vector<torch::autograd::Edge> roots, std::vector<at::Tensor> gradients) {
  const c10::Device device = DeviceOfAll(gradients);
  const at::Tensor nothing = at::empty({0}, at::TensorOptions(device));
  const NodePtr root = MakeNode<Root>(std::move(roots), std::move(gradients), nothing);
  RunAndEmpty(device, [&] { Execute({torch::autograd::Edge(root, 0)}, {nothing}); });
}

void RunBackwardAt(const std::vector<torch::autograd::Edge>& roots,
                   const std::vector<at::Tensor>& gradients) {
  const c10::Device device = DeviceOfAll(gradients);
  if (NeedsRoot(roots.size(), device)) return RunBackwardFrom(roots, gradients);
  RunAndEmpty(device, [&] { Execute(roots, gradients); });
}

OnBackwardsThread::OnBackwardsThread(c10::Device device) : device_(device), outer_(thread_of) {
  thread_of = &device_;
}

OnBackwardsThread::~OnBackwardsThread() { thread_of = outer_; }

void RunOnBackwardsThread(c10::Device device, const std::function<void()>& run) {
  const at::Tensor nothing = at::empty({0}, at::TensorOptions(device));
  const auto errand = MakeNode<Errand>(&run, nothing);
  Execute({torch::autograd::Edge(errand, 0)}, {nothing});
  if (errand->thrown() != nullptr) std::rethrow_exception(errand->thrown());
}

}  // namespace stowage
