#include "tests/solvers/graph_file.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage::testing {
namespace {

absl::StatusOr<Vertex> ParseVertex(const std::string& line, int64_t position) {
  std::istringstream words(line);
  Vertex v;
  v.id = position;
  v.name = absl::StrCat("v", position);
  v.program_order = position;
  int64_t bytes = 0;
  if (!(words >> bytes >> v.op_kind)) {
    return absl::InvalidArgumentError(absl::StrCat("no vertex: '", line, "'"));
  }
  v.output = Bytes(bytes);
  int64_t input = 0;
  while (words >> input) v.inputs.push_back({input, false});
  if (!words.eof()) return absl::InvalidArgumentError(absl::StrCat("no input: '", line, "'"));
  if (v.inputs.empty()) return v;
  v.output_gradient = v.output;
  v.linear_multi_input = v.inputs.size() > 1;
  v.backward_needs_output = !v.linear_multi_input;
  for (GraphInput& read : v.inputs) read.backward_needs = !v.linear_multi_input;
  return v;
}

}  // namespace

absl::StatusOr<Graph> ReadGraphFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  GraphSpec spec;
  spec.name = path.substr(path.find_last_of('/') + 1);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<Vertex> vertex = ParseVertex(line, static_cast<int64_t>(spec.vertices.size()));
    if (!vertex.ok()) return vertex.status();
    spec.vertices.push_back(*std::move(vertex));
  }
  return Graph::Create(std::move(spec));
}

}  // namespace stowage::testing
