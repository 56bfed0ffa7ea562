#include "solvers/model/graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

Vertex MakeVertex(int64_t id, int64_t order, std::vector<int64_t> reads) {
  Vertex v;
  v.id = id;
  v.program_order = order;
  for (const int64_t read : reads) v.inputs.push_back({read, true});
  v.output = Bytes(10 * id);
  return v;
}

// 7 -> 3 -> 5, sent out of order.
GraphSpec Path() {
  GraphSpec spec;
  spec.vertices = {MakeVertex(5, 30, {3}), MakeVertex(7, 10, {}), MakeVertex(3, 20, {7})};
  return spec;
}

TEST(Graph, HoldsVerticesInProgramOrder) {
  const Graph graph = *Graph::Create(Path());
  ASSERT_EQ(graph.size(), 3);
  EXPECT_EQ(graph.vertex(0).id, 7);
  EXPECT_EQ(graph.vertex(2).id, 5);
  EXPECT_EQ(graph.vertex(2).inputs[0].vertex, 1);
  EXPECT_EQ(graph.bytes(1), Bytes(30));
}

TEST(Graph, AliasesLiveInWhatTheyAlias) {
  GraphSpec spec = Path();
  spec.vertices[0].alias = AliasKind::kView;
  spec.vertices[2].alias = AliasKind::kInPlace;
  const Graph graph = *Graph::Create(spec);
  EXPECT_EQ(graph.storage(2), 0);
  EXPECT_EQ(graph.bytes(2), Bytes(0));
  EXPECT_EQ(graph.bytes(0), Bytes(70));
}

struct BadGraph {
  std::function<void(GraphSpec*)> breaks;
  const char* field;
};

TEST(Graph, NamesFieldValueAndRule) {
  const BadGraph cases[] = {
      {[](GraphSpec* g) { g->vertices.clear(); }, "graph.vertices"},
      {[](GraphSpec* g) { g->vertices[1].id = 5; }, "graph.vertices[0].id"},
      {[](GraphSpec* g) { g->vertices[1].id = -1; }, "graph.vertices[1].id"},
      {[](GraphSpec* g) { g->vertices[1].program_order = 30; }, "graph.vertices[1].program_order"},
      {[](GraphSpec* g) { g->vertices[2].program_order = -1; }, "graph.vertices[2].program_order"},
      {[](GraphSpec* g) { g->vertices[0].inputs[0].vertex = 99; },
       "graph.vertices[0].inputs[0].vertex_id"},
      {[](GraphSpec* g) { g->vertices[0].inputs[0].vertex = 5; },
       "graph.vertices[0].inputs[0].vertex_id"},
      // A cycle: 7 reads 5, which depends on 7.
      {[](GraphSpec* g) {
         g->vertices[1].inputs = {{5, false}};
       },
       "graph.vertices[1].inputs[0].vertex_id"},
      {[](GraphSpec* g) { g->vertices[1].alias = AliasKind::kView; }, "graph.vertices[1].alias"},
      {[](GraphSpec* g) { g->vertices[2].output = Bytes(-1); }, "graph.vertices[2].output_bytes"},
      {[](GraphSpec* g) { g->vertices[2].backward_time = Nanos(-1); },
       "graph.vertices[2].backward_time_ns"},
      {[](GraphSpec* g) { g->vertices[2].extra_saved = Bytes(kMaxTotal); },
       "graph.vertices[2].extra_saved_bytes"},
      {[](GraphSpec* g) { g->vertices[2].op_kind = std::string(257, 'x'); },
       "graph.vertices[2].op_kind"},
  };
  for (const BadGraph& c : cases) {
    GraphSpec spec = Path();
    c.breaks(&spec);
    const auto violation = GetFieldViolation(Graph::Create(spec).status());
    ASSERT_TRUE(violation.has_value()) << c.field;
    EXPECT_EQ(violation->field, c.field);
  }
}

TEST(Graph, RefusesTooManyVertices) {
  GraphSpec spec;
  spec.vertices.resize(Graph::kMaxVertices + 1);
  EXPECT_EQ(GetFieldViolation(Graph::Create(std::move(spec)).status())->value, "1000001");
}

}  // namespace
}  // namespace stowage
