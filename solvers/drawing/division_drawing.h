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
#ifndef STOWAGE_SOLVERS_DRAWING_DIVISION_DRAWING_H_
#define STOWAGE_SOLVERS_DRAWING_DIVISION_DRAWING_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/drawing/graph_drawing.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/division_tree.h"

namespace stowage {

// Each >= 1.
struct DivisionLimits {
  int rows = 300;
  int depth = 12;     // levels below the root
  int children = 60;  // rows of a node's children; the rest is "and 37 more"
};

// `tree` is that of `graph`. INVALID_ARGUMENT for a limit below 1, and where JudgeCheckpoints
// refuses the checkpoints. O((V + E) log V + nodes), without recursion.
absl::StatusOr<std::string> DrawDivisionSvg(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits = {});
absl::StatusOr<std::string> DrawDivisionDot(const CheckpointGraph& graph, const DivisionTree& tree,
                                            const GraphDrawing& drawing,
                                            const DivisionLimits& limits = {});

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_DIVISION_DRAWING_H_
