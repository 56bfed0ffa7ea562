// The graph of a plan as solvers/drawing draws graphs: what is never computed a second time is dark, what is
// recomputed between has the colour of its segment.
#ifndef STOWAGE_SOLVERS_REPORT_GRAPH_PICTURE_H_
#define STOWAGE_SOLVERS_REPORT_GRAPH_PICTURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/report/drawn_plan.h"

namespace stowage {

enum class GraphPictureForm { kSvg, kDot };

// Vertices that share memory are one (solvers/graph/checkpoint_graph.h). Where no order of the segments
// computes them one by one, none has a colour. `plan` is one of `graph`. INVALID_ARGUMENT for a graph too
// large to be laid out (DrawSvg); as MakeCheckpointProblem.
absl::StatusOr<std::string> GraphPicture(const Graph& graph, const DrawnPlan& plan,
                                         GraphPictureForm form);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_GRAPH_PICTURE_H_
