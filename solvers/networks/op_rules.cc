#include "solvers/networks/op_rules.h"

namespace stowage {
namespace {

constexpr int64_t kIndexBytes = 8;

Bytes Floats(int64_t elements) { return Bytes(elements * kFloatBytes); }

}  // namespace

OpRules RulesOf(const NetworkOp& op) {
  OpRules rules;
  switch (op.kind) {
    case OpKind::kInput:
      break;
    case OpKind::kGlobalAvgPool:  // the backward of a mean needs the shape alone
      rules.backward_temporary = Floats(1) + Bytes(kIndexBytes);  // the divisor, in both types
      break;
    case OpKind::kConv2d:
      rules.saves_inputs = true;
      rules.wants_dense_gradient = true;
      break;
    case OpKind::kLinear:
    case OpKind::kMatmul:
    case OpKind::kGelu:
    case OpKind::kEmbedding:
      rules.saves_inputs = true;
      break;
    case OpKind::kAvgPool:
    case OpKind::kAdaptiveAvgPool:
      rules.saves_inputs = true;
      rules.wants_dense_gradient = true;
      break;
    case OpKind::kBatchNorm:
      rules.saves_inputs = true;
      rules.extra = Floats(2 * op.shape[1]);  // mean and inverse deviation
      rules.extra_tensors = 2;
      rules.forward_temporary = Floats(2 * op.shape[1]);
      rules.backward_temporary = op.bytes;  // the CPU kernel makes its result twice
      break;
    case OpKind::kLayerNorm:
      rules.saves_inputs = true;
      rules.extra = Floats(2 * op.elements() / op.shape.back());
      rules.extra_tensors = 2;
      break;
    case OpKind::kRelu:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      rules.saves_output = true;
      break;
    case OpKind::kMaxPool:
      rules.saves_inputs = true;
      rules.extra = Bytes(op.elements() * kIndexBytes);
      rules.wants_dense_gradient = true;
      break;
    case OpKind::kDropout:
      rules.extra = op.bytes;  // the mask, already scaled
      break;
    case OpKind::kAdd:
    case OpKind::kCat:
    case OpKind::kFlatten:
    case OpKind::kIdentity:
      rules.passes_gradient = true;
      break;
    case OpKind::kSlice:  // its backward fills a tensor of its own with zeros around it
    case OpKind::kTranspose:
      break;
    case OpKind::kNllLoss:
      rules.saves_inputs = true;
      rules.extra = Floats(1);  // the total weight
      break;
  }
  return rules;
}

}  // namespace stowage
