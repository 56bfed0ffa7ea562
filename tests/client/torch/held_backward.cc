#include "tests/client/torch/held_backward.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "client/torch/base/autograd_node.h"

namespace stowage {
namespace {

using torch::autograd::Engine;
using torch::autograd::variable_list;

thread_local bool is_held = false;  // the backward that this thread asks for

// Counts what it is asked for before LibTorch's own engine does it: from LibTorch 2 on only one engine of a process has threads
// of devices.
class CountingEngine final : public Engine {
 public:
  // Lives to the end, as LibTorch's own.
  static CountingEngine& Get() {
    static auto* const engine = new CountingEngine();
    return *engine;
  }
  static Engine& Stub() { return Get(); }

  variable_list execute(const torch::autograd::edge_list& roots, const variable_list& inputs,
                        bool keep_graph, bool create_graph, bool accumulate_grad,
                        const torch::autograd::edge_list& outputs) override {
    if (!is_held) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++asked_;
      changed_.notify_all();
    }
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad,
                                     outputs);
  }

  int64_t asked() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }
  // Or until somebody says that it is enough.
  void WaitFor(int64_t asked, const bool* enough) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return asked_ >= asked || *enough; });
  }
  void Say(bool* enough) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *enough = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t asked_ = 0;
};

class Holding final : public torch::autograd::Node {
 public:
  Holding(const at::Tensor& gradient, std::function<void()> hold) : hold_(std::move(hold)) {
    add_input_metadata(gradient);
  }
  variable_list apply(variable_list&& gradients) override {
    const at::Tensor held = at::empty({HeldBackward::kElements}, gradients[0].options());
    hold_();
    return {};
  }

 private:
  std::function<void()> hold_;
};

}  // namespace

HeldBackward::HeldBackward(c10::Device device, int64_t others) {
  torch::autograd::set_default_engine_stub(&CountingEngine::Stub);
  const int64_t asked = CountingEngine::Get().asked() + others;
  const at::Tensor nothing = at::empty({0}, at::TensorOptions(device));
  thread_ = std::thread([this, asked, nothing] {
    is_held = true;
    const auto hold = [this, asked] {
      begun_.set_value();
      CountingEngine::Get().WaitFor(asked, &enough_);
      ended_ = true;
    };
    Engine::get_default_engine().execute(
        {torch::autograd::Edge(MakeNode<Holding>(nothing, hold), 0)}, {nothing},
        /*keep_graph=*/false, /*create_graph=*/false,
        /*accumulate_grad=*/true);
  });
  begun_.get_future().wait();
}

HeldBackward::~HeldBackward() {
  CountingEngine::Get().Say(&enough_);
  thread_.join();
}

int64_t BackwardsAsked() { return CountingEngine::Get().asked(); }

}  // namespace stowage
