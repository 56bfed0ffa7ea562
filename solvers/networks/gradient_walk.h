// Which gradients are alive while autograd runs backward through ops in reverse program order, and
// the account of memory that it shares with other walks.
//
// The gradient of an op's output goes when the backward of the op is done, unless others hold the
// same memory: additions hand it on as it is, concatenations in slices. Gradients of a tensor with
// several readers are added up into new memory. Gradients of parameters live until they are added
// to those that exist already.
#ifndef STOWAGE_SOLVERS_NETWORKS_GRADIENT_WALK_H_
#define STOWAGE_SOLVERS_NETWORKS_GRADIENT_WALK_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/networks/network.h"
#include "solvers/networks/op_rules.h"

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_GRADIENT_WALK_H_
