#include "solvers/zoo/network.h"

#include "absl/strings/str_cat.h"

namespace stowage {

int64_t Elements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  return elements;
}

const char* NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kInput:
      return "Input";
    case OpKind::kConv2d:
      return "Conv2d";
    case OpKind::kLinear:
      return "Linear";
    case OpKind::kMatmul:
      return "Matmul";
    case OpKind::kBatchNorm:
      return "BatchNorm2d";
    case OpKind::kLayerNorm:
      return "LayerNorm";
    case OpKind::kRelu:
      return "ReLU";
    case OpKind::kGelu:
      return "GELU";
    case OpKind::kSoftmax:
      return "Softmax";
    case OpKind::kMaxPool:
      return "MaxPool2d";
    case OpKind::kAvgPool:
      return "AvgPool2d";
    case OpKind::kAdaptiveAvgPool:
    case OpKind::kGlobalAvgPool:
      return "AdaptiveAvgPool2d";
    case OpKind::kDropout:
      return "Dropout";
    case OpKind::kAdd:
      return "Add";
    case OpKind::kCat:
      return "Cat";
    case OpKind::kFlatten:
      return "Flatten";
    case OpKind::kIdentity:
      return "Identity";
    case OpKind::kSlice:
      return "Slice";
    case OpKind::kTranspose:
      return "Transpose";
    case OpKind::kEmbedding:
      return "Embedding";
    case OpKind::kLogSoftmax:
      return "LogSoftmax";
    case OpKind::kNllLoss:
      return "NLLLoss";
  }
  return "";
}

int64_t NetworkOp::elements() const { return Elements(shape); }

Bytes NetworkOp::parameter_bytes() const {
  int64_t elements = 0;
  for (const int64_t parameter : parameters) elements += parameter;
  return Bytes(elements * kFloatBytes);
}

std::vector<std::string> OpNames(const Network& network) {
  std::vector<std::string> names = {"input"};
  for (const NetworkStage& stage : network.stages) {
    for (size_t i = stage.first_op; i < stage.end_op; ++i) {
      names.push_back(
          absl::StrCat(stage.name, "/", NameOf(network.ops[i].kind), "_", i - stage.first_op));
    }
  }
  return names;
}

}  // namespace stowage
