#include "absl/strings/str_cat.h"
#include "solvers/drawing/graph_drawing.h"
#include "solvers/drawing/graph_style.h"
#include "solvers/drawing/markup.h"

namespace stowage {

absl::StatusOr<std::string> DrawDot(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  const absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  std::string dot = absl::StrCat(
      "digraph {\n  label=\"", DotEscaped(drawing.title), "\\n", DotEscaped(style->subtitle),
      "\";\n  labelloc=t;\n  node [shape=box, style=filled, fontname=Helvetica];\n");
  for (int v = 0; v < graph.size(); ++v) {
    const VertexStyle& vertex = style->vertices[static_cast<size_t>(v)];
    absl::StrAppend(&dot, "  ", v, " [label=\"", DotEscaped(vertex.label), "\\n", vertex.bytes,
                    "\", fillcolor=\"", vertex.fill, "\", fontcolor=\"", vertex.text, "\"",
                    vertex.in_largest_segment ? ", color=\"#c62828\", penwidth=2" : "", "];\n");
  }
  for (int v = 0; v < graph.size(); ++v) {
    for (const int u : graph.inputs(v)) absl::StrAppend(&dot, "  ", u, " -> ", v, ";\n");
  }
  return dot + "}\n";
}

}  // namespace stowage
