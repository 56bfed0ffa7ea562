#include "solvers/graph/budget/op_graph.h"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

OpGraph::Costs CostsOf(const Vertex& v) {
  OpGraph::Costs costs;
  costs.output = v.output.value();
  costs.extra = v.extra_saved.value();
  costs.gradient = v.output_gradient.value();
  costs.forward_time = v.forward_time.value();
  costs.saving_overhead = v.forward_saving_overhead.value();
  // A forward whose extras nobody uses runs in the way that takes less.
  costs.unsaved_overhead =
      std::min(v.forward_overhead, v.extra_saved + v.forward_saving_overhead).value();
  costs.staying_overhead = v.forward_overhead.value();
  costs.backward_overhead = v.backward_overhead.value();
  costs.backward_needs_output = v.backward_needs_output;
  costs.recomputable = !v.inputs.empty() && !v.collective && !v.must_keep;
  costs.ordered = v.random || v.stateful || v.collective;
  return costs;
}

// Orders have fewer than 2^24 computes.
constexpr int64_t kMostUnits = int64_t{1} << 38;

}  // namespace

OpGraph::OpGraph(const Graph& folded, GradientSums sums) : sums_(std::move(sums)) {
  const size_t size = static_cast<size_t>(folded.size());
  costs_.reserve(size);
  first_reader_.assign(size + 1, 0);
  for (int v = 0; v < folded.size(); ++v) {
    costs_.push_back(CostsOf(folded.vertex(v)));
    first_input_.push_back(inputs_.size());
    for (const GraphInput& input : folded.vertex(v).inputs) {
      inputs_.push_back({static_cast<int>(input.vertex), input.backward_needs});
      ++first_reader_[static_cast<size_t>(input.vertex) + 1];
    }
  }
  first_input_.push_back(inputs_.size());
  for (size_t v = 0; v < size; ++v) first_reader_[v + 1] += first_reader_[v];
  readers_.resize(inputs_.size());
  std::vector<size_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for (int v = 0; v < this->size(); ++v) {
    for (const Input& input : inputs(v)) readers_[next[static_cast<size_t>(input.vertex)]++] = v;
  }
  for (int v = 0; v < this->size(); ++v) {
    if (readers(v).empty()) seed_gradients_ += costs(v).gradient;
  }
  ideal_time_ = folded.ideal_time().value();
  int64_t total = 0;
  for (const Costs& c : costs_) {
    total += c.output + c.extra + c.gradient +
             std::max({c.saving_overhead, c.unsaved_overhead, c.backward_overhead});
  }
  while (total >> unit_bits_ > kMostUnits) ++unit_bits_;
}

}  // namespace stowage
