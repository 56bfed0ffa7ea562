#include "client/torch/execute/packing_scope.h"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/offload/device_use.h"

namespace stowage {

namespace {

thread_local PackingScope* current_scope = nullptr;
thread_local const c10::Device* waits_on = nullptr;  // of InnerBackwards

class DroppingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor&) override {}
  at::Tensor call_unpack_hook() override {
    throw StageRuleError(
        "its forward runs a backward of its own: it cannot be computed again (must_keep)");
  }
};

std::atomic<torch::autograd::Engine*> engine_before{nullptr};

// A backward in a forward, which may throw. To wait is to run one more: nothing of ours is in force then.
class WaitAfter {
 public:
  WaitAfter() = default;
  WaitAfter(const WaitAfter&) = delete;
  WaitAfter& operator=(const WaitAfter&) = delete;
  ~WaitAfter() {
    if (waits_on == nullptr) return;
    const c10::Device* const device = std::exchange(waits_on, nullptr);
    PackingScope* const scope = std::exchange(current_scope, nullptr);
    try {
      WaitForBackwards(*device);
    } catch (...) {
      // The backward's own end says more.
    }
    current_scope = scope;
    waits_on = device;
  }
};

// Only the hooks, and when a backward ends, are other than those of the engine before. To run a backward, and notes on nodes
// for anomaly detection, are its business: Python's take the interpreter's lock and are what Python expects of every node.
class ScopedEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
    // What a compiler traces are tensors without data: it saves them itself, and refuses hooks.
    if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
#endif
    if (current_scope == nullptr) return Before()->get_default_saved_variable_hooks();
    if (current_scope->Yields()) {
      std::unique_ptr<torch::autograd::SavedVariableHooks> theirs =
          Before()->get_default_saved_variable_hooks();
      if (theirs) return theirs;
    }
    return current_scope->MakeHooks();
  }

  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs,
                                         bool keep_graph, bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    const WaitAfter wait;
    return Before()->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task, NodePtr graph_root,
      torch::autograd::InputBuffer&& input_buffer) override {
    return Before()->execute_with_graph_task(graph_task, std::move(graph_root),
                                             std::move(input_buffer));
  }

  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return Before()->make_anomaly_metadata();
  }

#if STOWAGE_TORCH_AT_LEAST(2, 15)
  std::vector<std::unique_ptr<torch::autograd::NodeCreationHook>> get_node_creation_hooks()
      override {
    return Before()->get_node_creation_hooks();
  }
#endif

 private:
  static torch::autograd::Engine* Before() { return engine_before.load(); }
};

// Never destroyed: others may ask for it to the end. It has no threads, since it runs nothing itself.
torch::autograd::Engine& OwnEngine() {
  static auto* const engine = new ScopedEngine();
  return *engine;
}

torch::autograd::Engine& EngineOfThread() {
  const bool ours = current_scope != nullptr || waits_on != nullptr;
  return ours ? OwnEngine() : *engine_before.load();
}

// Also again, where an embedded Python has installed its engine since.
void EnsureInstalled() {
  static auto* const mutex = new std::mutex();
  const std::lock_guard<std::mutex> lock(*mutex);
  torch::autograd::Engine& installed = torch::autograd::Engine::get_default_engine();
  if (&installed == &OwnEngine()) return;
  engine_before.store(&installed);
  torch::autograd::set_default_engine_stub(&EngineOfThread);
}

}  // namespace

PackingScope::PackingScope() : outer_(current_scope) {
  current_scope = this;
  EnsureInstalled();
}

PackingScope::~PackingScope() { current_scope = outer_; }

InnerBackwards::InnerBackwards(c10::Device device) : device_(device), outer_(waits_on) {
  if (device_.is_cpu()) return;  // its backwards run on the caller's thread
  waits_on = &device_;
  EnsureInstalled();
}

InnerBackwards::~InnerBackwards() { waits_on = outer_; }

std::unique_ptr<torch::autograd::SavedVariableHooks> DropSavedScope::MakeHooks() {
  return std::make_unique<DroppingHooks>();
}

}  // namespace stowage
