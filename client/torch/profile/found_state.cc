#include "client/torch/profile/found_state.h"

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/model/model_state.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

// Their lists of numbers are shapes of the batch.
bool TakesShapes(const std::string& operation) {
  static const auto* const kOperations = new std::set<std::string>{
      "aten::view",        "aten::reshape",    "aten::_reshape_alias", "aten::_unsafe_view",
      "aten::expand",      "aten::as_strided", "aten::empty",          "aten::zeros",
      "aten::ones",        "aten::full",       "aten::new_empty",      "aten::new_zeros",
      "aten::new_ones",    "aten::new_full",   "aten::rand",           "aten::randn",
      "aten::broadcast_to"};
  return kOperations->count(operation) > 0;
}

// The operations that one part of a model runs on this thread, those within operations not counted.
class Observer {
 public:
  explicit Observer(const std::vector<at::Tensor>& inputs) {
    for (const at::Tensor& input : inputs) Made(input);
    current = this;
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(&Observer::Start, &Observer::End)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
  }
  ~Observer() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Puts back what was written.
  FoundState Finish() {
    if (reads_graph_) {
      throw StageRuleError(
          "it reads a tensor with a graph from outside of its inputs, whose gradient no plan could "
          "give");
    }
    FoundState found;
    const at::RecordFunctionGuard unobserved(/*is_enabled=*/false);
    for (const Outside& outside : outside_) {
      if (outside.tensor.requires_grad()) {
        found.parameters.push_back(outside.tensor);
      } else if (BufferState::Capture({outside.tensor}) != outside.before) {
        found.buffers.push_back(outside.tensor);
      }
    }
    for (const Outside& outside : outside_) {
      if (!outside.tensor.requires_grad()) outside.before.Restore();
    }
    found.op_kind = absl::StrCat("ops:", Sha256(operations_).ToHex().substr(0, 16));
    return found;
  }

 private:
  struct Outside {
    at::Tensor tensor;
    BufferState before;
  };

  static std::unique_ptr<at::ObserverContext> Start(const at::RecordFunction& operation) {
    if (current != nullptr && current->depth_++ == 0) current->Read(operation);
    return nullptr;
  }
  static void End(const at::RecordFunction& operation, at::ObserverContext* /*context*/) {
    if (current == nullptr || --current->depth_ > 0) return;
    for (const c10::IValue& output : operation.outputs()) current->Take(output);
  }

  void Read(const at::RecordFunction& operation) {
    const at::RecordFunctionGuard unobserved(/*is_enabled=*/false);
    const std::string name = operation.name();
    absl::StrAppend(&operations_, name, "(");
    for (const c10::IValue& input : operation.inputs()) Read(input, TakesShapes(name));
    operations_ += ")";
  }

  void Read(const c10::IValue& value, bool shapes) {
    if (value.isTensor()) {
      operations_ += "t,";
      NoteTensor(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) NoteTensor(tensor);
      operations_ += "t[],";
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : OptionalTensors(value)) {
        if (tensor) NoteTensor(*tensor);
      }
      operations_ += "t?[],";
    } else if (value.isNone() || value.isBool() || value.isInt() || value.isDouble() ||
               value.isString() || value.isBoolList() || value.isDoubleList() ||
               (value.isIntList() && !shapes)) {
      std::ostringstream text;
      text.precision(17);
      text << value << ",";
      operations_ += text.str();
    } else {
      operations_ += value.tagKind() + ",";
    }
  }

  static std::vector<std::optional<at::Tensor>> OptionalTensors(const c10::IValue& value) {
    std::vector<std::optional<at::Tensor>> tensors;
    for (const c10::IValue& element : value.toListRef()) {
      tensors.push_back(element.isTensor() ? std::optional<at::Tensor>(element.toTensor())
                                           : std::nullopt);
    }
    return tensors;
  }

  void NoteTensor(const at::Tensor& tensor) {
    if (!tensor.defined() || StorageOf(tensor) == nullptr) return;
    if (tensor.requires_grad() && tensor.is_leaf()) {
      const auto same = [&](const at::Tensor& held) { return held.is_same(tensor); };
      if (Knows(tensor) || std::any_of(held_.begin(), held_.end(), same)) return;
      outside_.push_back({tensor, BufferState()});
      return;
    }
    if (made_.count(StorageOf(tensor)) > 0 || Knows(tensor)) return;
    // LibTorch would swallow an exception here.
    reads_graph_ |= tensor.requires_grad();
    outside_.push_back({tensor, BufferState::Capture({tensor})});
  }

  bool Knows(const at::Tensor& tensor) const {
    return std::any_of(outside_.begin(), outside_.end(), [&](const Outside& outside) {
      return StorageOf(outside.tensor) == StorageOf(tensor);
    });
  }

  void Take(const c10::IValue& value) {
    if (value.isTensor()) {
      Made(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) Made(tensor);
    }
  }

  // Held, so that no other tensor gets its place.
  void Made(const at::Tensor& tensor) {
    if (!tensor.defined() || StorageOf(tensor) == nullptr || Knows(tensor)) return;
    if (made_.insert(StorageOf(tensor)).second) held_.push_back(tensor);
  }

  static thread_local Observer* current;

  std::vector<at::Tensor> held_;
  std::unordered_set<const c10::StorageImpl*> made_;
  std::vector<Outside> outside_;
  std::string operations_;
  int depth_ = 0;
  bool reads_graph_ = false;
  at::CallbackHandle handle_;
};

