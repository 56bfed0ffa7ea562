#include "client/torch/script/script_runner.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <unordered_map>
#include <utility>

#include "client/torch/base/rethrow_as_thrown.h"

namespace stowage {
namespace {

// The segment as a graph of its own: with inputs, shapes and attributes as its inputs, in this order.
class GraphMaker {
 public:
  GraphMaker() : graph_(std::make_shared<torch::jit::Graph>()) {}

  std::shared_ptr<torch::jit::Graph> Make(const ScriptSegment& segment) {
    for (const auto* values : {&segment.inputs, &segment.shapes, &segment.attributes}) {
      for (const ScriptValue* value : *values) {
        ScriptValue* input = graph_->addInput();
        input->setType(c10::TensorType::get());
        copies_[value] = input;
      }
    }
    for (ScriptNode* op : segment.ops) Copy(op);
    graph_->registerOutput(copies_.at(segment.output));
    return graph_;
  }

 private:
  void Copy(ScriptNode* node) {
    for (ScriptValue* value : ReadBy(node)) {
      if (copies_.count(value) == 0) Copy(value->node());
    }
    ScriptNode* copy =
        graph_->createClone(node, [this](ScriptValue* value) { return copies_.at(value); });
    graph_->appendNode(copy);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      copies_[node->output(i)] = copy->output(i);
    }
  }

  std::shared_ptr<torch::jit::Graph> graph_;
  std::unordered_map<const ScriptValue*, ScriptValue*> copies_;
};

}  // namespace

ScriptRunner::ScriptRunner(const LoweredScript& script, const ScriptSegment& segment,
                           const std::string& name)
    : code_(GraphMaker().Make(segment), name) {
  const auto inputs = script.graph->inputs();
  for (const ScriptValue* value : segment.attributes) {
    for (size_t i = script.own_inputs; i < inputs.size(); ++i) {
      if (inputs[i] == value) attributes_.push_back(script.attributes[i - script.own_inputs]);
    }
  }
  for (const c10::IValue& constant : code_.constant_table()) {
    if (constant.isTensor()) constants_.push_back(constant.toTensor());
  }
}

at::Tensor ScriptRunner::Run(const std::vector<at::Tensor>& inputs) const {
  torch::jit::Stack stack;
  for (const at::Tensor& input : inputs) stack.emplace_back(input);
  for (const ScriptAttribute& attribute : attributes_) stack.emplace_back(attribute.tensor);
  const RethrowAsThrown rethrow;
  torch::jit::InterpreterState(code_).run(stack);
  at::Tensor output = stack.front().toTensor();
  // A view of a constant would be no memory of the step's.
  for (const at::Tensor& constant : constants_) {
    if (output.is_alias_of(constant)) return output.clone();
  }
  return output;
}

at::Tensor ShapeOf(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  return at::empty({1}, tensor.options()).expand(tensor.sizes());
}

}  // namespace stowage
