#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "tests/proto/samples.h"
#include "tests/proto/violations.h"

namespace stowage {
namespace {

using google::protobuf::Message;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

absl::Status ChangedChain(const std::function<void(v1::Profile*)>& change) {
  return Changed<v1::Profile>(SampleChainProfile(), change);
}

absl::Status ChangedGraph(const std::function<void(v1::Profile*)>& change) {
  return Changed<v1::Profile>(SampleGraphProfile(), change);
}

TEST(ProfileValidation, NothingOfAProfileIsNegative) {
  using Locate = std::function<Message*(v1::Profile*)>;
  const v1::Profile chain = SampleChainProfile();
  const v1::Profile graph = SampleGraphProfile();
  const Locate device = [](v1::Profile* p) { return p->mutable_device(); };
  const Locate of_chain = [](v1::Profile* p) { return p->mutable_chain(); };
  const Locate stage = [](v1::Profile* p) { return p->mutable_chain()->mutable_stages(2); };
  const Locate loss = [](v1::Profile* p) { return p->mutable_chain()->mutable_loss(); };
  const Locate vertex = [](v1::Profile* p) { return p->mutable_graph()->mutable_vertices(4); };
  EXPECT_EQ(ExpectNoNegative(chain, device, "profile.device."), 8);
  EXPECT_EQ(ExpectNoNegative(chain, of_chain, "profile.chain."), 2);
  EXPECT_EQ(ExpectNoNegative(chain, stage, "profile.chain.stages[2]."), 11);
  EXPECT_EQ(ExpectNoNegative(chain, loss, "profile.chain.loss."), 11);
  EXPECT_EQ(ExpectNoNegative(graph, vertex, "profile.graph.vertices[4]."), 13);
}

TEST(ProfileValidation, ARecomputeThatStopsTakesNoMoreThanOneThatGoesOn) {
  const auto stage = [](const std::function<void(v1::Stage*)>& change) {
    return ChangedChain([&](v1::Profile* p) { change(p->mutable_chain()->mutable_stages(0)); });
  };
  const std::string prefix = "profile.chain.stages[0].recompute_saving_";
  EXPECT_TRUE(stage([](v1::Stage* s) { s->set_recompute_saving_time_ns(1001); }).ok());
  ExpectViolation(stage([](v1::Stage* s) { s->set_recompute_saving_time_ns(1002); }),
                  prefix + "time_ns", "1002", "must be <= forward_time_ns (1001)");
  ExpectViolation(stage([](v1::Stage* s) { s->set_recompute_saving_overhead_bytes(0); }),
                  prefix + "overhead_bytes", "0",
                  "must be absent without recompute_saving_time_ns");
  const auto overhead = [&](int64_t bytes) {
    return stage([bytes](v1::Stage* s) {
      s->set_recompute_saving_time_ns(0);
      s->set_recompute_saving_overhead_bytes(bytes);
    });
  };
  EXPECT_TRUE(overhead(2009).ok());
  ExpectViolation(overhead(2010), prefix + "overhead_bytes", "2010",
                  "must be <= output_bytes + forward_saving_overhead_bytes (2009)");
  const auto loss = ChangedChain(
      [](v1::Profile* p) { p->mutable_chain()->mutable_loss()->set_recompute_saving_time_ns(0); });
  ExpectViolation(loss, "profile.chain.loss.recompute_saving_time_ns", "0",
                  "must be absent: the backward of a loss follows its first forward");
  const auto view = ChangedGraph([](v1::Profile* p) {
    p->mutable_graph()->mutable_vertices(4)->set_recompute_saving_time_ns(0);
  });
  ExpectViolation(view, "profile.graph.vertices[4].recompute_saving_time_ns", "0",
                  "must be absent from a view and from what is written in place");
}

TEST(ProfileValidation, Labels) {
  const std::string longest(256, 'x');
  const std::string longer(257, 'x');
  const std::string shown = std::string(32, 'x') + "...";
  const std::string rule = "must have at most 256 bytes, has 257";
  EXPECT_TRUE(ChangedChain([&](v1::Profile* p) { p->set_name(longest); }).ok());
  ExpectViolation(ChangedChain([&](v1::Profile* p) { p->set_name(longer); }), "profile.name", shown,
                  rule);
  for (const char* field : {"model", "framework"}) {
    const auto status = ChangedChain([&](v1::Profile* p) {
      v1::Device* device = p->mutable_device();
      device->GetReflection()->SetString(device, device->GetDescriptor()->FindFieldByName(field),
                                         longer);
    });
    ExpectViolation(status, absl::StrCat("profile.device.", field), shown, rule);
  }
  ExpectViolation(ChangedChain([&](v1::Profile* p) {
                    p->mutable_device()->set_math_settings(std::string(1025, 'x'));
                  }),
                  "profile.device.math_settings", shown, "must have at most 1024 bytes, has 1025");
  ExpectViolation(ChangedChain([&](v1::Profile* p) {
                    p->mutable_chain()->mutable_stages(1)->set_name(longer);
                  }),
                  "profile.chain.stages[1].name", shown, rule);
  ExpectViolation(ChangedChain([&](v1::Profile* p) {
                    p->mutable_chain()->mutable_stages(1)->set_op_kind(longer);
                  }),
                  "profile.chain.stages[1].op_kind", shown, rule);
  ExpectViolation(ChangedGraph([&](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(3)->set_name(longer);
                  }),
                  "profile.graph.vertices[3].name", shown, rule);
  ExpectViolation(ChangedGraph([&](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(3)->set_op_kind(longer);
                  }),
                  "profile.graph.vertices[3].op_kind", shown, rule);
}

TEST(ProfileValidation, EnumsOfAProfile) {
  ExpectViolation(
      ChangedChain([](v1::Profile* p) { p->set_cost_source(static_cast<v1::CostSource>(77)); }),
      "profile.cost_source", "77",
      "must be a value of stowage.v1.CostSource that this version knows");
  ExpectViolation(ChangedChain([](v1::Profile* p) {
                    p->mutable_device()->set_duplex(static_cast<v1::Duplex>(9));
                  }),
                  "profile.device.duplex", "9",
                  "must be a value of stowage.v1.Duplex that this version knows");
  ExpectViolation(
      ChangedGraph([](v1::Profile* p) {
        p->mutable_graph()->mutable_vertices(2)->set_alias(static_cast<v1::AliasKind>(-3));
      }),
      "profile.graph.vertices[2].alias", "-3",
      "must be a value of stowage.v1.AliasKind that this version knows");
}

TEST(ProfileValidation, Device) {
  ExpectViolation(
      ChangedChain([](v1::Profile* p) { p->mutable_device()->set_bandwidth_class(64); }),
      "profile.device.bandwidth_class", "64", "must be in [0, 63]");
}

TEST(ProfileValidation, Problem) {
  ExpectViolation(ChangedChain([](v1::Profile* p) { p->clear_problem(); }), "profile.problem",
                  "unset", "exactly one of chain, graph and dag must be set");
}

TEST(ProfileValidation, Chain) {
  ExpectViolation(ChangedChain([](v1::Profile* p) { p->mutable_chain()->clear_stages(); }),
                  "profile.chain.stages", "[]", "must have at least one stage");
  ExpectViolation(ChangedChain([](v1::Profile* p) {
                    while (p->chain().stages_size() <= 100000) p->mutable_chain()->add_stages();
                  }),
                  "profile.chain.stages", "100001", "must have at most 100000 stages");
  ExpectViolation(ChangedChain([](v1::Profile* p) {
                    p->mutable_chain()->mutable_stages(0)->set_saved_bytes(1002);
                  }),
                  "profile.chain.stages[0].saved_bytes", "1002", "must be >= output_bytes (1003)");
}

TEST(ProfileValidation, Dag) {
  const auto changed = [](const std::function<void(v1::ComputeDag*)>& change) {
    return Changed<v1::Profile>(SampleDagProfile(),
                                [&](v1::Profile* profile) { change(profile->mutable_dag()); });
  };
  const auto expect = [&](const std::function<void(v1::ComputeDag*)>& change,
                          const std::string& field, const std::string& value,
                          const std::string& rule) {
    ExpectViolation(changed(change), "profile.dag.nodes" + field, value, rule);
  };
  expect([](v1::ComputeDag* dag) { dag->clear_nodes(); }, "", "[]", "must have at least one node");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(2)->set_time_ns(-1); }, "[2].time_ns", "-1",
         "must be >= 0");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(0)->set_workspace_bytes(-7); },
         "[0].workspace_bytes", "-7", "must be >= 0");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(4)->set_inputs(1, 77); }, "[4].inputs[1]",
         "77", "must be the id of a vertex of the graph");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(2)->set_inputs(0, 30); }, "[2].inputs[0]",
         "30", "must come earlier in program_order than its reader (a cycle, or a wrong order)");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(3)->set_id(10); }, "[3].id", "10",
         "must be unique in the graph");
  expect([](v1::ComputeDag* dag) { dag->mutable_nodes(1)->set_alias(v1::ALIAS_KIND_VIEW); },
         "[1].alias", "set", "needs an input that the vertex is an alias of");
  expect(
      [](v1::ComputeDag* dag) { dag->mutable_nodes(0)->set_alias(static_cast<v1::AliasKind>(8)); },
      "[0].alias", "8", "must be a value of stowage.v1.AliasKind that this version knows");
}

