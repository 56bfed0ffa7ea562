// A graph with its checkpoints and segments as a picture: SVG for people, DOT for Graphviz.
//
// Checkpoints are dark. The vertices of a segment share a pale colour, those of the largest one
// have a red rim. A vertex shows its label and its bytes.
#ifndef STOWAGE_SOLVERS_DRAWING_GRAPH_DRAWING_H_
#define STOWAGE_SOLVERS_DRAWING_GRAPH_DRAWING_H_

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

// INVALID_ARGUMENT where LayOut or, with checkpoints, JudgeCheckpoints refuses the input.
absl::StatusOr<std::string> DrawSvg(const CheckpointGraph& graph, const GraphDrawing& drawing);

// The same for `dot`; of any size. INVALID_ARGUMENT where JudgeCheckpoints refuses the checkpoints.
absl::StatusOr<std::string> DrawDot(const CheckpointGraph& graph, const GraphDrawing& drawing);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_GRAPH_DRAWING_H_
