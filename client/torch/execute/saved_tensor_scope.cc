#include "client/torch/execute/saved_tensor_scope.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/base/autograd_node.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/memory/thread_memory.h"
#include "client/torch/offload/device_use.h"

namespace stowage {

// What was saved in one scope. Its hooks count themselves by sharing `hooks`.
class SavedTensorRecord {
 public:
  struct Saved {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::shared_ptr<int> hooks;
  };

  std::shared_ptr<int> Add(const StoragePtr& storage) {
    const auto known = std::find_if(saved_.begin(), saved_.end(), [&](const Saved& saved) {
      return saved.storage.lock() == storage;
    });
    if (known != saved_.end()) return known->hooks;
    saved_.push_back({c10::weak_intrusive_ptr<c10::StorageImpl>(storage), std::make_shared<int>()});
    return saved_.back().hooks;
  }

  const std::vector<Saved>& saved() const { return saved_; }

 private:
  std::vector<Saved> saved_;
};

namespace {

thread_local PackingScope* current_scope = nullptr;

class DroppingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor&) override {}
  at::Tensor call_unpack_hook() override {
    throw StageRuleError(
        "its forward runs a backward of its own: it cannot be computed again (must_keep)");
  }
};

class RememberingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit RememberingHooks(SavedTensorRecord* record) : record_(record) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    // The graph must not hold the tensor's own node, which may hold these hooks. Unlike variable_data()
    // this shares the version.
    tensor_ = tensor.tensor_data();
    version_ = tensor._version();
    if (const StoragePtr storage = StoragePtrOf(tensor)) counted_ = record_->Add(storage);
  }

  at::Tensor call_unpack_hook() override {
    TORCH_CHECK(tensor_._version() == version_,
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: it is at version ",
                tensor_._version(), ", saved was version ", version_);
    return tensor_;
  }

 private:
  SavedTensorRecord* record_;  // while packing only
  at::Tensor tensor_;
  int64_t version_ = 0;
  std::shared_ptr<int> counted_;
};

std::atomic<torch::autograd::Engine*> engine_before{nullptr};

// Only the hooks are other than those of the engine before. A backward that a scope's forward runs, and
// notes on nodes for anomaly detection, are its business: Python's take the interpreter's lock and are
// what Python expects of every node.
class RememberingEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
    // What a compiler traces are tensors without data: it saves them itself, and refuses hooks.
    if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
#endif
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
  static auto* const engine = new RememberingEngine();
  return *engine;
}

torch::autograd::Engine& EngineOfThread() {
  return current_scope != nullptr ? OwnEngine() : *engine_before.load();
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

SavedTensorScope::SavedTensorScope() : record_(std::make_shared<SavedTensorRecord>()) {}

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedTensorScope::MakeHooks() {
  return std::make_unique<RememberingHooks>(record_.get());
}

std::unique_ptr<torch::autograd::SavedVariableHooks> DropSavedScope::MakeHooks() {
  return std::make_unique<DroppingHooks>();
}

std::vector<StoragePtr> SavedTensorScope::OwnedByGraph(c10::Device device) const {
  std::vector<StoragePtr> owned;
  for (const SavedTensorRecord::Saved& saved : record_->saved()) {
    StoragePtr storage = saved.storage.lock();
    if (!storage || storage->nbytes() == 0 || storage->device() != device) continue;
    const auto holders = static_cast<size_t>(saved.hooks.use_count()) - 1;
    if (storage.use_count() == holders + 1) owned.push_back(std::move(storage));
  }
  return owned;
}

bool WarmNodes::Run(int v) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !have_run_.insert({v, std::this_thread::get_id()}).second;
}

std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward) {
  const SavedTensorScope scope;
  return MovableParts(device, forward, [&] { return scope.OwnedByGraph(device->device()); });
}

std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward,
                                     const std::function<std::vector<StoragePtr>()>& owned,
                                     bool warm) {
  if (!at::SavedTensorDefaultHooks::is_enabled()) {
    throw ImmovableError(absl::StrCat(
        "what its graph holds cannot go to the host as the plan has it, since saved-tensor hooks "
        "are forbidden here: ",
        *at::SavedTensorDefaultHooks::get_disabled_error_message()));
  }
  const DeviceWatch watch(device->device());
  const MemoryMeter& meter = *device->meter();
  const bool by_thread = HeldByThread(meter).has_value();
  const auto held = [&] { return by_thread ? *HeldByThread(meter) : meter.current(); };
  const Bytes before = held();
  const Tensors outputs = forward();
  std::vector<StoragePtr> parts = owned();
  int64_t hidden = (held() - before).value();
  hidden -= StorageBytesOf(outputs);
  for (const StoragePtr& part : parts) hidden -= static_cast<int64_t>(part->nbytes());
  if (hidden > 0 && (by_thread || warm)) {
    if (!by_thread && watch.SawOthers()) {
      throw StageRuleError(absl::StrCat(
          "another thread steps on this device, too, and memory is counted for both: ", hidden,
          " bytes belong to that step, or to this graph, and those could not go to the host. Steps "
          "whose plans copy must take turns"));
    }
    throw ImmovableError(absl::StrCat("its graph holds ", hidden,
                                      " bytes that autograd has not saved, which cannot go to the "
                                      "host as the plan has it"));
  }
  return parts;
}

}  // namespace stowage
