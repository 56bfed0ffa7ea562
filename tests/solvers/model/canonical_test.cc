#include "solvers/model/canonical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

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

TEST(Canonical, TheClassOfALinkFollowsFromItWhereNoneIsStated) {
  Profile slow = ChainProfile(BaseChain());
  slow.device.host_memory = Bytes(1000);
  slow.device.to_host_bytes_per_second = slow.device.to_device_bytes_per_second = 12000000000;
  Profile fast = slow, jittered = slow, one_way = slow, none = slow;
  fast.device.to_host_bytes_per_second = fast.device.to_device_bytes_per_second = 24000000000;
  jittered.device.to_host_bytes_per_second = 10000000000;
  one_way.device.to_host_bytes_per_second = 0;
  none.device.to_host_bytes_per_second = none.device.to_device_bytes_per_second = 0;
  EXPECT_EQ(KeyOf(jittered), KeyOf(slow));
  EXPECT_EQ(KeyOf(one_way), KeyOf(none));
  EXPECT_NE(KeyOf(slow), KeyOf(none));
  EXPECT_NE(KeyOf(slow), KeyOf(fast));
  KeyOptions recompute_only;
  recompute_only.recompute_only = true;
  EXPECT_EQ(MakePlanKey(slow, recompute_only), MakePlanKey(fast, recompute_only));
  slow.device.bandwidth_class = fast.device.bandwidth_class = 5;
  EXPECT_EQ(KeyOf(slow), KeyOf(fast));
}

TEST(Canonical, OptionsCanBeReadBack) {
  const KeyOptions options{"team-a", Objective::kLeastTime, "optimal_persistent", 500};
  const std::string bytes = CanonicalBytes(ChainProfile(BaseChain()), options);
  const std::optional<KeyOptions> read = OptionsIn(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->tenant, options.tenant);
  EXPECT_EQ(read->solver, options.solver);
  EXPECT_EQ(read->slots, options.slots);
  EXPECT_FALSE(OptionsIn("").has_value());
  EXPECT_FALSE(OptionsIn("another encoding").has_value());
  for (size_t size = 0; size < 60; ++size) EXPECT_FALSE(OptionsIn(bytes.substr(0, size)));
  std::string other_version = bytes;
  other_version[12] = 2;
  EXPECT_FALSE(OptionsIn(other_version).has_value());
  std::string too_long = bytes;
  too_long[27] = 127;  // the tenant's size
  EXPECT_FALSE(OptionsIn(too_long).has_value());
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

// Any two positions swapped in the list, any ids, any gaps in the program order.
TEST(Canonical, NoRenumberingOfARandomGraphLeavesATrace) {
  std::mt19937_64 rng(6);
  const auto below = [&rng](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(rng);
  };
  for (int round = 0; round < 200; ++round) {
    GraphSpec spec;
    const int64_t size = 2 + below(30);
    for (int64_t id = 0; id < size; ++id) {
      Vertex v;
      v.id = v.program_order = id;
      v.op_kind = below(2) == 0 ? "conv" : "add";
      v.output = Bytes(below(3));
      for (int64_t reads = below(3); reads > 0 && id > 0; --reads) {
        v.inputs.push_back({below(id), below(2) == 0});
      }
      spec.vertices.push_back(v);
    }
    std::vector<int64_t> ids(static_cast<size_t>(size));
    for (int64_t id = 0; id < size; ++id) ids[static_cast<size_t>(id)] = 7 + 13 * id;
    std::shuffle(ids.begin(), ids.end(), rng);
    const auto renamed = [&ids](int64_t id) { return ids[static_cast<size_t>(id)]; };
    GraphSpec other = spec;
    int64_t gap = 0;
    for (Vertex& v : other.vertices) {
      v.id = renamed(v.id);
      v.program_order += (gap += below(5));
      for (GraphInput& input : v.inputs) input.vertex = renamed(input.vertex);
    }
    std::shuffle(other.vertices.begin(), other.vertices.end(), rng);
    EXPECT_EQ(CanonicalBytes(GraphProfile(other), {}), CanonicalBytes(GraphProfile(spec), {}));
  }
}

// Every input of both is read by three and every sum reads three, so refinement by degrees, colours or numbers of
// walks finds one class on each side: cubic bipartite graphs on 8 + 8 vertices, the circulant with
// steps 0, 1, 3 (connected) against two copies of K4,4 less a matching.
TEST(Canonical, RegularGraphsKeepTheirOwnKeys) {
  const auto cubic = [](const std::function<int64_t(int64_t, int64_t)>& read) {
    GraphSpec spec;
    for (int64_t id = 0; id < 16; ++id) {
      Vertex v;
      v.id = v.program_order = id;
      for (int64_t k = 0; id >= 8 && k < 3; ++k) v.inputs.push_back({read(id - 8, k), true});
      spec.vertices.push_back(v);
    }
    return KeyOf(GraphProfile(spec));
  };
  const int64_t steps[] = {0, 1, 3};
  EXPECT_NE(cubic([&steps](int64_t sum, int64_t k) { return (sum + steps[k]) % 8; }),
            cubic([](int64_t sum, int64_t k) { return sum / 4 * 4 + (sum % 4 + k + 1) % 4; }));
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
