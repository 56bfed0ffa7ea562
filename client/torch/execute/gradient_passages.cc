#include "client/torch/execute/gradient_passages.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "client/torch/execute/passed_input.h"

namespace stowage {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// On the one edge from a node's own graph to something that no later node reads.
class GradientPassages::Passage : public Node {
 public:
  // Runs after all of the node's own graph, whose numbers are higher: what is shared in there is not any more then.
  Passage(const std::shared_ptr<State>& state, const End& to, uint64_t number)
      : Node(number), state_(state), made_(to.made) {
    add_next_edge(Edge(to.boundary, 0));
    add_input_metadata(state->tensors->Value(made_));
  }

  variable_list apply(variable_list&& gradients) override {
    const std::shared_ptr<State> state = state_.lock();
    if (state == nullptr || !gradients[0].defined() || at::GradMode::is_enabled())
      return std::move(gradients);
    if (state->has_gradient[made_] != 0) return std::move(gradients);
    if (!state->chain) return {GradientWithOwnMemory(std::move(gradients[0]))};
    return {DenseGradient(std::move(gradients[0]), state->tensors->Value(made_))};
  }

  std::string name() const override { return "StowagePassage"; }

 private:
  const std::weak_ptr<State> state_;
  const NodeOutput made_;
};

// On an edge to the accumulator of a parameter that several nodes use. The sum of what they give waits there until the
// last of them has run: in memory that is there from the beginning, as that of gradients is.
class GradientPassages::TiedPassage : public Node {
 public:
  TiedPassage(const Tied& tied, uint64_t number)
      : Node(std::numeric_limits<uint64_t>::max() - 1 - number), sum_(tied.sum) {
    add_next_edge(Edge(tied.accumulator, 0));
    add_input_metadata(tied.parameter);
  }

  variable_list apply(variable_list&& gradients) override {
    at::Tensor memory = std::move(sum_->memory);
    if (!memory.defined() || !gradients[0].defined() || gradients[0].is_sparse() ||
        at::GradMode::is_enabled()) {
      return std::move(gradients);
    }
    // The engine adds to it what comes later, in place.
    return {memory.copy_(gradients[0])};
  }

  std::string name() const override { return "StowageTiedPassage"; }

 private:
  const std::shared_ptr<TiedSum> sum_;
};

GradientPassages::GradientPassages(const StepPlan& plan, const HeldTensors* tensors)
    : state_(std::make_shared<State>(
          State{tensors, plan.chain != nullptr, plan.model->ForEachOutput<char>()})) {
  for (const at::Tensor& parameter : plan.model->tied_parameters()) {
    if (!parameter.requires_grad()) continue;
    const NodePtr accumulator = torch::autograd::impl::grad_accumulator(parameter);
    tied_.emplace(
        accumulator.get(),
        Tied{parameter, accumulator,
             std::make_shared<TiedSum>(TiedSum{at::empty_like(parameter.variable_data())})});
  }
}

void GradientPassages::Insert(const std::vector<Node*>& nodes, uint64_t number,
                              const std::vector<End>& ends, const NewGradients* first) const {
  if (ends.empty() && tied_.empty() && first == nullptr) return;
  struct Found {
    Edge* edge = nullptr;
    int edges = 0;
  };
  absl::InlinedVector<Found, 2> found(ends.size());
  for (Node* const node : nodes) {
    uint64_t of_edge = 0;
    for (Edge& edge : node->next_edges()) {
      ++of_edge;  // in the order in which autograd adds up
      if (!edge.is_valid()) continue;
      const auto end = std::find_if(ends.begin(), ends.end(), [&](const End& to) {
        return to.boundary.get() == edge.function.get();
      });
      if (end != ends.end()) {
        Found& at = found[static_cast<size_t>(end - ends.begin())];
        at.edge = &edge;
        ++at.edges;
        continue;
      }
      const auto tied = tied_.find(edge.function.get());
      if (tied != tied_.end()) {
        edge = Edge(MakeNode<TiedPassage>(tied->second, of_edge), 0);
      } else if (NodePtr before =
                     first == nullptr ? nullptr : first->Before(edge.function.get(), of_edge)) {
        edge = Edge(std::move(before), 0);
      }
    }
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    // What comes by several edges is a sum, too, in memory of its own.
    if (found[i].edges != 1) continue;
    *found[i].edge = Edge(MakeNode<Passage>(state_, ends[i], number), 0);
  }
}

}  // namespace stowage
