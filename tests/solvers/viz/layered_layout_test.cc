#include "solvers/viz/graph_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace stowage {
namespace {

CheckpointGraph Made(size_t vertices, std::vector<std::pair<int, int>> edges) {
  CheckpointGraphSpec spec;
  spec.bytes.assign(vertices, Bytes(1));
  spec.edges = std::move(edges);
  absl::StatusOr<CheckpointGraph> graph = CheckpointGraph::Create(std::move(spec));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

CheckpointGraph Path(int vertices) {
  std::vector<std::pair<int, int>> edges;
  for (int v = 1; v < vertices; ++v) edges.push_back({v - 1, v});
  return Made(static_cast<size_t>(vertices), edges);
}

CheckpointGraph Random(int vertices, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<int, int>> edges;
  for (int v = 1; v < vertices; ++v) {
    edges.push_back({static_cast<int>(random() % static_cast<uint32_t>(v)), v});
    if (v > 1) edges.push_back({v - 1 - static_cast<int>(random() % 2), v});
  }
  std::vector<bool> read(static_cast<size_t>(vertices), false);
  for (const auto& [from, to] : edges) read[static_cast<size_t>(from)] = true;
  for (int v = 0; v + 1 < vertices; ++v) {
    if (!read[static_cast<size_t>(v)]) edges.push_back({v, vertices - 1});
  }
  return Made(static_cast<size_t>(vertices), edges);
}

void ExpectReadable(const CheckpointGraph& graph, const LayeredLayout& layout) {
  ASSERT_EQ(layout.vertices.size(), static_cast<size_t>(graph.size()));
  ASSERT_EQ(layout.edges.size(), graph.edge_count());
  for (size_t v = 0; v < layout.vertices.size(); ++v) {
    const DrawnPoint& p = layout.vertices[v];
    EXPECT_GE(p.x, -1e-9);
    EXPECT_LE(p.x + 1, layout.width + 1e-9);
    EXPECT_GE(p.y, 0);
    EXPECT_LE(p.y + 1, layout.height + 1e-9);
    for (size_t u = 0; u < v; ++u) {
      const DrawnPoint& q = layout.vertices[u];
      EXPECT_TRUE(std::abs(p.x - q.x) > 1 - 1e-6 || std::abs(p.y - q.y) > 1 - 1e-6)
          << u << " and " << v << " overlap";
    }
  }
  for (const DrawnEdge& edge : layout.edges) {
    EXPECT_EQ(edge.points.front().x, layout.vertices[static_cast<size_t>(edge.from)].x);
    EXPECT_EQ(edge.points.back().y, layout.vertices[static_cast<size_t>(edge.to)].y);
  }
}

TEST(LayeredLayout, NothingOverlapsAndEveryEdgeIsThere) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const CheckpointGraph graph = Random(2 + static_cast<int>(seed) * 3, seed);
    const absl::StatusOr<LayeredLayout> layout = LayOut(graph, LayoutOptions());
    ASSERT_TRUE(layout.ok()) << layout.status();
    ExpectReadable(graph, *layout);
  }
}

TEST(LayeredLayout, APathIsFoldedIntoColumns) {
  const CheckpointGraph graph = Path(100);
  const absl::StatusOr<LayeredLayout> layout = LayOut(graph, {20});
  ASSERT_TRUE(layout.ok());
  ExpectReadable(graph, *layout);
  EXPECT_EQ(layout->height, 20);
  std::set<double> columns;
  for (const DrawnPoint& p : layout->vertices) columns.insert(p.x);
  EXPECT_EQ(columns.size(), 5u);
}

// Two parallel paths of different length: the short one's edge keeps clear of the long one.
TEST(LayeredLayout, ALongEdgePassesBesideTheVertices) {
  const CheckpointGraph graph = Made(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}});
  const absl::StatusOr<LayeredLayout> layout = LayOut(graph, LayoutOptions());
  ASSERT_TRUE(layout.ok());
  for (const DrawnEdge& edge : layout->edges) {
    if (edge.from != 0 || edge.to != 4) continue;
    ASSERT_EQ(edge.points.size(), 5u);
    for (size_t i = 1; i < 4; ++i) {
      EXPECT_GE(std::abs(edge.points[i].x - layout->vertices[i].x), 1 - 1e-6);
    }
  }
}

TEST(LayeredLayout, ColumnsAreNotCutWhereSeveralEdgesPass) {
  const CheckpointGraph graph = Made(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {0, 5}});
  const absl::StatusOr<LayeredLayout> layout = LayOut(graph, {2});
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->height, 6);
}

TEST(LayeredLayout, OneVertexIsAPicture) {
  const absl::StatusOr<LayeredLayout> layout = LayOut(Path(1), LayoutOptions());
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->width, 1);
  EXPECT_EQ(layout->height, 1);
}

TEST(LayeredLayout, RefusesWhatNobodyCouldRead) {
  EXPECT_THAT(LayOut(Path(5001), LayoutOptions()).status().ToString(),
              testing::HasSubstr("5001 vertices"));
  // A skip from the start to every vertex of a path: some n^2 / 2 places.
  std::vector<std::pair<int, int>> edges;
  for (int v = 1; v < 2000; ++v) {
    edges.push_back({v - 1, v});
    edges.push_back({0, v});
  }
  EXPECT_THAT(LayOut(Made(2000, edges), LayoutOptions()).status().ToString(),
              testing::HasSubstr("200000 layers"));
  EXPECT_FALSE(LayOut(Path(3), {0}).ok());
}

}  // namespace
}  // namespace stowage
