#include "tests/solvers/graph_ops.h"

#include <utility>

namespace stowage::testing {

Vertex MakeOp(int64_t id, std::vector<GraphInput> inputs) {
  Vertex v;
  v.id = v.program_order = id;
  v.inputs = std::move(inputs);
  return v;
}

Vertex MakeOp(int64_t id, std::vector<GraphInput> inputs, int64_t bytes) {
  Vertex v = MakeOp(id, std::move(inputs));
  v.output = v.output_gradient = Bytes(bytes);
  v.forward_time = Nanos(10 + id);
  v.backward_time = Nanos(20 + id);
  return v;
}

Graph MakeGraph(std::vector<Vertex> vertices) {
  GraphSpec spec;
  spec.vertices = std::move(vertices);
  return *Graph::Create(std::move(spec));
}

}  // namespace stowage::testing
