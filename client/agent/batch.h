// What one step trains on, and what of it a plan depends on.
#ifndef STOWAGE_CLIENT_AGENT_BATCH_H_
#define STOWAGE_CLIENT_AGENT_BATCH_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "client/torch/base/tensors.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/model/model_tensors.h"
#include "solvers/model/units.h"

namespace stowage {

struct Batch {
  // Those of GraphModel::inputs(), in order; for a chain the input and its side inputs.
  std::vector<at::Tensor> inputs;
  Tensors target;  // or several
  // Whatever else the caller switches that changes what the model computes, in any words. Which parameters train, which
  // modules are in train() (ModelTensors::modes), and whether autocast is on is seen without it.
  std::string mode = {};
};

Bytes InputBytes(const Batch& batch);

// Types and sizes of a batch, what of the model trains, modes of modules, autocast, and the mode: a profile holds for one
// signature.
class BatchSignature {
 public:
  // O(dimensions + parameters + modules): microseconds.
  static BatchSignature Of(const Batch& batch, const ModelTensors& model);

  // "Float[8,3,32,32] -> Long[8]" and what else there is; equal for equal signatures only.
  const std::string& text() const { return text_; }

  // Whether a plan for `planned` holds: it differs in sizes alone, and no size is larger.
  bool FitsInto(const BatchSignature& planned) const;

  friend bool operator==(const BatchSignature& a, const BatchSignature& b) {
    return a.text_ == b.text_;
  }
  friend bool operator!=(const BatchSignature& a, const BatchSignature& b) { return !(a == b); }

 private:
  std::string text_;
  std::string other_;                // what is no size
  std::vector<TensorShape> shapes_;  // of the inputs, then the targets
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_BATCH_H_
