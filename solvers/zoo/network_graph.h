// Which gradients are alive while autograd runs backward through ops in reverse program order, and
// the account of memory that it shares with other walks.
//
// The gradient of an op's output goes when the backward of the op is done, unless others hold the
// same memory: additions hand it on as it is, concatenations in slices. Gradients of a tensor with
// several readers are added up into new memory. Gradients of parameters live until they are added
// to those that exist already.
#ifndef STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_
#define STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/zoo/network.h"
#include "solvers/zoo/network_builder.h"
#include "solvers/zoo/roofline.h"

namespace stowage {

// Live bytes above the start, and the most there were.
class Account {
 public:
  void Take(Bytes bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void Give(Bytes bytes) { live_ -= bytes; }
  void RestartPeak() { peak_ = live_; }
  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }

 private:
  Bytes live_;
  Bytes peak_;
};

// Memory that several may hold; it goes back to the account with the last of them.
struct Storage {
  Bytes bytes;
  int holders = 0;
  bool foreign = false;  // not of this account: the stage's input, the gradient of its output
};

class Storages {
 public:
  explicit Storages(Account* account) : account_(account) {}

  size_t New(Bytes bytes) {
    account_->Take(bytes);
    storages_.push_back({bytes, 1, false});
    return storages_.size() - 1;
  }
  size_t Foreign(Bytes bytes) {
    storages_.push_back({bytes, 1, true});
    return storages_.size() - 1;
  }
  const Storage& at(size_t storage) const { return storages_[storage]; }
  void Hold(size_t storage) { ++storages_[storage].holders; }
  void Release(size_t storage) {
    Storage& released = storages_[storage];
    if (--released.holders == 0 && !released.foreign) account_->Give(released.bytes);
  }

 private:
  Account* account_;
  std::vector<Storage> storages_;
};

// Backward through ops first..end-1 of a network: a stage, or all but the input. Op 0 needs no
// gradient, the last op of the network starts its own.
class GradientWalk {
 public:
  // Starts with the gradient of the last op. Of a stage it is its owner's memory and not the
  // account's.
  GradientWalk(const Network& network, size_t first, size_t end, Account* account,
               Storages* storages);
  // The last op's gradient stays when its backward is done.
  void KeepFirstGradient() { storages_->Hold(gradients_.back().storage); }

  // The backward of op i up to where it has read what it saved. Ops come in reverse order, each
  // once.
  void Compute(size_t i);
  // The rest of it: gradients of inputs are added to those of later readers.
  void AddUp(size_t i);

 private:
  // The gradient of one op's output as far as it is known.
  struct Gradient {
    bool defined = false;
    size_t storage = 0;
    bool slice = false;  // pieces of a larger tensor, not side by side
  };

  Gradient& gradient(size_t op) { return gradients_[op + 1 - first_]; }
  Gradient InputGradient(const NetworkOp& op, const OpRules& rules, size_t input,
                         const Gradient& of_output);
  void Accumulate(size_t op, const Gradient& more);

  const std::vector<NetworkOp>& ops_;
  size_t first_;
  Account* account_;
  Storages* storages_;
  std::vector<Gradient> gradients_;  // by op, the input of the first one first
  std::vector<Gradient> of_inputs_;  // of the op between Compute and AddUp
};

// A network as the graph that client/torch profiles of its model: with the structure that keys of jobs have.
//
// GraphOf (network_graph.h) says what the ops are; a profile differs from it where the executor does.
//   - Gradients that a concatenation hands back are slices of its own. Each moves into memory with one channel more, so
//     that it stays a slice and kernels do what they do in plain training (client/torch/node_runner.h); so it does
//     where additions hand it on, until it is summed up or computed with.
//   - Profiles do not say which ops are linear in several inputs.
// LibTorch 1.13 keeps the input of a mean, and has keys of its own for graphs with one; from 2.0 on it does not.

// Times are modelled. Errors and complexity: those of GraphOf.
absl::StatusOr<Graph> ProfiledGraphOf(const Network& network, const DeviceModel& device);

// A network as a computation graph: every op is a vertex.
//
// Bytes follow from the rules of network_builder.h. Views and in-place ops are aliases, the loss is two
// vertices at the end, the input is vertex 0. Gradients belong to storages and come one by one in a
// graph, while autograd hands some on without a copy, keeps what slices of a concatenation lie in,
// and adds up into new memory. What it holds beyond the graph's gradients while an op's backward
// runs is that op's backward overhead: with the backwards in reverse program order, as autograd
// runs them, memory is never above what the graph says. It is below where a gradient is handed on.

// Vertex i is op i; it is named after its stage, its op and its place in the stage. Errors: those
// of ValidateDeviceModel and of Graph::Create. O(ops + edges).
absl::StatusOr<Graph> GraphOf(const Network& network, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_
