// The rows of a division tree's picture. Internal to solvers/drawing.
#ifndef STOWAGE_SOLVERS_DRAWING_DIVISION_OUTLINE_H_
#define STOWAGE_SOLVERS_DRAWING_DIVISION_OUTLINE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/drawing/division_drawing.h"
#include "solvers/drawing/graph_style.h"

namespace stowage {

struct OutlineRow {
  static constexpr int kNone = -1;
  // One child, a run of edges, or all children from one on.
  enum class Form { kPart, kEdges, kMore };

  Form form = Form::kPart;
  int parent = kNone;  // a row
  int depth = 0;
  int first = 0;  // node; `count` of them, siblings
  int count = 1;
  int edges = 0;          // of a line of nothing else, which has no rows for them
  int hidden = 0;         // other nodes below that have no row
  std::vector<int> meet;  // vertices that no row before names
  Bytes inside;
};

// Parents before children, as they are read. Errors of limits alone.
absl::StatusOr<std::vector<OutlineRow>> OutlineOf(const DivisionTree& tree,
                                                  const DivisionLimits& limits);

// What every picture of a division tree is made from.
struct DivisionSketch {
  GraphStyle style;
  std::vector<OutlineRow> rows;
};

// Errors of OutlineOf and StyleOf.
absl::StatusOr<DivisionSketch> SketchOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                        const GraphDrawing& drawing, const DivisionLimits& limits);

// "linear", "5 edges", "and 37 more".
std::string KindOf(const DivisionTree& tree, const OutlineRow& row);
const char* KindColour(const DivisionTree& tree, const OutlineRow& row);
// Where the row begins and ends, vertices; the end is kNone for edges that are no line.
std::pair<int, int> EndsOf(const DivisionTree& tree, const OutlineRow& row);
// "3 parts", "7 edges", "41 nodes hidden" or nothing.
std::string RemarkOn(const DivisionTree& tree, const OutlineRow& row);
// The bytes of row.meet, and if there are several, their number.
std::string MeetingBytes(const CheckpointGraph& graph, const OutlineRow& row);
// Of all vertices in the list if they share it, else null.
const VertexStyle* SharedStyle(const GraphStyle& style, absl::Span<const int> vertices);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_DIVISION_OUTLINE_H_
