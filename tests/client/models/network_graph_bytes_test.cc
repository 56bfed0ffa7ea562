// Holds the graphs that solvers/zoo derives from shapes to those that the profiler measures.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/profile/graph_profiler.h"
#include "solvers/model/canonical.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/client/models/hollow_model.h"
#include "tests/client/models/means_of_today.h"

namespace stowage {
namespace {

Network Images(const std::string& name, int64_t side) {
  NetworkOptions options;
  options.name = name;
  options.image = side;
  options.batch = 2;
  options.classes = 10;
  return MakeNetwork(options).value();
}

Network SmallDecoder() {
  DecoderOptions options;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.length = 16;
  options.vocabulary = 50;
  options.batch = 3;
  return MakeDecoder(options).value();
}

void ExpectSame(const Vertex& measured, const Vertex& described) {
  SCOPED_TRACE(described.name);
  EXPECT_EQ(measured.name, described.name);
  EXPECT_EQ(measured.op_kind, described.op_kind);
  EXPECT_EQ(measured.alias, described.alias);
  EXPECT_EQ(measured.output.value(), described.output.value());
  EXPECT_EQ(measured.extra_saved.value(), described.extra_saved.value());
  EXPECT_EQ(measured.backward_needs_output, described.backward_needs_output);
  EXPECT_EQ(measured.random, described.random);
  EXPECT_EQ(measured.stateful, described.stateful);
  EXPECT_EQ(measured.must_keep, described.must_keep);
  ASSERT_EQ(measured.inputs.size(), described.inputs.size());
  for (size_t i = 0; i < measured.inputs.size(); ++i) {
    EXPECT_EQ(measured.inputs[i].vertex, described.inputs[i].vertex);
    // LibTorch 1.13 keeps the input of a mean for its number of elements; the bytes are not needed.
    if (described.op_kind == NameOf(OpKind::kGlobalAvgPool)) continue;
    EXPECT_EQ(measured.inputs[i].backward_needs, described.inputs[i].backward_needs) << i;
  }
}

std::vector<Network> Networks() {
  return {Images("alexnet", 64),   Images("vgg11", 32),       Images("resnet18", 40),
          Images("resnet200", 33), Images("densenet121", 40), Images("inception_v3", 80),
          Images("nasnet_a", 16),  Images("amoebanet_a", 16), Images("darts_v2", 16),
          SmallDecoder()};
}

Profile MustProfile(const Network& network) {
  NetworkModelOptions hollow;
  hollow.run_op = RunHollow;
  const GraphModel model = GraphModelOf(network, hollow);
  ProfileOptions options;
  options.bytes_only = true;
  options.warmup = 0;
  auto profile = ProfileGraph(model, {InputOf(network)}, TargetOf(network), options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return std::move(profile).value();
}

TEST(NetworkGraphTest, EveryTensorFollowsFromShapes) {
  for (const Network& network : Networks()) {
    SCOPED_TRACE(network.name);
    const Profile profile = MustProfile(network);
    const Graph& measured = std::get<Graph>(profile.problem);
    const Graph described = GraphOf(network, ModelledV100()).value();
    ASSERT_EQ(measured.size(), described.size());
    for (int v = 0; v < measured.size(); ++v) ExpectSame(measured.vertex(v), described.vertex(v));
  }
}

TEST(NetworkGraphTest, ProfiledGraphsHaveTheKeysOfJobs) {
  for (const Network& network : Networks()) {
    SCOPED_TRACE(network.name);
    Profile job = MustProfile(network);
    job.problem = WithMeansOfToday(std::get<Graph>(job.problem), network);
    const Graph& measured = std::get<Graph>(job.problem);
    const Graph described = ProfiledGraphOf(network, ModelledV100()).value();
    ASSERT_EQ(measured.size(), described.size());
    for (int v = 0; v < measured.size(); ++v) {
      EXPECT_EQ(measured.vertex(v).output_gradient.value(),
                described.vertex(v).output_gradient.value())
          << described.vertex(v).name;
    }
    const Profile profile{"", job.device, described, CostSource::kModelled};
    EXPECT_TRUE(CanonicalBytes(profile, {}) == CanonicalBytes(job, {}));
  }
}

}  // namespace
}  // namespace stowage
