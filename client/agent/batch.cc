#include "client/agent/batch.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/torch/model/autocast_state.h"

namespace stowage {
namespace {

std::string AutocastWords() {
  const AutocastState autocast = AutocastState::Capture();
  return autocast.enabled() ? absl::StrCat(" autocast=", autocast.ToString()) : "";
}

// The parameters that do not train, by number; usually none.
std::string FrozenWords(const ModelTensors& model) {
  std::string words;
  const std::vector<at::Tensor>& parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad())
      absl::StrAppend(&words, words.empty() ? " frozen=" : ",", i);
  }
  return words;
}

// The modules that are in eval(), by number: runs of them, since there are often all or none.
std::string EvalWords(const std::vector<bool>& training) {
  std::string words;
  for (size_t i = 0; i < training.size(); ++i) {
    if (training[i]) continue;
    const size_t first = i;
    while (i + 1 < training.size() && !training[i + 1]) ++i;
    absl::StrAppend(&words, words.empty() ? " eval=" : ",", first);
    if (i > first) absl::StrAppend(&words, "-", i);
  }
  return words;
}

void AppendShape(const TensorShape& shape, std::string* text) {
  if (shape.type == at::ScalarType::Undefined) {
    *text += "none";
    return;
  }
  absl::StrAppend(text, c10::toString(shape.type), "[", absl::StrJoin(shape.sizes, ","), "]");
}

bool NoLarger(const TensorShape& a, const TensorShape& b) {
  return a.type == b.type && a.sizes.size() == b.sizes.size() &&
         std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(),
                    [](int64_t x, int64_t y) { return x <= y; });
}

}  // namespace

Bytes InputBytes(const Batch& batch) {
  Bytes bytes;
  for (const at::Tensor& input : batch.inputs) {
    if (input.defined()) bytes += Bytes(static_cast<int64_t>(input.nbytes()));
  }
  return bytes;
}

BatchSignature BatchSignature::Of(const Batch& batch, const ModelTensors& model) {
  BatchSignature signature;
  for (const at::Tensor& input : batch.inputs) {
    signature.shapes_.push_back(TensorShape::Of(input));
    if (!signature.text_.empty()) signature.text_ += " ";
    AppendShape(signature.shapes_.back(), &signature.text_);
  }
  signature.text_ += " ->";
  for (const at::Tensor& target : batch.target.empty() ? Tensors(at::Tensor()) : batch.target) {
    signature.shapes_.push_back(TensorShape::Of(target));
    signature.text_ += " ";
    AppendShape(signature.shapes_.back(), &signature.text_);
  }
  signature.other_ = absl::StrCat(FrozenWords(model), EvalWords(model.modes()), AutocastWords());
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    if (batch.inputs[i].requires_grad()) absl::StrAppend(&signature.other_, " gradient-of=", i);
  }
  if (!batch.mode.empty()) absl::StrAppend(&signature.other_, " mode=", batch.mode);
  signature.text_ += signature.other_;
  return signature;
}

bool BatchSignature::FitsInto(const BatchSignature& planned) const {
  return other_ == planned.other_ && shapes_.size() == planned.shapes_.size() &&
         std::equal(shapes_.begin(), shapes_.end(), planned.shapes_.begin(), NoLarger);
}

}  // namespace stowage
