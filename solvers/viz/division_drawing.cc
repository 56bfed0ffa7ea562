#include "solvers/viz/division_drawing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/model/field_error.h"
#include "solvers/model/index.h"
#include "solvers/viz/markup.h"

namespace stowage {
namespace {

constexpr int kUnfoldedNodes = 48;  // up to which every edge has a row of its own

absl::Status ValidateLimits(const DivisionLimits& limits) {
  const std::pair<const char*, int> fields[] = {
      {"rows", limits.rows}, {"depth", limits.depth}, {"children", limits.children}};
  for (const auto& [name, value] : fields) {
    if (value < 1) return FieldError(name, value, "must be >= 1");
  }
  return absl::OkStatus();
}

class Outline {
 public:
  Outline(const DivisionTree& tree, const DivisionLimits& limits)
      : tree_(tree),
        limits_(limits),
        fold_(tree.size() > kUnfoldedNodes),
        open_(Index(tree.size()), false),
        below_(Index(tree.size()), 0) {
    for (int n = tree.size() - 1; n > 0; --n) {
      below_[Index(tree.node(n).parent)] += below_[Index(n)] + 1;
    }
  }

  std::vector<OutlineRow> Make() {
    Open();
    std::vector<OutlineRow> rows;
    std::vector<OutlineRow> waiting(1);
    waiting.back().inside = tree_.node(DivisionTree::kRoot).bytes;
    while (!waiting.empty()) {
      OutlineRow row = std::move(waiting.back());
      waiting.pop_back();
      const int place = static_cast<int>(rows.size());
      const bool open = row.form == OutlineRow::Form::kPart && open_[Index(row.first)];
      if (row.form == OutlineRow::Form::kPart && IsPlain(row.first)) {
        row.edges = tree_.node(row.first).child_count;
      } else if (!open) {
        row.hidden = HiddenIn(row);
      }
      if (open) {
        std::vector<OutlineRow> children = ChildRows(row.first);
        for (size_t i = children.size(); i-- > 0;) {
          children[i].parent = place;
          children[i].depth = row.depth + 1;
          waiting.push_back(std::move(children[i]));
        }
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  // Level by level, as long as there are rows for all children of a node.
  void Open() {
    std::vector<int> depth(Index(tree_.size()), 0);
    std::vector<bool> shown(Index(tree_.size()), false);
    shown[DivisionTree::kRoot] = true;
    int rows = 1;
    for (int n = 0; n < tree_.size(); ++n) {
      const DivisionNode& node = tree_.node(n);
      if (n > 0) depth[Index(n)] = depth[Index(node.parent)] + 1;
      if (!shown[Index(n)] || node.child_count == 0 || depth[Index(n)] >= limits_.depth) continue;
      if (IsPlain(n)) continue;
      const std::vector<OutlineRow> children = Runs(n);
      rows += static_cast<int>(children.size());
      if (rows > limits_.rows) return;
      open_[Index(n)] = true;
      for (const OutlineRow& row : children) {
        shown[Index(row.first)] = row.form == OutlineRow::Form::kPart;
      }
    }
  }

  bool IsEdge(int n) const { return tree_.node(n).kind == DivisionKind::kEdge; }

  // Folded, a line of nothing but edges is one row.
  bool IsPlain(int n) const {
    const DivisionNode& node = tree_.node(n);
    if (!fold_ || n == DivisionTree::kRoot || node.kind != DivisionKind::kLinear) return false;
    for (int i = 0; i < node.child_count; ++i) {
      if (!IsEdge(node.first_child + i)) return false;
    }
    return true;
  }

  // The children of a node by rows, without what they say.
  std::vector<OutlineRow> Runs(int n) const {
    std::vector<OutlineRow> rows;
    const int end = tree_.node(n).first_child + tree_.node(n).child_count;
    for (int child = tree_.node(n).first_child; child < end;) {
      OutlineRow row;
      row.first = child;
      if (static_cast<int>(rows.size()) + 1 == limits_.children && child + 1 < end) {
        row.form = OutlineRow::Form::kMore;
        row.count = end - child;
      } else {
        while (fold_ && IsEdge(child) && child + row.count < end && IsEdge(child + row.count)) {
          ++row.count;
        }
        if (row.count > 1) row.form = OutlineRow::Form::kEdges;
      }
      child += row.count;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<OutlineRow> ChildRows(int n) const {
    std::vector<OutlineRow> rows = Runs(n);
    const absl::Span<const int> meeting = tree_.connecting(n);
    std::vector<bool> named(meeting.size(), false);
    for (OutlineRow& row : rows) {
      for (int child = row.first; child < row.first + row.count; ++child) {
        row.inside += tree_.node(child).bytes;
        const auto at = std::lower_bound(meeting.begin(), meeting.end(), tree_.node(child).end);
        if (at == meeting.end() || *at != tree_.node(child).end) continue;
        const size_t i = static_cast<size_t>(at - meeting.begin());
        if (!named[i]) row.meet.push_back(*at);
        named[i] = true;
      }
    }
    return rows;
  }

  int HiddenIn(const OutlineRow& row) const {
    int hidden = 0;
    for (int n = row.first; n < row.first + row.count; ++n) hidden += below_[Index(n)];
    return hidden;
  }

  const DivisionTree& tree_;
  const DivisionLimits& limits_;
  const bool fold_;
  std::vector<bool> open_;  // by node
  std::vector<int> below_;  // nodes below each
};

}  // namespace

absl::StatusOr<std::vector<OutlineRow>> OutlineOf(const DivisionTree& tree,
                                                  const DivisionLimits& limits) {
  const absl::Status valid = ValidateLimits(limits);
  if (!valid.ok()) return valid;
  return Outline(tree, limits).Make();
}

std::string KindOf(const DivisionTree& tree, const OutlineRow& row) {
  switch (row.form) {
    case OutlineRow::Form::kPart:
      return ToString(tree.node(row.first).kind);
    case OutlineRow::Form::kEdges:
      return absl::StrCat(row.count, " edges");
    case OutlineRow::Form::kMore:
      break;
  }
  return absl::StrCat("and ", row.count, " more");
}

std::string RemarkOn(const DivisionTree& tree, const OutlineRow& row) {
  if (row.hidden > 0) return absl::StrCat(row.hidden, " nodes hidden");
  if (row.edges > 0) return absl::StrCat(row.edges, " edges");
  const int parts = tree.node(row.first).child_count;
  return row.form == OutlineRow::Form::kPart && parts > 0 ? absl::StrCat(parts, " parts") : "";
}

std::string MeetingBytes(const CheckpointGraph& graph, const OutlineRow& row) {
  if (row.meet.empty()) return "";
  Bytes bytes;
  for (const int v : row.meet) bytes += graph.bytes(v);
  return row.meet.size() == 1 ? ToString(bytes)
                              : absl::StrCat(row.meet.size(), ": ", ToString(bytes));
}

namespace {

// What every picture of a division tree is made from.
struct DivisionSketch {
  GraphStyle style;
  std::vector<OutlineRow> rows;
};

// Errors of OutlineOf and StyleOf.
absl::StatusOr<DivisionSketch> SketchOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                        const GraphDrawing& drawing, const DivisionLimits& limits) {
  absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  absl::StatusOr<std::vector<OutlineRow>> rows = OutlineOf(tree, limits);
  if (!rows.ok()) return rows.status();
  return DivisionSketch{*std::move(style), *std::move(rows)};
}

const char* KindColour(const DivisionTree& tree, const OutlineRow& row) {
  if (row.form == OutlineRow::Form::kMore) return "#ffffff";
  switch (tree.node(row.first).kind) {
    case DivisionKind::kLinear:
      return "#d5e3f0";
    case DivisionKind::kBranch:
      return "#f7dfb8";
    case DivisionKind::kRigid:
      return "#f0c9cc";
    case DivisionKind::kEdge:
      break;
  }
  return "#eef0f2";
}

// Where the row begins and ends, vertices; the end is kNone for edges that are no line.
std::pair<int, int> EndsOf(const DivisionTree& tree, const OutlineRow& row) {
  const DivisionNode& first = tree.node(row.first);
  const bool line = row.count == 1 || tree.node(first.parent).kind == DivisionKind::kLinear;
  return {first.start, line ? tree.node(row.first + row.count - 1).end : OutlineRow::kNone};
}

// Of all vertices in the list if they share it, else null.
const VertexStyle* SharedStyle(const GraphStyle& style, absl::Span<const int> vertices) {
  const VertexStyle* shared = nullptr;
  for (const int v : vertices) {
    const VertexStyle& own = style.vertices[Index(v)];
    if (shared != nullptr && std::strcmp(shared->fill, own.fill) != 0) return nullptr;
    shared = &own;
  }
  return shared;
}

std::string LabelOf(const DivisionTree& tree, const GraphStyle& style, const OutlineRow& row) {
  const auto name = [&](int v) { return DotEscaped(style.vertices[Index(v)].label); };
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

namespace {

// Pixels.
constexpr double kRow = 22;
constexpr double kIndent = 18;
constexpr double kKindWidth = 76;
constexpr double kNamesWidth = 276;
constexpr double kBytesWidth = 92;
constexpr double kGap = 8;
constexpr double kColumnGap = 36;
constexpr double kTreeMargin = 16;
constexpr double kTreeTitle = 76;
constexpr int kColumnRows = 48;    // about
constexpr size_t kTreeLabel = 17;  // characters of a vertex's label

class Sheet {
 public:
  Sheet(const CheckpointGraph& graph, const DivisionTree& tree, const GraphStyle& style,
        const std::vector<OutlineRow>& rows)
      : graph_(graph), tree_(tree), style_(style), rows_(rows) {
    for (const OutlineRow& row : rows) depth_ = std::max(depth_, row.depth);
    const int count = static_cast<int>(rows.size());
    const int columns = (count + kColumnRows - 1) / kColumnRows;
    column_rows_ = columns == 1 ? count : (count + columns - 1) / columns + depth_;
  }

  std::string Draw(const std::string& title) {
    std::string body;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i == 0 || line_ >= column_rows_) BeginColumn(static_cast<int>(i), &body);
      AppendRow(static_cast<int>(i), /*again=*/false, &body);
    }
    const double width =
        std::max(640.0, 2 * kTreeMargin + (column_ + 1) * ColumnWidth() + column_ * kColumnGap);
    const double height = kTreeTitle + kTreeMargin + most_lines_ * kRow;
    return absl::StrFormat(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
               "height=\"%.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
               "<text x=\"%.0f\" y=\"26\" font-size=\"16\">%s</text>"
               "<text x=\"%.0f\" y=\"44\" fill=\"#5b6470\">%s</text>\n",
               width, height, width, height, kTreeMargin, XmlEscaped(title), kTreeMargin,
               XmlEscaped(style_.subtitle)) +
           body + "</svg>\n";
  }

 private:
  double ColumnWidth() const {
    return depth_ * kIndent + kKindWidth + kNamesWidth + 2 * (kBytesWidth + kGap);
  }
  double Left() const { return kTreeMargin + column_ * (ColumnWidth() + kColumnGap); }
  double InsideAt() const { return Left() + depth_ * kIndent + kKindWidth + kNamesWidth; }
  double MeetAt() const { return InsideAt() + kBytesWidth + kGap; }

  // Heads it with what the row is part of.
  void BeginColumn(int row, std::string* svg) {
    if (row > 0) ++column_;
    line_ = 0;
    line_of_.assign(rows_.size(), OutlineRow::kNone);
    absl::StrAppendFormat(svg,
                          "<g fill=\"#5b6470\" text-anchor=\"end\"><text x=\"%.1f\" y=\"%.1f\">"
                          "inside</text><text x=\"%.1f\" y=\"%.1f\">meet in</text></g>\n",
                          InsideAt() + kBytesWidth - 6, kTreeTitle - 8, MeetAt() + kBytesWidth - 6,
                          kTreeTitle - 8);
    std::vector<int> path;
    for (int p = rows_[Index(row)].parent; p != OutlineRow::kNone; p = rows_[Index(p)].parent) {
      path.push_back(p);
    }
    for (size_t i = path.size(); i-- > 0;) AppendRow(path[i], /*again=*/true, svg);
  }

  void AppendRow(int index, bool again, std::string* svg) {
    const OutlineRow& row = rows_[Index(index)];
    const double x = Left() + row.depth * kIndent;
    const double y = kTreeTitle + line_ * kRow + kRow / 2;
    line_of_[Index(index)] = line_++;
    most_lines_ = std::max(most_lines_, line_);
    if (row.parent != OutlineRow::kNone) {
      const int above = line_of_[Index(row.parent)];
      absl::StrAppendFormat(svg,
                            "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#b5bcc6\"/>",
                            x - kIndent / 2, kTreeTitle + above * kRow + kRow - 2, y, x);
    }
    absl::StrAppend(svg, again ? "<g opacity=\"0.45\">" : "<g class=\"row\">", TooltipOf(row));
    absl::StrAppendFormat(svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\" "
                          "fill=\"%s\" stroke=\"#8a93a0\"/><text x=\"%.1f\" y=\"%.1f\" "
                          "text-anchor=\"middle\">%s</text>",
                          x, y - kRow / 2 + 2, kKindWidth, kRow - 4, KindColour(tree_, row),
                          x + kKindWidth / 2, y + 4, KindOf(tree_, row));
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", x + kKindWidth + kGap,
                          y + 4, again ? "continued" : NamesOf(row));
    if (!again) AppendCells(row, y, svg);
    absl::StrAppend(svg, "</g>\n");
  }

  void AppendCells(const OutlineRow& row, double y, std::string* svg) const {
    if (row.inside > Bytes(0)) {
      AppendCell(InsideAt(), y, ToString(row.inside),
                 row.form == OutlineRow::Form::kPart
                     ? SharedStyle(style_, tree_.interior(row.first))
                     : nullptr,
                 svg);
    }
    if (!row.meet.empty()) {
      AppendCell(MeetAt(), y, MeetingBytes(graph_, row), SharedStyle(style_, row.meet), svg);
    }
  }

  static void AppendCell(double x, double y, const std::string& text, const VertexStyle* style,
                         std::string* svg) {
    const bool largest = style != nullptr && style->in_largest_segment;
    if (style != nullptr) {
      absl::StrAppendFormat(svg,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"3\" "
                            "fill=\"%s\" stroke=\"%s\"/>",
                            x, y - kRow / 2 + 3, kBytesWidth, kRow - 6, style->fill,
                            largest ? "#c62828" : "none");
    }
    absl::StrAppendFormat(
        svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"%s\">%s</text>",
        x + kBytesWidth - 6, y + 4, style == nullptr ? "#1a1a1a" : style->text, text);
  }

  const std::string& LabelOf(int v) const { return style_.vertices[Index(v)].label; }

  // "conv1 -> pool1", with a true arrow.
  std::string NamesOf(const OutlineRow& row) const {
    const std::string remark = RemarkOn(tree_, row);
    if (row.form == OutlineRow::Form::kMore) return remark;
    const bool left_out = row.hidden + row.edges > 0;
    const auto [from, to] = EndsOf(tree_, row);
    return absl::StrCat(
        NameOf(from), " &#8594; ", to == OutlineRow::kNone ? "several" : NameOf(to),
        left_out ? absl::StrCat(" <tspan fill=\"#5b6470\">", remark, "</tspan>") : "");
  }

  std::string NameOf(int v) const { return XmlEscaped(Shortened(LabelOf(v), kTreeLabel)); }

  std::string TooltipOf(const OutlineRow& row) const {
    std::string text = RemarkOn(tree_, row);
    for (size_t i = 0; i < row.meet.size() && i < 40; ++i) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", LabelOf(row.meet[i]));
    }
    return text.empty() ? "" : absl::StrCat("<title>", XmlEscaped(text), "</title>");
  }

  const CheckpointGraph& graph_;
  const DivisionTree& tree_;
  const GraphStyle& style_;
  const std::vector<OutlineRow>& rows_;
  int depth_ = 0;
  int column_rows_ = 0;
  int column_ = 0;
  int line_ = 0;
  int most_lines_ = 0;
  std::vector<int> line_of_;  // of rows in the current column
};

}  // namespace

absl::StatusOr<std::string> DrawDivisionSvg(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits) {
  const absl::StatusOr<DivisionSketch> sketch = SketchOf(graph, tree, drawing, limits);
  if (!sketch.ok()) return sketch.status();
  return Sheet(graph, tree, sketch->style, sketch->rows).Draw(drawing.title);
}

}  // namespace stowage
