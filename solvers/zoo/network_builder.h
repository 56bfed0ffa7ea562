// What LibTorch keeps and allocates when it runs an op and its backward, from shapes alone.
//
// The rules are those of LibTorch 1.13 on the CPU in float32, as its allocator shows them (the
// tests compare them); later versions and other devices differ in small things, such as a dropout
// mask of one byte per element. Attention in one kernel is that of LibTorch 2: 1.13 makes the matrix of scores. Not in them, because shapes do not say it: the workspace that a
// convolution takes while it runs.
#ifndef STOWAGE_SOLVERS_ZOO_NETWORK_BUILDER_H_
#define STOWAGE_SOLVERS_ZOO_NETWORK_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/zoo/network.h"

namespace stowage {

struct OpRules {
  bool saves_inputs = false;
  bool saves_output = false;
  Bytes extra;            // made by the forward, saved for the backward: statistics, indices, mask
  int extra_tensors = 1;  // that it consists of, equal in size
  Bytes forward_temporary;  // beside output and extra
  // The gradient of an input is the gradient of the output, or a view of it: no new memory.
  bool passes_gradient = false;
  // Copies a gradient that is a slice of a larger tensor before it reads it.
  bool wants_dense_gradient = false;
  Bytes backward_temporary;  // beside the new gradients
};

OpRules RulesOf(const NetworkOp& op);

// Builds a Network op by op. Shapes are computed and checked on the way; the first error is kept
// and comes out of Build, so that the description of a network reads without error handling.

// Every op function adds an op that reads op `x` and returns the new op's index. Images are
// [batch, channels, height, width], sequences [batch, length, width]. Not thread-safe.
class NetworkBuilder {
 public:
  NetworkBuilder(std::string name, Shape input, int64_t element_bytes);

  // The op added last: the input of what comes next.
  size_t last() const { return network_.ops.size() - 1; }
  const Shape& shape(size_t op) const { return network_.ops[op].shape; }
  int64_t channels(size_t op) const { return network_.ops[op].shape[1]; }

  size_t Conv2d(size_t x, int64_t channels, const Window& window, bool bias = false);
  // Every channel is convolved alone.
  size_t DepthwiseConv2d(size_t x, const Window& window) {
    return Slide(OpKind::kConv2d, x, channels(x), window,
                 {channels(x) * window.height * window.width});
  }
  size_t BatchNorm(size_t x) {
    return AddOp(OpKind::kBatchNorm, {x}, shape(x), {channels(x), channels(x)});
  }
  size_t LayerNorm(size_t x);
  size_t Relu(size_t x);  // in place
  size_t ReluCopy(size_t x) { return AddOp(OpKind::kRelu, {x}, shape(x)); }
  size_t Gelu(size_t x) { return AddOp(OpKind::kGelu, {x}, shape(x)); }
  // Of a matrix per head each, as Transpose makes them.
  size_t Attention(size_t queries, size_t keys, size_t values) {
    return AddOp(OpKind::kAttention, {queries, keys, values}, shape(queries));
  }
  size_t Softmax(size_t x) { return AddOp(OpKind::kSoftmax, {x}, shape(x)); }
  size_t MaxPool(size_t x, const Window& window) {
    return Slide(OpKind::kMaxPool, x, channels(x), window);
  }
  size_t AvgPool(size_t x, const Window& window) {
    return Slide(OpKind::kAvgPool, x, channels(x), window);
  }
  size_t AdaptiveAvgPool(size_t x, int64_t side) {
    return AddOp(OpKind::kAdaptiveAvgPool, {x}, {shape(x)[0], channels(x), side, side});
  }
  size_t GlobalAvgPool(size_t x) {
    return AddOp(OpKind::kGlobalAvgPool, {x}, {shape(x)[0], channels(x), 1, 1});
  }
  size_t Dropout(size_t x) { return AddOp(OpKind::kDropout, {x}, shape(x)); }
  size_t Add(size_t x, size_t y);
  // x += y.
  size_t AddInPlace(size_t x, size_t y);
  // Parts of equal height and width, else the error of Build.
  size_t Cat(const std::vector<size_t>& parts);
  // All dimensions but the first become one.
  size_t Flatten(size_t x);
  size_t Identity(size_t x) { return AddOp(OpKind::kIdentity, {x}, shape(x)); }
  // The image without its first row and column.
  size_t Slice(size_t x);
  // On the last dimension; with bias.
  size_t Linear(size_t x, int64_t features);
  size_t Transpose(size_t x, Shape shape) {
    return AddOp(OpKind::kTranspose, {x}, std::move(shape));
  }
  // [b, m, k] by a [b, k, n] or its transpose.
  size_t Matmul(size_t x, size_t y, int64_t columns);
  size_t Embedding(size_t x, int64_t vocabulary, int64_t width);

  // The ops added since the last stage ended are a stage.
  void EndStage(std::string name, std::string op_kind);

  // Adds cross-entropy over the last op's last dimension as the loss and hands the network over.
  // INVALID_ARGUMENT if a window is larger than its image, a tensor beyond 2^48 elements, or images
  // of different sizes are added or concatenated.
  absl::StatusOr<Network> Build() &&;

 private:
  size_t AddOp(OpKind kind, std::vector<size_t> inputs, Shape shape,
               std::vector<int64_t> parameters = {});
  // An op that slides a window over the image x.
  size_t Slide(OpKind kind, size_t x, int64_t channels, const Window& window,
               std::vector<int64_t> parameters = {});
  void RequireSameSize(size_t x, size_t y);
  void Fail(const std::string& message);

  Network network_;
  size_t stage_start_ = 1;
  absl::Status status_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_NETWORK_BUILDER_H_
