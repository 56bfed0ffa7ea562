#include "solvers/networks/profiled_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "solvers/networks/network_graph.h"

namespace stowage {
namespace {

// The backwards of all ops in reverse program order: which gradients are slices meanwhile.
class SliceWalk {
 public:
  explicit SliceWalk(const Network& network) : ops_(network.ops) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const bool hands_on = ops_[i].kind == OpKind::kIdentity;
      giver_.push_back(hands_on ? giver_[ops_[i].inputs.front()] : i);
      owner_.push_back(ops_[i].shares_input() ? owner_[ops_[i].inputs.front()] : i);
    }
    held_.resize(ops_.size(), Gradient::kNone);
    is_sliced_.resize(ops_.size(), false);
    for (size_t i = ops_.size(); i-- > 1;) {
      if (giver_[i] == i) Backward(i);
    }
  }

  // Whether the gradient of an op's output is ever one.
  const std::vector<bool>& is_sliced() const { return is_sliced_; }

 private:
  enum class Gradient { kNone, kWhole, kSlice };

  Gradient GivenBy(size_t i) const {
    const NetworkOp& op = ops_[i];
    // Slices of one image lie side by side.
    const bool cuts = op.kind == OpKind::kCat && op.shape.front() > 1 && op.inputs.size() > 1;
    const bool hands_on = op.kind == OpKind::kAdd && held_[i] == Gradient::kSlice;
    return cuts || hands_on ? Gradient::kSlice : Gradient::kWhole;
  }

  void Backward(size_t i) {
    const std::vector<size_t>& inputs = ops_[i].inputs;
    const Gradient given = GivenBy(i);
    for (const size_t input : inputs) {
      const size_t giver = giver_[input];
      const bool is_sum =
          held_[giver] != Gradient::kNone || std::count(inputs.begin(), inputs.end(), input) > 1;
      held_[giver] = is_sum ? Gradient::kWhole : given;
      if (held_[giver] != Gradient::kSlice) continue;
      for (const size_t of : {input, giver, owner_[input]}) is_sliced_[of] = true;
    }
  }

  const std::vector<NetworkOp>& ops_;
  std::vector<size_t> giver_;   // whose gradient it is: an identity hands on its input's
  std::vector<size_t> owner_;   // in whose memory it lives, whose profile counts its gradient, too
  std::vector<Gradient> held_;  // by giver
  std::vector<bool> is_sliced_;
};

}  // namespace

absl::StatusOr<Graph> ProfiledGraphOf(const Network& network, const DeviceModel& device) {
  const absl::StatusOr<Graph> described = GraphOf(network, device);
  if (!described.ok()) return described;
  const SliceWalk walk(network);
  GraphSpec spec;
  spec.name = described->name();
  for (int v = 0; v < described->size(); ++v) {
    Vertex vertex = described->vertex(v);
    vertex.linear_multi_input = false;
    const NetworkOp& op = network.ops[static_cast<size_t>(v)];
    if (v > 0 && walk.is_sliced()[static_cast<size_t>(v)]) {
      vertex.output_gradient = Bytes(op.bytes.value() / op.shape[1] * (op.shape[1] + 1));
    }
    spec.vertices.push_back(std::move(vertex));
  }
  return Graph::Create(std::move(spec));
}

}  // namespace stowage
