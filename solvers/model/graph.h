// A computation graph as a planning problem: every vertex is a tensor with the op that makes it.
//
// Of a graph (has_backwards), each vertex runs forward, and backward as autograd has it. Of a compute DAG, each
// vertex runs forward alone: forwards, losses and backwards of the step are vertices alike, as in the joint graphs
// of compilers, and what the step is for (losses, gradients) is marked as a result.
//
// Immutable after Create. Vertices are held in program order and addressed by their position there
// (0..size()-1), whatever numbers the sender used; that order is part of the structure, so it is
// also the canonical order of the key.
#ifndef STOWAGE_SOLVERS_MODEL_GRAPH_H_
#define STOWAGE_SOLVERS_MODEL_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

enum class AliasKind { kNone, kView, kInPlace };

struct GraphInput {
  int64_t vertex = 0;           // spec: the sender's id; in a Graph: position in program order
  bool backward_needs = false;  // the reader's backward reads it again
};

struct Vertex {
  int64_t id = 0;  // the sender's
  std::string name;
  std::string op_kind;
  int64_t program_order = 0;  // only the order counts
  std::vector<GraphInput> inputs;

  Bytes output;
  Bytes output_gradient;
  Bytes extra_saved;  // saved beyond inputs and output
  bool backward_needs_output = false;

  Nanos forward_time;
  Nanos backward_time;
  Bytes forward_saving_overhead;
  Bytes forward_overhead;
  Bytes backward_overhead;

  // As of a stage (chain.h): of a recompute right before the backward that makes the extras, and whose output is dropped
  // unread.
  std::optional<Nanos> recompute_saving_time;
  std::optional<Bytes> recompute_saving_overhead;  // beyond the extras

  AliasKind alias = AliasKind::kNone;  // of the first input; adds no bytes
  bool linear_multi_input = false;
  bool random = false;
  bool stateful = false;
  bool collective = false;
  bool must_keep = false;
  Bytes transient_parameters;
  bool result = false;  // of a compute DAG: its tensor is held when the step ends

  bool stops() const { return recompute_saving_time.has_value(); }
  Nanos stopped_time() const { return recompute_saving_time.value_or(forward_time); }
  Bytes stopped_overhead() const {
    return recompute_saving_overhead.value_or(output + forward_saving_overhead);
  }
};

struct GraphSpec {
  std::string name;
  std::vector<Vertex> vertices;
  // False: a compute DAG. Its vertices have forward_time, output and forward_overhead (the op's workspace; also in
  // forward_saving_overhead, or 0 there), no gradients, no extras, and no input that a backward needs.
  bool has_backwards = true;
};

class Graph {
 public:
  static constexpr size_t kMaxVertices = 1000000;

  // Sorts by program order, resolves ids, and checks every rule of the contract: INVALID_ARGUMENT
  // made by FieldError otherwise. The program order being a topological order is what proves that
  // there is no cycle. O(V log V + E).
  static absl::StatusOr<Graph> Create(GraphSpec spec);

  const std::string& name() const { return name_; }
  bool has_backwards() const { return has_backwards_; }
  int size() const { return static_cast<int>(vertices_.size()); }
  const Vertex& vertex(int position) const { return vertices_[static_cast<size_t>(position)]; }
  // The vertex whose bytes this one lives in: itself unless it is an alias.
  int storage(int position) const { return storage_[static_cast<size_t>(position)]; }
  // What makes this graph anew: in program order, inputs by the sender's ids. O(V + E).
  GraphSpec spec() const;
  // Bytes that this vertex adds: 0 for an alias.
  Bytes bytes(int position) const;
  Nanos ideal_time() const { return ideal_time_; }
  // Whether a recompute of some vertex stops early (Vertex::stops).
  bool stops() const { return stops_; }

 private:
  Graph() = default;

  std::string name_;
  bool has_backwards_ = true;
  std::vector<Vertex> vertices_;
  std::vector<int> storage_;
  Nanos ideal_time_;
  bool stops_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_GRAPH_H_
