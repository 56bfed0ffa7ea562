#include "solvers/zoo/network_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "solvers/graph/linearize.h"
#include "solvers/zoo/networks.h"
#include "solvers/zoo/roofline.h"

namespace stowage {
namespace {

Network Make(const std::string& name, int64_t image = 224, int64_t batch = 2) {
  NetworkOptions options;
  options.name = name;
  options.image = image;
  options.batch = batch;
  return MakeNetwork(options).value();
}

Graph MustGraph(const Network& network) {
  absl::StatusOr<Graph> graph = GraphOf(network, ModelledV100());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

const Vertex& FirstOf(const Graph& graph, const std::string& op_kind) {
  for (int p = 0; p < graph.size(); ++p) {
    if (graph.vertex(p).op_kind == op_kind) return graph.vertex(p);
  }
  ADD_FAILURE() << "no " << op_kind;
  return graph.vertex(0);
}

TEST(NetworkGraphTest, TimesOfAStageAreThoseOfItsOps) {
  for (const NetworkInfo& info : AllNetworks()) {
    SCOPED_TRACE(info.name);
    const Network network = Make(info.name);
    const Graph graph = MustGraph(network);
    const Chain chain = ChainOf(network, ModelledV100()).value();
    ASSERT_EQ(static_cast<size_t>(graph.size()), network.ops.size());
    EXPECT_EQ(graph.ideal_time(), chain.ideal_time());
    for (size_t l = 0; l < network.stages.size(); ++l) {
      Nanos forward, backward;
      for (size_t i = network.stages[l].first_op; i < network.stages[l].end_op; ++i) {
        forward += graph.vertex(static_cast<int>(i)).forward_time;
        backward += graph.vertex(static_cast<int>(i)).backward_time;
      }
      EXPECT_EQ(forward, chain.stage(static_cast<int>(l) + 1).forward_time);
      EXPECT_EQ(backward, chain.stage(static_cast<int>(l) + 1).backward_time);
    }
  }
}

// The most that one addition or concatenation of the stage hands back: autograd hands on the
// gradient of the output, a graph makes one for every input.
Bytes LargestHandedOn(const Network& network, const NetworkStage& stage) {
  Bytes largest;
  for (size_t i = stage.first_op; i < stage.end_op; ++i) {
    Bytes handed_on;
    if (network.ops[i].inputs.size() < 2) continue;
    for (const size_t input : network.ops[i].inputs) handed_on += network.ops[input].bytes;
    largest = std::max(largest, handed_on);
  }
  return largest;
}

// Equal but for the overhead of the backward. There the owner of a stage of the chain keeps the
// stage's output and its gradient to the end of the stage; a graph lets them go when they are read.
void ExpectSameStage(const Stage& stage, const Stage& segment, Bytes handed_on) {
  SCOPED_TRACE(stage.name);
  EXPECT_EQ(segment.output, stage.output);
  EXPECT_EQ(segment.output_gradient, stage.output_gradient);
  EXPECT_EQ(segment.saved, stage.saved);
  EXPECT_EQ(segment.forward_saving_overhead, stage.forward_saving_overhead);
  EXPECT_EQ(segment.forward_overhead, stage.forward_overhead);
  EXPECT_EQ(segment.forward_time, stage.forward_time);
  EXPECT_EQ(segment.backward_time, stage.backward_time);
  EXPECT_EQ(segment.random, stage.random);
  EXPECT_EQ(segment.stateful, stage.stateful);
  EXPECT_LE(stage.backward_overhead,
            segment.backward_overhead + stage.output + stage.output_gradient);
  EXPECT_LE(segment.backward_overhead, stage.backward_overhead + handed_on);
}

TEST(NetworkGraphTest, LinearisedItIsTheChain) {
  for (const NetworkInfo& info : AllNetworks()) {
    SCOPED_TRACE(info.name);
    const Network network = Make(info.name);
    const Chain chain = ChainOf(network, ModelledV100()).value();
    const LinearizedGraph linear = Linearize(MustGraph(network)).value();
    std::map<std::pair<size_t, size_t>, int> segments;  // by first and end op
    for (int s = 1; s <= linear.chain.length(); ++s) {
      const size_t l = static_cast<size_t>(s);
      segments[{static_cast<size_t>(linear.stage_begin[l - 1]),
                static_cast<size_t>(linear.stage_begin[l])}] = s;
    }
    size_t compared = 0;
    for (size_t l = 0; l < network.stages.size(); ++l) {
      const NetworkStage& stage = network.stages[l];
      // Some stages have cuts inside.
      const auto found = segments.find({stage.first_op, stage.end_op});
      if (found == segments.end()) continue;
      ++compared;
      ExpectSameStage(chain.stage(static_cast<int>(l) + 1), linear.chain.stage(found->second),
                      LargestHandedOn(network, stage));
    }
    EXPECT_GT(compared, network.stages.size() / (info.chain ? 2 : 5));
  }
}

// Storing everything: saved tensors go with the last backward that needs them, gradients as the
// header says.
class StoreAll {
 public:
  explicit StoreAll(const Graph& graph) : graph_(graph), size_(static_cast<size_t>(graph.size())) {
    last_need_.resize(size_, size_);
    has_gradient_.resize(size_, false);
    for (size_t p = size_; p-- > 0;) {
      const Vertex& v = Of(p);
      for (const GraphInput& input : v.inputs) {
        if (input.backward_needs) last_need_[Storage(static_cast<size_t>(input.vertex))] = p;
      }
      if (v.backward_needs_output) last_need_[Storage(p)] = p;
      held_ += v.extra_saved;
    }
    for (size_t p = 0; p < size_; ++p) {
      if (Storage(p) == p && last_need_[p] < size_) held_ += Of(p).output;
    }
  }

  Bytes BackwardPeak() {
    Bytes peak;
    AddGradient(size_ - 1);
    for (size_t p = size_; p-- > 0;) {
      for (const GraphInput& input : Of(p).inputs) AddGradient(static_cast<size_t>(input.vertex));
      peak = std::max(peak, held_ + Of(p).backward_overhead);
      held_ -= Of(p).extra_saved;
      if (has_gradient_[p]) held_ -= Of(p).output_gradient;
      for (size_t q = 0; q < size_; ++q) {
        if (last_need_[q] == p && Storage(q) == q) held_ -= Of(q).output;
      }
    }
    EXPECT_EQ(held_, Bytes(0));
    return peak;
  }

 private:
  const Vertex& Of(size_t p) const { return graph_.vertex(static_cast<int>(p)); }
  size_t Storage(size_t p) const {
    return static_cast<size_t>(graph_.storage(static_cast<int>(p)));
  }
  void AddGradient(size_t p) {
    const size_t owner = Storage(p);
    if (has_gradient_[owner]) return;
    has_gradient_[owner] = true;
    held_ += Of(owner).output_gradient;
  }

  const Graph& graph_;
  size_t size_;
  std::vector<size_t> last_need_;
  std::vector<bool> has_gradient_;
  Bytes held_;
};

// What the walk finds when the whole network is one stage is what autograd holds; there, the loss
// and its gradient have an owner who keeps them.
TEST(NetworkGraphTest, MemoryIsNeverBelowThatOfAutogradAndHardlyAbove) {
  for (const NetworkInfo& info : AllNetworks()) {
    if (info.name == "resnet1001") continue;  // resnet200 has the same blocks
    SCOPED_TRACE(info.name);
    Network network = Make(info.name);
    const Bytes graph_peak = StoreAll(MustGraph(network)).BackwardPeak();
    network.stages = {{"all", "all", 1, network.ops.size()}};
    const StageMemory memory = MemoryOfStage(network, 0);
    const Bytes kept = network.ops.back().bytes + network.ops.back().bytes;
    const Bytes autograd_peak =
        network.ops.front().bytes + memory.saved + memory.backward_overhead - kept;
    EXPECT_GE(graph_peak.value(), autograd_peak.value());
    EXPECT_LE(graph_peak.value(), autograd_peak.value() + autograd_peak.value() / 50);
    // Only the cells hand gradients on at the peak.
    if (network.name != "nasnet_a" && network.name != "darts_v2") {
      EXPECT_EQ(graph_peak.value(), autograd_peak.value());
    }
  }
}

TEST(NetworkGraphTest, FlagsSayWhatTheBackwardNeeds) {
  const Graph graph = MustGraph(Make("resnet50"));
  const Vertex& conv = FirstOf(graph, "Conv2d");
  EXPECT_EQ(conv.name, "conv1/Conv2d_0");
  EXPECT_TRUE(conv.inputs.front().backward_needs);
  EXPECT_FALSE(conv.backward_needs_output);
  const Vertex& norm = FirstOf(graph, "BatchNorm2d");
  EXPECT_TRUE(norm.stateful);
  EXPECT_EQ(norm.extra_saved, Bytes(2 * 64 * 4));
  const Vertex& relu = FirstOf(graph, "ReLU");
  EXPECT_EQ(relu.alias, AliasKind::kInPlace);
  EXPECT_TRUE(relu.backward_needs_output);
  EXPECT_FALSE(relu.inputs.front().backward_needs);
  const Vertex& add = FirstOf(graph, "Add");
  EXPECT_TRUE(add.linear_multi_input);
  EXPECT_EQ(add.alias, AliasKind::kInPlace);
  EXPECT_FALSE(add.inputs.front().backward_needs);
  EXPECT_EQ(FirstOf(graph, "Flatten").alias, AliasKind::kView);
  EXPECT_EQ(graph.vertex(0).output_gradient, Bytes(0));
}

TEST(NetworkGraphTest, DropoutIsRandomAndCellsHaveViews) {
  EXPECT_TRUE(FirstOf(MustGraph(Make("alexnet")), "Dropout").random);
  const Graph cells = MustGraph(Make("nasnet_a", 32));
  EXPECT_EQ(FirstOf(cells, "Identity").alias, AliasKind::kView);
  EXPECT_EQ(FirstOf(cells, "Slice").alias, AliasKind::kView);
  EXPECT_EQ(FirstOf(cells, "ReLU").alias, AliasKind::kNone);
}

TEST(NetworkGraphTest, TheGradientOfAnInPlaceOpIsBesideTheNewOne) {
  const Graph graph = MustGraph(Make("vgg11"));
  const Vertex& relu = FirstOf(graph, "ReLU");
  EXPECT_EQ(relu.backward_overhead, relu.output);
  // The gradients of weights and biases.
  EXPECT_EQ(FirstOf(graph, "Conv2d").backward_overhead, Bytes((3 * 64 * 9 + 64) * 4));
}

TEST(NetworkGraphTest, AProfileSaysThatItsTimesAreModelled) {
  const Profile profile = ModelledProfile(MustGraph(Make("resnet18")), ModelledV100());
  EXPECT_EQ(profile.cost_source, CostSource::kModelled);
  EXPECT_EQ(profile.name, "resnet18");
  EXPECT_TRUE(std::holds_alternative<Graph>(profile.problem));
}

TEST(NetworkGraphTest, BadDevicesAreRefused) {
  EXPECT_EQ(GraphOf(Make("resnet18"), DeviceModel()).status().code(),
            absl::StatusCode::kInvalidArgument);
  DeviceModel slow = ModelledV100();
  slow.peak_flops_per_second = 1e-9;
  EXPECT_THAT(std::string(GraphOf(Make("resnet18"), slow).status().message()),
              testing::HasSubstr("forward_time_ns"));
}

}  // namespace
}  // namespace stowage
