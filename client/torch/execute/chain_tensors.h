// HeldTensors by the accounting of chains: an activation may be held twice, plain and among the saved tensors of its
// stage, and saved tensors go to the host with the output, as a whole or part by part.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_CHAIN_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_CHAIN_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/status.h"
#include "client/torch/execute/held_outputs.h"
#include "client/torch/execute/held_tensors.h"
#include "client/torch/offload/host_copies.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Node l is stage l, node 0 the input. Not thread-safe.
class ChainTensors : public HeldTensors {
 public:
  // The chain must outlive the object. `moves_parts`, by stage: whether saved tensors move singly.
  ChainTensors(const Chain* chain, const std::vector<bool>* moves_parts, ExecutionDevice* device);
  ~ChainTensors() override { Release().IgnoreError(); }

  const at::Tensor& Value(NodeOutput made) const override {
    return stages_[static_cast<size_t>(made.node)].made.value(made.index);
  }
  at::Tensor Share(NodeOutput made) override {
    HeldOutputs& of = stage(made.node).made;
    return of.Share(of.value(made.index), of.part(made.index));
  }
  void PutSource(int l, const std::vector<at::Tensor>& tensors) override;
  void PutOutputs(int l, const std::vector<at::Tensor>& outputs, bool saves) override;
  void PutExtras(int l, std::vector<StoragePtr> extras) override;
  void BeginBackward(int l) override { stage(l).extras.clear(); }
  void FinishBackward(int l) override;
  void Run(const Instruction& i) override;
  absl::Status Release() override;
  const HostCopies& copies() const override { return copies_; }

 private:
  struct StageState {
    HeldOutputs made;
    std::vector<StoragePtr> extras;
  };

  StageState& stage(int l) { return stages_[static_cast<size_t>(l)]; }
  void DropPlain(int l);
  void DropSaved(int l);
  void Discard(TensorKind tensor, int l);
  void StartOffload(const Instruction& i);

  const Chain& chain_;
  const std::vector<bool>& moves_parts_;
  HostCopies copies_;
  std::vector<StageState> stages_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_CHAIN_TENSORS_H_
