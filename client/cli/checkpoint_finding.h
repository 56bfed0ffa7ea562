// Checkpoints of a profile: the set that a solver of that objective keeps, and what it costs.
#ifndef STOWAGE_CLIENT_CLI_CHECKPOINT_FINDING_H_
#define STOWAGE_CLIENT_CLI_CHECKPOINT_FINDING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/listing.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/model/problem.h"
#include "solvers/viz/graph_drawing.h"

namespace stowage {

struct CheckpointFinding {
  explicit CheckpointFinding(CheckpointProblem of) : problem(std::move(of)) {}

  std::string name;    // of the profile
  bool chain = false;  // the profile is a chain, taken as a path of its stages' outputs
  CheckpointProblem problem;
  std::vector<std::string> labels;        // by vertex of problem.graph
  std::vector<std::vector<int64_t>> ids;  // by vertex: the sender's; of a chain the stage's number
  const CheckpointSolver* solver = nullptr;
  CheckpointAnswer answer;
  Segmentation segments;  // of the set
  Nanos cpu;              // of the solve, from the graph to the set

  bool keeps(int vertex) const {
    return segments.segment_of[static_cast<size_t>(vertex)] == Segmentation::kCheckpoint;
  }
};

// `solver` lives as long as the process. Errors: those of MakeCheckpointProblem and of the solver;
// INTERNAL if the set is not what the solver says, by ValidateCheckpoints.
absl::StatusOr<CheckpointFinding> FindCheckpoints(const Profile& profile,
                                                  const CheckpointSolver& solver,
                                                  const SolveOptions& options);

// For pictures.
GraphDrawing DrawingOf(const CheckpointFinding& finding);

// What the set costs, in lines for people.
std::string SummaryText(const CheckpointFinding& finding);
// The same, and the names of what is kept.
std::string ToText(const CheckpointFinding& finding);
// One object (json.md).
std::string ToJson(const CheckpointFinding& finding);
// One row per vertex, in the order of the program.
Listing VerticesOf(const CheckpointFinding& finding);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CHECKPOINT_FINDING_H_
