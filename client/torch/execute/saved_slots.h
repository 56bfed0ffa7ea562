// What autograd saved of one node's forward, in places that a plan can empty and fill again: the graph of the first
// forward is the caller's, and lives on while the plan drops and recomputes what it saved.
//
// Each saved tensor has a slot, in the order of saving. A slot refers to memory that others hold (the node's inputs
// and output, parameters, the target), or owns its tensor. A forward that runs again fills the slots that own. Not
// thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_SLOTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_SLOTS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/packing_scope.h"
#include "client/torch/offload/host_copies.h"

namespace stowage {

struct SavedSlot;

class SavedSlots {
 public:
  // Around the first forward. Unless it keeps, what the graph saves and nobody else holds goes as it would without a
  // graph. Where it is never to be dropped, the saved tensors are those of Python's hooks, if there are any in force.
  class Recording : private PackingScope {
   public:
    Recording(SavedSlots* slots, bool keeps, bool never_drops = false)
        : slots_(slots), keeps_(keeps), never_drops_(never_drops) {}

   private:
    std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override;
    bool Yields() const override { return never_drops_; }

    SavedSlots* slots_;
    bool keeps_;
    bool never_drops_;
  };

  // Around a forward that runs again, whose own graph is for nothing. Throws StageRuleError where it saves other tensors
  // than the first one did; so does Check, to be called after it, where it saved fewer. If it `stops`, it ends where the
  // last slot that owns is filled: by an exception of no type that others know, after which stopped() says so.
  class Refilling : private PackingScope {
   public:
    explicit Refilling(SavedSlots* slots, bool stops = false)
        : slots_(slots), end_(stops ? slots->EndOfOwn() : slots->slots_.size()), stops_(stops) {}
    void Check() const;
    bool stopped() const { return stopped_; }

   private:
    std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override;

    SavedSlots* slots_;
    size_t end_;  // as many are to be filled
    bool stops_;
    size_t filled_ = 0;
    bool stopped_ = false;
  };

  // After a first forward that autograd saved itself of, without slots: holds its graph until LetGo or Drop.
  void Hold(const std::vector<at::Tensor>& outputs);
  // After the first forward: which memory others hold, the outputs' owner among them.
  void Settle(const std::vector<const c10::StorageImpl*>& held_by_others,
              const std::vector<at::Tensor>& outputs);
  // Whether there is anything that a forward that runs again has to fill.
  bool owns() const { return EndOfOwn() > 0; }
  // Whether an output, or what shares its memory, was saved: then no forward that runs again may leave it out.
  bool saves_output() const { return saves_output_; }
  // The same slots, as after a Drop, of a graph that there is not: for a forward that is to be measured.
  SavedSlots Emptied() const;
  // Empties the slots that own, or lets go of a graph without slots.
  void Drop();
  // To be called where the backward begins, which frees slots one by one. Until then they are held here, too: part of a
  // graph may be gone before, if no gradient can come to it.
  void LetGo() {
    held_.clear();
    graph_.clear();
  }
  // Memory on the device that only slots hold, each storage once, in the order of saving.
  std::vector<StoragePtr> OwnStorages(c10::Device device) const;

 private:
  // The number of slots up to the last that owns and is still there.
  size_t EndOfOwn() const;

  std::vector<std::weak_ptr<SavedSlot>> slots_;  // the graph owns them
  std::vector<std::shared_ptr<SavedSlot>> held_;
  std::vector<NodePtr> graph_;  // what made the outputs
  bool saves_output_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_SLOTS_H_
