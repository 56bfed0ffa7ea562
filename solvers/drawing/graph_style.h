// What both pictures of a graph say about each vertex. Internal to solvers/drawing.
#ifndef STOWAGE_SOLVERS_DRAWING_GRAPH_STYLE_H_
#define STOWAGE_SOLVERS_DRAWING_GRAPH_STYLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/drawing/graph_drawing.h"

namespace stowage {

struct VertexStyle {
  std::string label;
  std::string bytes;
  const char* fill;
  const char* text;
  bool in_largest_segment = false;
};

struct GraphStyle {
  std::vector<VertexStyle> vertices;
  std::string subtitle;  // what the checkpoints cost
};

absl::StatusOr<GraphStyle> StyleOf(const CheckpointGraph& graph, const GraphDrawing& drawing);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_GRAPH_STYLE_H_
