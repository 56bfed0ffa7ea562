// A division tree as a picture: SVG for people, DOT for Graphviz.
//
// The SVG is an outline, read from top to bottom and then column by column: a row per node with its
// kind, its ends, the bytes inside, and at the right the vertices that its parts meet in and that
// no row above named. Every vertex inside the root thus belongs to one row: the bytes inside a node
// are those of all cells below it. Vertices have the colours of graph_drawing.h, and so do the
// bytes inside a node that lies in one segment.
//
// Where a tree has more nodes than a column has rows, edges that follow each other share a row
// ("5 edges"), and so does a line of nothing else ("linear", 5 edges).
// Levels are opened from the root down while rows last; what stays closed says how many nodes it
// hides.
#ifndef STOWAGE_SOLVERS_VIZ_DIVISION_DRAWING_H_
#define STOWAGE_SOLVERS_VIZ_DIVISION_DRAWING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_tree.h"
#include "solvers/viz/graph_drawing.h"

namespace stowage {

// Each >= 1.
struct DivisionLimits {
  int rows = 300;
  int depth = 12;     // levels below the root
  int children = 60;  // rows of a node's children; the rest is "and 37 more"
};

// `tree` is that of `graph`. INVALID_ARGUMENT for a limit below 1, and where ValidateCheckpoints
// refuses the checkpoints. O((V + E) log V + nodes), without recursion.
absl::StatusOr<std::string> DrawDivisionSvg(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits = {});
absl::StatusOr<std::string> DrawDivisionDot(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits = {});

// The rows of a division tree's picture.

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

// "linear", "5 edges", "and 37 more".
std::string KindOf(const DivisionTree& tree, const OutlineRow& row);
// "3 parts", "7 edges", "41 nodes hidden" or nothing.
std::string RemarkOn(const DivisionTree& tree, const OutlineRow& row);
// The bytes of row.meet, and if there are several, their number.
std::string MeetingBytes(const CheckpointGraph& graph, const OutlineRow& row);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_DIVISION_DRAWING_H_
