#include "solvers/drawing/division_outline.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/model/index.h"

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

absl::StatusOr<DivisionSketch> SketchOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                        const GraphDrawing& drawing, const DivisionLimits& limits) {
  absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  absl::StatusOr<std::vector<OutlineRow>> rows = OutlineOf(tree, limits);
  if (!rows.ok()) return rows.status();
  return DivisionSketch{*std::move(style), *std::move(rows)};
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

std::pair<int, int> EndsOf(const DivisionTree& tree, const OutlineRow& row) {
  const DivisionNode& first = tree.node(row.first);
  const bool line = row.count == 1 || tree.node(first.parent).kind == DivisionKind::kLinear;
  return {first.start, line ? tree.node(row.first + row.count - 1).end : OutlineRow::kNone};
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

const VertexStyle* SharedStyle(const GraphStyle& style, absl::Span<const int> vertices) {
  const VertexStyle* shared = nullptr;
  for (const int v : vertices) {
    const VertexStyle& own = style.vertices[Index(v)];
    if (shared != nullptr && std::strcmp(shared->fill, own.fill) != 0) return nullptr;
    shared = &own;
  }
  return shared;
}

}  // namespace stowage