TEST(ProfileValidation, SavedTensors) {
  const auto with_tensor = [](int64_t bytes) {
    return ChangedChain([bytes](v1::Profile* p) {
      p->mutable_chain()->mutable_stages(1)->add_saved_tensor_bytes(bytes);
    });
  };
  const std::string field = "profile.chain.stages[1].saved_tensor_bytes[0]";
  // Saved are 4004, of which the output is 2003.
  EXPECT_TRUE(with_tensor(2001).ok());
  ExpectViolation(with_tensor(2002), field, "2002",
                  "makes their sum exceed saved_bytes - output_bytes (2001)");
  ExpectViolation(with_tensor(kMax), field, absl::StrCat(kMax),
                  "makes their sum exceed saved_bytes - output_bytes (2001)");
  ExpectViolation(with_tensor(-1), field, "-1", "must be >= 0");
  ExpectViolation(
      ChangedChain([](v1::Profile* p) {
        p->mutable_chain()->mutable_loss()->mutable_saved_tensor_bytes()->Resize(65535, 0);
      }),
      "profile.chain.loss.saved_tensor_bytes", "65535", "must have at most 65534 saved tensors");
}

TEST(ProfileValidation, TotalsOfAChainStayBelowTheLimit) {
  const std::string sizes = "makes the sum of all sizes reach or exceed 4611686018427387904";
  ExpectViolation(ChangedChain([](v1::Profile* p) { p->mutable_chain()->set_input_bytes(kMax); }),
                  "profile.chain.input_bytes", absl::StrCat(kMax), sizes);
  // Either alone is below the limit.
  const int64_t half = int64_t{1} << 61;
  ExpectViolation(ChangedChain([](v1::Profile* p) {
                    p->mutable_chain()->set_input_bytes(half);
                    p->mutable_chain()->mutable_stages(1)->set_backward_overhead_bytes(half);
                  }),
                  "profile.chain.stages[1].backward_overhead_bytes", absl::StrCat(half), sizes);
  ExpectViolation(
      ChangedChain([](v1::Profile* p) {
        p->mutable_chain()->mutable_loss()->set_backward_time_ns(kMax / 5);
      }),
      "profile.chain.loss.backward_time_ns", absl::StrCat(kMax / 5),
      "makes the sum of all times times (stages + 2) reach or exceed 461168601842738790");
}

