#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/drawing/graph_drawing.h"
#include "solvers/drawing/graph_style.h"
#include "solvers/drawing/layered_layout.h"
#include "solvers/drawing/markup.h"

namespace stowage {
namespace {

// Pixels.
constexpr double kCellWidth = 138;
constexpr double kCellHeight = 40;
constexpr double kBoxWidth = 124;
constexpr double kBoxHeight = 28;
constexpr double kMargin = 16;
constexpr double kTitle = 44;
constexpr size_t kLabel = 20;  // characters that fit into a box

DrawnPoint Pixel(const DrawnPoint& p) {
  return {kMargin + (p.x + 0.5) * kCellWidth, kTitle + kMargin + (p.y + 0.5) * kCellHeight};
}

// From the bottom of one box to the top of the other, smoothly past the places between.
std::string EdgePath(const DrawnEdge& edge) {
  std::string path;
  DrawnPoint last;
  for (size_t i = 0; i < edge.points.size(); ++i) {
    DrawnPoint p = Pixel(edge.points[i]);
    if (i == 0) p.y += kBoxHeight / 2;
    if (i + 1 == edge.points.size()) p.y -= kBoxHeight / 2;
    if (i == 0) {
      absl::StrAppendFormat(&path, "M%.1f %.1f", p.x, p.y);
    } else {
      const double middle = (last.y + p.y) / 2;
      absl::StrAppendFormat(&path, "C%.1f %.1f %.1f %.1f %.1f %.1f", last.x, middle, p.x, middle,
                            p.x, p.y);
    }
    last = p;
  }
  return path;
}

void AppendVertex(const DrawnPoint& at, const VertexStyle& vertex, std::string* svg) {
  const DrawnPoint p = Pixel(at);
  absl::StrAppendFormat(
      svg,
      "<g><title>%s, %s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\" "
      "fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"/>",
      XmlEscaped(vertex.label), vertex.bytes, p.x - kBoxWidth / 2, p.y - kBoxHeight / 2, kBoxWidth,
      kBoxHeight, vertex.fill, vertex.in_largest_segment ? "#c62828" : "#5b6470",
      vertex.in_largest_segment ? "2" : "1");
  absl::StrAppendFormat(svg,
                        "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>"
                        "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" font-size=\"9\">%s</text></g>\n",
                        p.x, p.y - 2, vertex.text, XmlEscaped(Shortened(vertex.label, kLabel)), p.x,
                        p.y + 9, vertex.text, vertex.bytes);
}

}  // namespace

std::vector<std::string> LabelsOf(const Graph& graph, const CheckpointProblem& problem) {
  std::vector<std::string> labels;
  for (const std::vector<int>& members : problem.members) {
    if (members.empty()) {
      labels.push_back(labels.empty() ? "inputs" : "outputs");
      continue;
    }
    const Vertex& first = graph.vertex(members.front());
    labels.push_back(first.name.empty() ? absl::StrCat(first.op_kind, " ", first.id) : first.name);
  }
  return labels;
}

absl::StatusOr<std::string> DrawSvg(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  const absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  const absl::StatusOr<LayeredLayout> layout = LayOut(graph, LayoutOptions());
  if (!layout.ok()) return layout.status();

  const double width = std::max(640.0, 2 * kMargin + layout->width * kCellWidth);
  const double height = kTitle + 2 * kMargin + layout->height * kCellHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" "
      "text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
      "<g text-anchor=\"start\"><text x=\"%.0f\" y=\"26\" font-size=\"16\">%s</text>"
      "<text x=\"%.0f\" y=\"44\" fill=\"#5b6470\">%s</text></g>\n",
      width, height, width, height, kMargin, XmlEscaped(drawing.title), kMargin,
      XmlEscaped(style->subtitle));
  absl::StrAppend(&svg, "<g fill=\"none\" stroke=\"#8a93a0\">\n");
  for (const DrawnEdge& edge : layout->edges) {
    absl::StrAppend(&svg, "<path d=\"", EdgePath(edge), "\"/>\n");
  }
  absl::StrAppend(&svg, "</g>\n");
  for (int v = 0; v < graph.size(); ++v) {
    const size_t i = static_cast<size_t>(v);
    AppendVertex(layout->vertices[i], style->vertices[i], &svg);
  }
  return svg + "</svg>\n";
}

}  // namespace stowage
