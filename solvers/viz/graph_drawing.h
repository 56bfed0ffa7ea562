// A graph with its checkpoints and segments as a picture: SVG for people, DOT for Graphviz.
//
// Checkpoints are dark. The vertices of a segment share a pale colour, those of the largest one
// have a red rim. A vertex shows its label and its bytes.
#ifndef STOWAGE_SOLVERS_VIZ_GRAPH_DRAWING_H_
#define STOWAGE_SOLVERS_VIZ_GRAPH_DRAWING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"

namespace stowage {

struct GraphDrawing {
  std::string title;
  std::vector<std::string> labels;  // one per vertex, any characters; missing ones are the numbers
  // What is kept; without it, no vertex is a checkpoint and none has a colour.
  std::vector<int> checkpoints;
  SegmentRule rule = SegmentRule::kTwoEndPoints;
};

// Names of ops for the labels of MakeCheckpointProblem's vertices: "layer1.0.conv1".
std::vector<std::string> LabelsOf(const Graph& graph, const CheckpointProblem& problem);

// INVALID_ARGUMENT where LayOut or, with checkpoints, ValidateCheckpoints refuses the input.
absl::StatusOr<std::string> DrawSvg(const CheckpointGraph& graph, const GraphDrawing& drawing);

// The same for `dot`; of any size. INVALID_ARGUMENT where ValidateCheckpoints refuses the checkpoints.
absl::StatusOr<std::string> DrawDot(const CheckpointGraph& graph, const GraphDrawing& drawing);

// What both pictures of a graph say about each vertex.

struct VertexStyle {
  std::string label;
  std::string bytes;
  const char* fill;
  const char* text;
  bool in_largest_segment = false;
};

struct GraphStyle {
  std::vector<VertexStyle> vertices;
  std::string subtitle;  // what the checkpoints cost
};

absl::StatusOr<GraphStyle> StyleOf(const CheckpointGraph& graph, const GraphDrawing& drawing);

// Where the vertices of a DAG go on a page: in layers from top to bottom, few edges crossing, long
// graphs folded into columns (Sugiyama, Tagawa & Toda 1981).
//
// A layer is the longest path from the source. An edge over several layers passes each of them at a
// place of its own. Columns are cut only where a single vertex fills a layer, so that one edge
// leads from each column to the next.

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

#endif  // STOWAGE_SOLVERS_VIZ_GRAPH_DRAWING_H_
