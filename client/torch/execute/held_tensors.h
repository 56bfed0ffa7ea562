// What a step by a plan holds at one moment, with the ownership that the evaluator accounts
// (solvers/schedule/evaluator.h): tensors, and what of saved tensors can go to the host.
//
// A tensor that is dropped frees its memory even while graphs still point at it; they find it again when it was made
// again meanwhile (SharedData). The caller keeps to a schedule that the evaluator accepted; nothing is checked twice.
// Transfers throw what HostCopies throws. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_HELD_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_HELD_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/status.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/host_copies.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// By the numbers of the model's nodes.
class HeldTensors {
 public:
  virtual ~HeldTensors() = default;

  // What a node made, with the bytes that are held of it now; undefined where it made none.
  virtual const at::Tensor& Value(NodeOutput made) const = 0;

  // The same for somebody who may hold it longer than the plan does: his own bytes, once they are dropped here.
  virtual at::Tensor Share(NodeOutput made) = 0;

  // The tensors of a source. Of a chain those behind the first stay until Release.
  virtual void PutSource(int v, const std::vector<at::Tensor>& tensors) = 0;
  // What a forward of v made, without graphs, and nobody else's; `saves` as its instruction has it. Throws StageRuleError where it lives in other memory
  // than the plan has it.
  virtual void PutOutputs(int v, const std::vector<at::Tensor>& outputs, bool saves) = 0;
  // What of the graph of v, the outputs aside, can go to the host. Throws ImmovableError where that is not what the plan
  // has.
  virtual void PutExtras(int v, std::vector<StoragePtr> extras) = 0;
  // The backward of v frees its extras one by one, and drops at its end what the evaluator says.
  virtual void BeginBackward(int v) = 0;
  virtual void FinishBackward(int v) = 0;
  // A discard, a drop-saved-keep-output, or a start or wait of a transfer.
  virtual void Run(const Instruction& instruction) = 0;

  // Lets go of everything; callers who hold sources get back what is on the host of them, or the error says that one
  // is lost.
  virtual absl::Status Release() = 0;
  virtual const HostCopies& copies() const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_HELD_TENSORS_H_
