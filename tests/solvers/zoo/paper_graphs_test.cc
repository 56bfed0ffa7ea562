#include "tests/solvers/paper_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "solvers/zoo/network_graph.h"
#include "tests/solvers/graph_file.h"

namespace stowage {
namespace {

const PaperGraph& Find(const std::string& name) {
  for (const PaperGraph& graph : PaperGraphs()) {
    if (graph.name == name) return graph;
  }
  ADD_FAILURE() << "no paper graph " << name;
  return PaperGraphs().front();
}

Graph Make(const PaperGraph& paper_graph) {
  absl::StatusOr<Graph> graph = MakePaperGraph(paper_graph, ModelledV100());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph Golden(const std::string& file) {
  absl::StatusOr<Graph> graph =
      testing::ReadGraphFile(std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + file);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

int64_t EdgesOf(const Graph& graph) {
  int64_t edges = 0;
  for (int p = 0; p < graph.size(); ++p) {
    edges += static_cast<int64_t>(graph.vertex(p).inputs.size());
  }
  return edges;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t mixed = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 29)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 32);
}

uint64_t MixAll(uint64_t start, std::vector<uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  for (const uint64_t colour : colours) start = Mix(start, colour);
  return start;
}

// One number per vertex, sorted: it says all of what leads to the vertex and of what it leads to,
// in bytes and edges. Graphs with the same numbers are the same for everything that only asks for
// sizes and paths.
std::vector<uint64_t> ColoursOf(const Graph& graph) {
  const auto n = static_cast<size_t>(graph.size());
  std::vector<std::vector<size_t>> inputs(n), readers(n);
  for (size_t p = 0; p < n; ++p) {
    for (const GraphInput& input : graph.vertex(static_cast<int>(p)).inputs) {
      inputs[p].push_back(static_cast<size_t>(input.vertex));
      readers[static_cast<size_t>(input.vertex)].push_back(p);
    }
  }
  std::vector<uint64_t> before(n), after(n), colours(n);
  const auto colour = [](const std::vector<size_t>& from, const std::vector<uint64_t>& known,
                         uint64_t own) {
    std::vector<uint64_t> neighbours;
    for (const size_t q : from) neighbours.push_back(known[q]);
    return MixAll(own, std::move(neighbours));
  };
  for (size_t p = 0; p < n; ++p) {
    const auto bytes = static_cast<uint64_t>(graph.bytes(static_cast<int>(p)).value());
    before[p] = colour(inputs[p], before, bytes);
  }
  for (size_t p = n; p-- > 0;) after[p] = colour(readers[p], after, before[p]);
  for (size_t p = 0; p < n; ++p) colours[p] = colour(inputs[p], after, after[p]);
  std::sort(colours.begin(), colours.end());
  return colours;
}

void ExpectSame(const Graph& made, const Graph& golden) {
  SCOPED_TRACE(golden.name());
  EXPECT_EQ(made.size(), golden.size());
  EXPECT_EQ(EdgesOf(made), EdgesOf(golden));
  EXPECT_EQ(ColoursOf(made), ColoursOf(golden));
}

TEST(PaperGraphsTest, AreThoseOfThePapersCode) {
  ExpectSame(Make(Find("alexnet")), Golden("alexnet.graph"));
  ExpectSame(Make(Find("vgg19")), Golden("vgg19.graph"));
  ExpectSame(Make(Find("resnet50_jit")), Golden("resnet50.graph"));
  ExpectSame(Make(Find("densenet121")), Golden("densenet121.graph"));
  ExpectSame(Make(Find("nasnet_a")), Golden("nasnet_cifar.graph"));
}

// A trace keeps the flattened tensor.
TEST(PaperGraphsTest, InceptionIsTheTracedOne) {
  PaperGraph traced = Find("inception_v3");
  traced.rules.flatten_is_vertex = true;
  ExpectSame(Make(traced), Golden("inception_v3.graph"));
}

TEST(PaperGraphsTest, OtherBytesOrEdgesAreSeen) {
  PaperGraph other = Find("nasnet_a");
  other.network.batch = 63;
  EXPECT_NE(ColoursOf(Make(other)), ColoursOf(Golden("nasnet_cifar.graph")));
  GraphSpec spec;
  for (int64_t id = 0; id < 4; ++id) {
    Vertex v;
    v.id = v.program_order = id;
    v.output = Bytes(1);
    if (id > 0) v.inputs.push_back({id == 3 ? 1 : 0, false});
    spec.vertices.push_back(v);
  }
  const Graph tree = Graph::Create(spec).value();
  spec.vertices[2].inputs.front().vertex = 1;
  EXPECT_NE(ColoursOf(tree), ColoursOf(Graph::Create(spec).value()));
}

// Feng and Huang 2018, supplementary material, Table 1. The ResNets have one vertex less there;
// which, the paper does not say.
TEST(PaperGraphsTest, HaveThePublishedNumberOfVertices) {
  const std::map<std::string, int> published = {
      {"alexnet_folded_pool", 12},
      {"vgg11", 17},
      {"vgg13", 19},
      {"vgg16", 22},
      {"vgg19", 25},
      {"resnet18", 51 + 1},
      {"resnet34", 91 + 1},
      {"resnet50", 125 + 1},
      {"resnet101", 244 + 1},
      {"resnet152", 363 + 1},
      {"densenet121", 306},
      {"densenet161", 406},
      {"densenet169", 426},
      {"densenet201", 506},
      {"inception_v3", 219},
      {"nasnet_a", 1149},
      {"amoebanet_a", 1015},
      {"darts_v2", 1073},
  };
  for (const auto& [name, vertices] : published) {
    EXPECT_EQ(Make(Find(name)).size(), vertices) << name;
  }
}

TEST(PaperGraphsTest, HaveOneInputOneOutputAndNoAliases) {
  for (const PaperGraph& paper_graph : PaperGraphs()) {
    SCOPED_TRACE(paper_graph.name);
    const Graph graph = Make(paper_graph);
    EXPECT_EQ(graph.name(), paper_graph.name);
    std::vector<bool> read(static_cast<size_t>(graph.size()), false);
    for (int p = 0; p < graph.size(); ++p) {
      const Vertex& v = graph.vertex(p);
      EXPECT_EQ(v.inputs.empty(), p == 0) << v.name;
      EXPECT_EQ(v.alias, AliasKind::kNone) << v.name;
      EXPECT_GT(v.output, Bytes(0)) << v.name;
      for (const GraphInput& input : v.inputs) read[static_cast<size_t>(input.vertex)] = true;
      if (v.inputs.size() > 1) {
        EXPECT_TRUE(v.linear_multi_input) << v.name;
      }
    }
    EXPECT_EQ(std::count(read.begin(), read.end(), false), 1);
    EXPECT_FALSE(read.back());
  }
}

TEST(PaperGraphsTest, FoldingKeepsTimesAndFlagsAndSaysWhatIsFolded) {
  const PaperGraph& alexnet = Find("alexnet");
  const Network network = MakeNetwork(alexnet.network).value();
  const Graph ops = GraphOf(network, ModelledV100()).value();
  const Graph folded = Make(alexnet);
  Nanos loss;
  for (size_t i = network.stages.back().first_op; i < network.ops.size(); ++i) {
    const Vertex& v = ops.vertex(static_cast<int>(i));
    loss += v.forward_time + v.backward_time;
  }
  EXPECT_EQ(folded.ideal_time() + loss, ops.ideal_time());
  EXPECT_EQ(folded.vertex(1).op_kind, "Conv2d+ReLU");
  EXPECT_EQ(folded.vertex(9).op_kind, "AdaptiveAvgPool2d+Flatten+Dropout");
  EXPECT_TRUE(folded.vertex(9).random);
  EXPECT_FALSE(folded.vertex(1).random);
}

// A block of k layers concatenates k + 1 times, each time all that it has.
TEST(PaperGraphsTest, FullConcatenationsHaveMoreEdges) {
  const Graph layers = Make(Find("densenet121"));
  const Graph full = Make(Find("densenet121_full_cat"));
  EXPECT_EQ(full.size(), layers.size() + 4);
  int64_t edges = EdgesOf(layers);
  for (const int64_t k : {6, 12, 24, 16}) edges += (k + 1) * (k + 2) / 2 - 2 * k;
  EXPECT_EQ(EdgesOf(full), edges);
}

TEST(PaperGraphsTest, BadOptionsAreRefused) {
  PaperGraph graph = Find("vgg11");
  graph.network.image = 8;
  EXPECT_EQ(MakePaperGraph(graph, ModelledV100()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakePaperGraph(Find("vgg11"), DeviceModel()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage
