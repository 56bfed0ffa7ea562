// Reads the graphs of tests/data (*.graph; tests/data/README.md describes the format).
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_FILE_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"

namespace stowage::testing {

// Sizes of outputs and their gradients, no times. Every backward needs its inputs and its output,
// except those of vertices with several inputs: they are additions and concatenations. NOT_FOUND if
// the file cannot be read, INVALID_ARGUMENT naming the line if it is none of ours.
absl::StatusOr<Graph> ReadGraphFile(const std::string& path);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_FILE_H_
