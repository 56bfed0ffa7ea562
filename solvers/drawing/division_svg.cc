#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/drawing/division_drawing.h"
#include "solvers/drawing/division_outline.h"
#include "solvers/drawing/markup.h"

namespace stowage {
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
    for (int p = rows_[static_cast<size_t>(row)].parent; p != OutlineRow::kNone;
         p = rows_[static_cast<size_t>(p)].parent) {
      path.push_back(p);
    }
    for (size_t i = path.size(); i-- > 0;) AppendRow(path[i], /*again=*/true, svg);
  }

  void AppendRow(int index, bool again, std::string* svg) {
    const OutlineRow& row = rows_[static_cast<size_t>(index)];
    const double x = Left() + row.depth * kIndent;
    const double y = kTreeTitle + line_ * kRow + kRow / 2;
    line_of_[static_cast<size_t>(index)] = line_++;
    most_lines_ = std::max(most_lines_, line_);
    if (row.parent != OutlineRow::kNone) {
      const int above = line_of_[static_cast<size_t>(row.parent)];
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

  const std::string& LabelOf(int v) const { return style_.vertices[static_cast<size_t>(v)].label; }

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
