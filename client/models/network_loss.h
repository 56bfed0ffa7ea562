// A loss for a network of which nothing is known but the shapes of what its forward returns, and a random
// target that fits it.
#ifndef STOWAGE_CLIENT_MODELS_NETWORK_LOSS_H_
#define STOWAGE_CLIENT_MODELS_NETWORK_LOSS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/model/batch_shape.h"

namespace stowage {

// kCrossEntropy: of outputs [N, C, ...] and classes [N, ...]. kMse: the mean of squared differences to a
// target of the output's shape. kSum: of all elements, without a target.
enum class LossKind { kCrossEntropy, kMse, kSum };

const char* ToString(LossKind kind);
// "cross_entropy", "mse", "sum"; INVALID_ARGUMENT made by FieldError, with the name "loss".
absl::StatusOr<LossKind> ParseLoss(const std::string& text);

// Each floating output adds its loss, so that all that leads to any of them is trained, as auxiliary heads
// are; others (indices, masks) are left alone. All are held against one target.
class NetworkLoss {
 public:
  // INVALID_ARGUMENT made by FieldError, with the name "loss": nothing floating is returned, an output
  // has no classes (cross-entropy), outputs cannot share a target.
  static absl::StatusOr<NetworkLoss> For(LossKind kind, const std::vector<TensorShape>& outputs);

  LossKind kind() const { return kind_; }
  bool has_target() const { return kind_ != LossKind::kSum; }

  // Numbers of the outputs that it is of.
  const std::vector<size_t>& trained() const { return trained_; }

  // Classes below the fewest that any output has, or normal; undefined for the sum. From LibTorch's random
  // state. Throws what LibTorch throws.
  at::Tensor DrawTarget() const;

  // A scalar, in float32 of outputs of 16 bits. `outputs` are those of trained(), in order. Throws what
  // LibTorch throws.
  at::Tensor Of(const std::vector<at::Tensor>& outputs, const at::Tensor& target) const;

  // "cross_entropy over 1000 classes, of outputs 0, 1 and 2 added up".
  std::string Describe() const;

 private:
  explicit NetworkLoss(LossKind kind) : kind_(kind) {}
  absl::Status AddOutput(const std::vector<TensorShape>& outputs, size_t i);
  at::Tensor OfOne(at::Tensor output, const at::Tensor& target) const;

  LossKind kind_;
  std::vector<size_t> trained_;
  std::vector<int64_t> target_;  // its sizes
  int64_t classes_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_NETWORK_LOSS_H_