TEST(ProfileValidation, Graph) {
  ExpectViolation(ChangedGraph([](v1::Profile* p) { p->mutable_graph()->clear_vertices(); }),
                  "profile.graph.vertices", "[]", "must have at least one vertex");
  ExpectViolation(
      ChangedGraph([](v1::Profile* p) { p->mutable_graph()->mutable_vertices(1)->set_id(10); }),
      "profile.graph.vertices[1].id", "10", "must be unique in the graph");
  ExpectViolation(ChangedGraph([](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(1)->set_program_order(2);
                  }),
                  "profile.graph.vertices[1].program_order", "2", "must be unique in the graph");
  ExpectViolation(ChangedGraph([](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(0)->set_alias(v1::ALIAS_KIND_VIEW);
                  }),
                  "profile.graph.vertices[0].alias", "set",
                  "needs an input that the vertex is an alias of");
}

TEST(ProfileValidation, EdgesOfAGraph) {
  const auto second_input_of_20 = [](int64_t id) {
    return ChangedGraph([id](v1::Profile* p) {
      p->mutable_graph()->mutable_vertices(3)->mutable_inputs(1)->set_vertex_id(id);
    });
  };
  const std::string field = "profile.graph.vertices[3].inputs[1].vertex_id";
  ExpectViolation(second_input_of_20(-1), field, "-1", "must be the id of a vertex of the graph");
  ExpectViolation(second_input_of_20(99), field, "99", "must be the id of a vertex of the graph");
  ExpectViolation(second_input_of_20(20), field, "20", "must not be the vertex itself");
  // 50 reads 20: a cycle.
  ExpectViolation(second_input_of_20(50), field, "50",
                  "must come earlier in program_order than its reader (a cycle, or a wrong order)");
}

TEST(ProfileValidation, IndicesAreThoseOfTheListAsSent) {
  const auto status = ChangedGraph([](v1::Profile* p) {
    auto* vertices = p->mutable_graph()->mutable_vertices();
    vertices->SwapElements(0, 4);
    vertices->Mutable(0)->mutable_inputs(0)->set_vertex_id(77);
  });
  ExpectViolation(status, "profile.graph.vertices[0].inputs[0].vertex_id", "77",
                  "must be the id of a vertex of the graph");
}

TEST(ProfileValidation, TotalsOfAGraphStayBelowTheLimit) {
  ExpectViolation(ChangedGraph([](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(2)->set_extra_saved_bytes(kMax);
                  }),
                  "profile.graph.vertices[2].extra_saved_bytes", absl::StrCat(kMax),
                  "makes the sum of all sizes reach or exceed 4611686018427387904");
  ExpectViolation(ChangedGraph([](v1::Profile* p) {
                    p->mutable_graph()->mutable_vertices(2)->set_forward_time_ns(kMax);
                  }),
                  "profile.graph.vertices[2].forward_time_ns", absl::StrCat(kMax),
                  "makes the sum of all times times (vertices + 2) reach or exceed "
                  "329406144173384850");
}

TEST(ProfileValidation, TooManyVertices) {
  v1::Profile profile;
  v1::Graph* graph = profile.mutable_graph();
  while (graph->vertices_size() <= 1000000) graph->add_vertices();
  ExpectViolation(FromProto(profile).status(), "profile.graph.vertices", "1000001",
                  "must have at most 1000000 vertices");
}

}  // namespace
}  // namespace stowage