thread_local Observer* Observer::current = nullptr;

// What `run` uses beside the inputs; its outputs go to `*outputs`, without a graph.
FoundState Observe(const std::vector<at::Tensor>& inputs, const std::function<Tensors()>& run,
                   std::vector<at::Tensor>* outputs) {
  const at::AutoGradMode grad(true);
  Observer observer(inputs);
  Tensors made = run();
  const auto defined = [](const at::Tensor& tensor) { return tensor.defined(); };
  if (std::none_of(made.begin(), made.end(), defined)) {
    throw StageRuleError("its forward returned no tensor");
  }
  FoundState found = observer.Finish();
  for (at::Tensor& tensor : made) {
    if (tensor.defined()) tensor = tensor.detach();
  }
  *outputs = std::move(made);
  return found;
}

std::vector<at::Tensor> ValuesOf(const std::vector<NodeOutput>& inputs,
                                 const std::vector<std::vector<at::Tensor>>& made) {
  std::vector<at::Tensor> read;
  for (const NodeOutput input : inputs) {
    read.push_back(made[static_cast<size_t>(input.node)].at(static_cast<size_t>(input.index)));
  }
  return read;
}

std::vector<at::Tensor> Detached(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> detached;
  for (const at::Tensor& tensor : tensors) detached.push_back(tensor.detach());
  return detached;
}

// Nothing of a loss that fails without targets: they may come with a later batch.
std::optional<FoundState> ObserveLoss(const ChainModel& model,
                                      const std::vector<std::vector<at::Tensor>>& made,
                                      const Tensors& targets) {
  const std::vector<at::Tensor> read = ValuesOf(model.InputsOf(model.length() + 1), made);
  std::vector<at::Tensor> known = read, outputs;
  known.insert(known.end(), targets.begin(), targets.end());
  try {
    return Observe(
        known, [&] { return model.loss()(read, targets); }, &outputs);
  } catch (...) {
    if (!targets.empty()) throw;
    return std::nullopt;
  }
}

}  // namespace

absl::Status FindState(const Tensors& inputs, const Tensors& targets, ChainModel* model) {
  absl::Status status = model->status();
  if (status.ok()) status = model->CheckInputs(inputs);
  if (!status.ok()) return status;
  std::vector<FoundState> found;
  try {
    const StateGuard before(model->buffers(), DeviceOf(inputs));
    std::vector<std::vector<at::Tensor>> made = {Detached(inputs)};
    for (int l = 1; l <= model->length(); ++l) {
      const std::vector<at::Tensor> read = ValuesOf(model->InputsOf(l), made);
      made.emplace_back();
      found.push_back(Observe(
          read, [&] { return model->stage(l).forward(Tensors(read)); }, &made.back()));
      if (l > 1) made[static_cast<size_t>(l) - 1].clear();
    }
    if (model->loss()) {
      if (std::optional<FoundState> loss = ObserveLoss(*model, made, targets)) {
        found.push_back(*std::move(loss));
      }
    }
  } catch (...) {
    return CurrentExceptionToStatus(model->Describe(static_cast<int>(found.size()) + 1),
                                    absl::StatusCode::kInvalidArgument);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    model->Complete(static_cast<int>(i) + 1, std::move(found[i]));
  }
  return absl::OkStatus();
}

absl::Status FindState(const Tensors& inputs, const Tensors& targets, GraphModel* model) {
  if (!model->status().ok()) return model->status();
  if (inputs.size() != model->inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", inputs.size(), " inputs, the model reads ", model->inputs().size()));
  }
  std::vector<FoundState> found(static_cast<size_t>(model->size()));
  int v = 0;
  try {
    const StateGuard before(model->buffers(), DeviceOf(inputs));
    std::vector<std::vector<at::Tensor>> made(found.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      made[static_cast<size_t>(model->inputs()[i].node)].push_back(inputs[i].detach());
    }
    for (; v < model->size(); ++v) {
      if (model->is_input(v)) continue;
      const ModelNode& node = model->node(v);
      Tensors read = ValuesOf(node.inputs, made);
      // The caller's own inputs stay as they are.
      if (node.in_place) read.front() = read.front().clone();
      if (node.reads_target) {
        read.insert(read.end(), targets.begin(), targets.end());
        if (targets.empty()) read.emplace_back();
      }
      const auto i = static_cast<size_t>(v);
      found[i] = Observe(
          read, [&] { return node.forward(read); }, &made[i]);
    }
  } catch (...) {
    return CurrentExceptionToStatus(model->Describe(v), absl::StatusCode::kInvalidArgument);
  }
  for (v = 0; v < model->size(); ++v) {
    if (!model->is_input(v)) model->Complete(v, std::move(found[static_cast<size_t>(v)]));
  }
  return absl::OkStatus();
}

}  // namespace stowage
