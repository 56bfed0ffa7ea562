#include "solvers/drawing/graph_style.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "solvers/drawing/markup.h"

namespace stowage {
namespace {

void StyleSegments(const CheckpointSet& set, const Segmentation& segments, GraphStyle* style) {
  const std::vector<Bytes>& bytes = segments.segment_bytes;
  const auto largest = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
  for (size_t v = 0; v < style->vertices.size(); ++v) {
    VertexStyle& vertex = style->vertices[v];
    const int segment = segments.segment_of[v];
    if (segment == Segmentation::kCheckpoint) {
      vertex.fill = "#2b3a55";
      vertex.text = "#ffffff";
    } else {
      vertex.fill = PaleColour(static_cast<size_t>(segment));
      vertex.in_largest_segment = segment == largest;
    }
  }
  style->subtitle =
      absl::StrCat(ToString(set.objective()), " = ", set.checkpoints.size(), " checkpoints of ",
                   ToString(set.checkpoint_bytes), " + the largest of ", bytes.size(),
                   bytes.size() == 1 ? " segment, " : " segments, ", ToString(set.segment_bytes));
}

}  // namespace

absl::StatusOr<GraphStyle> StyleOf(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  GraphStyle style;
  for (int v = 0; v < graph.size(); ++v) {
    const size_t i = static_cast<size_t>(v);
    style.vertices.push_back({i < drawing.labels.size() ? drawing.labels[i] : absl::StrCat(v),
                              ToString(graph.bytes(v)), "#ffffff", "#1a1a1a"});
  }
  style.subtitle = absl::StrCat(graph.size(), " vertices, ", graph.edge_count(), " edges, ",
                                ToString(graph.total()));
  if (drawing.checkpoints.empty()) return style;
  Segmentation segments;
  const absl::StatusOr<CheckpointSet> set =
      JudgeCheckpoints(graph, drawing.checkpoints, drawing.rule, &segments);
  if (!set.ok()) return set.status();
  StyleSegments(*set, segments, &style);
  return style;
}

}  // namespace stowage
