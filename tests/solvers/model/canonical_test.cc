#include "solvers/model/canonical.h"

#include <gtest/gtest.h>

#include <functional>

namespace stowage {
namespace {

ChainSpec BaseChain() {
  ChainSpec spec;
  spec.name = "net";
  spec.input = Bytes(4);
  Stage s;
  s.name = "conv1";
  s.op_kind = "conv2d";
  s.output = Bytes(8);
  s.saved = Bytes(16);
  s.output_gradient = Bytes(8);
  spec.stages = {s, s};
  return spec;
}

Profile ChainProfile(const ChainSpec& spec) {
  return Profile{"net", Device(), *Chain::Create(spec)};
}

PlanKey KeyOf(const Profile& profile) { return MakePlanKey(profile, KeyOptions()); }

TEST(Canonical, StructureChangesTheKey) {
  const PlanKey base = KeyOf(ChainProfile(BaseChain()));
  const std::function<void(ChainSpec*)> changes[] = {
      [](ChainSpec* c) { c->input = Bytes(5); },
      [](ChainSpec* c) { c->input_gradient = Bytes(1); },
      [](ChainSpec* c) { c->stages[0].op_kind = "linear"; },
      [](ChainSpec* c) { c->stages[0].output = Bytes(9); },
      [](ChainSpec* c) { c->stages[1].saved = Bytes(17); },
      [](ChainSpec* c) { c->stages[1].output_gradient = Bytes(9); },
      [](ChainSpec* c) { c->stages[0].random = true; },
      [](ChainSpec* c) { c->stages[0].stateful = true; },
      [](ChainSpec* c) { c->stages[0].collective = true; },
      [](ChainSpec* c) { c->stages[0].must_keep = true; },
      [](ChainSpec* c) { c->stages[0].transient_parameters = Bytes(1); },
      [](ChainSpec* c) { c->loss.saved = Bytes(1); },
      [](ChainSpec* c) { c->stages.pop_back(); },
      [](ChainSpec* c) { c->stages[0].saved_tensors = {Bytes(0)}; },
  };
  for (const auto& change : changes) {
    ChainSpec spec = BaseChain();
    change(&spec);
    EXPECT_NE(KeyOf(ChainProfile(spec)), base);
  }
}

TEST(Canonical, SavedTensorsAreAListOfTheirStage) {
  const auto key = [](const std::vector<Bytes>& first, const std::vector<Bytes>& second) {
    ChainSpec spec = BaseChain();
    spec.stages[0].saved_tensors = first;
    spec.stages[1].saved_tensors = second;
    return KeyOf(ChainProfile(spec));
  };
  const std::vector<PlanKey> keys = {key({}, {}),
                                     key({Bytes(3)}, {}),
                                     key({}, {Bytes(3)}),
                                     key({Bytes(2)}, {}),
                                     key({Bytes(3), Bytes(2)}, {}),
                                     key({Bytes(2), Bytes(3)}, {}),
                                     key({Bytes(3)}, {Bytes(2)})};
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(keys[i], keys[k]) << i << " " << k;
  }
}

TEST(Canonical, CostsAndLabelsDoNot) {
  const PlanKey base = KeyOf(ChainProfile(BaseChain()));
  ChainSpec spec = BaseChain();
  spec.name = "other";
  spec.stages[0].name = "renamed";
  spec.stages[0].forward_time = Nanos(123);
  spec.stages[0].backward_time = Nanos(456);
  spec.stages[1].forward_saving_overhead = Bytes(1);
  spec.stages[1].forward_overhead = Bytes(2);
  spec.stages[1].backward_overhead = Bytes(3);
  Profile profile = ChainProfile(spec);
  profile.name = "third";
  profile.device.to_host_bytes_per_second = 12;
  profile.device.to_device_latency = Nanos(5);
  profile.device.memory = Bytes(7);
  profile.cost_source = CostSource::kMeasured;
  EXPECT_EQ(KeyOf(profile), base);
}

TEST(Canonical, EnvironmentAndOptionsChangeTheKey) {
  const Profile base = ChainProfile(BaseChain());
  const std::function<void(Device*)> changes[] = {
      [](Device* d) { d->model = "x"; },
      [](Device* d) { d->framework = "x"; },
      [](Device* d) { d->math_settings = "x"; },
      [](Device* d) { d->allocation_granularity = Bytes(512); },
      [](Device* d) { d->bandwidth_class = 3; },
      [](Device* d) { d->duplex = Duplex::kFull; },
      [](Device* d) { d->host_memory = Bytes(1); },
  };
  for (const auto& change : changes) {
    Profile profile = base;
    change(&profile.device);
    EXPECT_NE(KeyOf(profile), KeyOf(base));
  }
  EXPECT_NE(MakePlanKey(base, KeyOptions{"tenant"}), KeyOf(base));
  EXPECT_NE(MakePlanKey(base, KeyOptions{"", Objective::kLeastTime, "store_all"}), KeyOf(base));
  EXPECT_NE(MakePlanKey(base, KeyOptions{"", Objective::kLeastTime, "", 500}), KeyOf(base));
}

// Copying nothing, a job shares plans with those on devices that have no host memory.
TEST(Canonical, WhereOnlyRecomputingIsAllowedHostMemoryDoesNotCount) {
  const Profile without = ChainProfile(BaseChain());
  Profile with = without;
  with.device.host_memory = Bytes(1000);
  KeyOptions recompute_only;
  recompute_only.recompute_only = true;
  EXPECT_EQ(MakePlanKey(with, recompute_only), KeyOf(without));
  EXPECT_EQ(MakePlanKey(without, recompute_only), KeyOf(without));
  EXPECT_NE(MakePlanKey(with, recompute_only), KeyOf(with));
}

// Moving a byte from one string to its neighbour must not give equal bytes.
TEST(Canonical, StringsDoNotRunTogether) {
  Profile a = ChainProfile(BaseChain()), b = a;
  a.device.model = "ab";
  a.device.framework = "c";
  b.device.model = "a";
  b.device.framework = "bc";
  EXPECT_NE(CanonicalBytes(a, {}), CanonicalBytes(b, {}));
}

GraphSpec Diamond(int64_t a, int64_t b, int64_t c, int64_t d) {
  GraphSpec spec;
  const auto add = [&spec](int64_t id, int64_t order, const char* kind,
                           std::vector<GraphInput> inputs) {
    Vertex v;
    v.id = id;
    v.program_order = order;
    v.op_kind = kind;
    v.inputs = std::move(inputs);
    v.output = Bytes(order + 1);
    spec.vertices.push_back(v);
  };
  add(a, 0, "input", {});
  add(b, 1, "conv", {{a, true}});
  add(c, 2, "relu", {{a, false}});
  add(d, 3, "add", {{b, false}, {c, false}});
  return spec;
}

Profile GraphProfile(const GraphSpec& spec) { return Profile{"", Device(), *Graph::Create(spec)}; }

TEST(Canonical, NumberingOfVerticesLeavesNoTrace) {
  GraphSpec shuffled = Diamond(42, 7, 100, 1);
  std::swap(shuffled.vertices[0], shuffled.vertices[3]);
  std::swap(shuffled.vertices[1], shuffled.vertices[2]);
  for (Vertex& v : shuffled.vertices) v.program_order *= 10;
  EXPECT_EQ(CanonicalBytes(GraphProfile(shuffled), {}),
            CanonicalBytes(GraphProfile(Diamond(0, 1, 2, 3)), {}));
}

// Two graphs that colour refinement cannot tell apart: a six-ring of reads against two three-rings,
// here as a bipartite program of inputs and sums. Program order tells them apart.
TEST(Canonical, GraphsAlikeToColourRefinementKeepTheirOwnKeys) {
  const auto rings = [](const std::vector<std::pair<int64_t, int64_t>>& pairs) {
    GraphSpec spec;
    for (int64_t id = 0; id < 12; ++id) {
      Vertex v;
      v.id = v.program_order = id;
      if (id >= 6) {
        const auto& [x, y] = pairs[static_cast<size_t>(id - 6)];
        v.inputs = {{x, false}, {y, false}};
      }
      spec.vertices.push_back(v);
    }
    return GraphProfile(spec);
  };
  EXPECT_NE(KeyOf(rings({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}})),
            KeyOf(rings({{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}})));
}

// Golden: the encoding of a version never changes.
TEST(Canonical, EncodingIsStable) {
  EXPECT_EQ(kEncodingVersion, 1);
  EXPECT_EQ(CanonicalBytes(ChainProfile(BaseChain()), {}).size(), 296u);
  EXPECT_EQ(KeyOf(ChainProfile(BaseChain())).digest.ToHex(),
            "a4e0661e3066a67b7aa71962cc9e3e8193744424ee285d0f9301435ba6e820e3");
  EXPECT_EQ(KeyOf(GraphProfile(Diamond(0, 1, 2, 3))).digest.ToHex(),
            "189be0fd606f20ab7c08556e393d79fb8731707542cf17e77232e42f74e7444e");
}

}  // namespace
}  // namespace stowage
