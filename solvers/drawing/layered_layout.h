// Where the vertices of a DAG go on a page: in layers from top to bottom, few edges crossing, long
// graphs folded into columns (Sugiyama, Tagawa & Toda 1981).
//
// A layer is the longest path from the source. An edge over several layers passes each of them at a
// place of its own. Columns are cut only where a single vertex fills a layer, so that one edge
// leads from each column to the next.
#ifndef STOWAGE_SOLVERS_DRAWING_LAYERED_LAYOUT_H_
#define STOWAGE_SOLVERS_DRAWING_LAYERED_LAYOUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"

namespace stowage {

// In units of one vertex and its gap: x to the right, y down, both from 0.
struct DrawnPoint {
  double x = 0;
  double y = 0;
};

struct DrawnEdge {
  int from = 0;
  int to = 0;
  std::vector<DrawnPoint> points;  // from the reader's input to it, both ends included
};

struct LayeredLayout {
  std::vector<DrawnPoint> vertices;
  std::vector<DrawnEdge> edges;
  double width = 0;
  double height = 0;
};

struct LayoutOptions {
  int column_layers = 34;  // after about as many, the next column begins; >= 1
};

// INVALID_ARGUMENT above 5,000 vertices, or where edges pass more than 200,000 layers in all: no
// such picture tells anybody anything. O((V + places) log).
absl::StatusOr<LayeredLayout> LayOut(const CheckpointGraph& graph, const LayoutOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_LAYERED_LAYOUT_H_
