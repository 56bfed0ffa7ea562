#include "absl/strings/str_cat.h"
#include "solvers/drawing/division_drawing.h"
#include "solvers/drawing/division_outline.h"
#include "solvers/drawing/markup.h"

namespace stowage {
namespace {

std::string LabelOf(const DivisionTree& tree, const GraphStyle& style, const OutlineRow& row) {
  const auto name = [&](int v) { return DotEscaped(style.vertices[static_cast<size_t>(v)].label); };
  std::string label = KindOf(tree, row);
  if (row.form != OutlineRow::Form::kMore) {
    const auto [from, to] = EndsOf(tree, row);
    absl::StrAppend(&label, "\\n", name(from), " -> ",
                    to == OutlineRow::kNone ? "several" : name(to));
  }
  if (row.inside > Bytes(0)) absl::StrAppend(&label, "\\n", ToString(row.inside), " inside");
  if (row.hidden + row.edges > 0) absl::StrAppend(&label, "\\n", RemarkOn(tree, row));
  return label;
}

}  // namespace

absl::StatusOr<std::string> DrawDivisionDot(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits) {
  const absl::StatusOr<DivisionSketch> sketch = SketchOf(graph, tree, drawing, limits);
  if (!sketch.ok()) return sketch.status();
  const GraphStyle& style = sketch->style;
  const std::vector<OutlineRow>& rows = sketch->rows;
  std::string dot = absl::StrCat("digraph {\n  label=\"", DotEscaped(drawing.title), "\\n",
                                 DotEscaped(style.subtitle),
                                 "\";\n  labelloc=t;\n  rankdir=LR;\n  ordering=out;\n",
                                 "  node [shape=box, style=filled, fontname=Helvetica];\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    const OutlineRow& row = rows[i];
    absl::StrAppend(&dot, "  ", i, " [label=\"", LabelOf(tree, style, row), "\", fillcolor=\"",
                    KindColour(tree, row), "\"];\n");
    if (row.parent == OutlineRow::kNone) continue;
    absl::StrAppend(&dot, "  ", row.parent, " -> ", i);
    if (!row.meet.empty()) {
      absl::StrAppend(&dot, " [label=\"", MeetingBytes(graph, row), "\"]");
    }
    absl::StrAppend(&dot, ";\n");
  }
  return dot + "}\n";
}

}  // namespace stowage
