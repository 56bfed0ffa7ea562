// A network as the ops that a framework runs, with the shapes of their tensors, grouped into the
// stages of a chain.
//
// Only shapes: no weights, no values. Ops stand in program order and keep their edges. Op 0 is the
// input of the network. A stage is a run of consecutive ops that reads, beside its own ops, only
// the last op of the stage before it; the last stage is the loss. Made by NetworkBuilder, which
// checks all of this.
#ifndef STOWAGE_SOLVERS_ZOO_NETWORK_H_
#define STOWAGE_SOLVERS_ZOO_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "solvers/model/units.h"

namespace stowage {

using Shape = std::vector<int64_t>;

enum class OpKind {
  kInput,
  kConv2d,
  kLinear,
  kMatmul,     // of two activations, batched
  kBatchNorm,  // in training: statistics of the batch
  kLayerNorm,
  kRelu,
  kGelu,
  kSoftmax,
  kAttention,  // causal, of queries, keys and values, in one kernel
  kMaxPool,
  kAvgPool,
  kAdaptiveAvgPool,
  kGlobalAvgPool,  // to one pixel
  kDropout,
  kAdd,
  kCat,        // along the channels
  kFlatten,    // a view
  kIdentity,   // its input itself
  kSlice,      // an image without its first row and column; a view
  kTranspose,  // copied into a new tensor
  kEmbedding,
  kLogSoftmax,
  kNllLoss,
};

// What a convolution or a pooling looks at, and how it moves.
struct Window {
  int64_t height = 1;
  int64_t width = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t pad_height = 0;
  int64_t pad_width = 0;
  int64_t dilation = 1;  // of convolutions alone

  static Window Square(int64_t side, int64_t stride = 1, int64_t pad = 0) {
    return {side, side, stride, stride, pad, pad};
  }
};

struct NetworkOp {
  OpKind kind = OpKind::kInput;
  std::vector<size_t> inputs;       // ops that it reads, each before it
  Shape shape;                      // of the output
  Bytes bytes;                      // of the output
  Window window;                    // of convolutions and poolings
  bool in_place = false;            // writes over its first input
  std::vector<int64_t> parameters;  // elements of each parameter; float32

  bool is_view() const {
    return kind == OpKind::kFlatten || kind == OpKind::kIdentity || kind == OpKind::kSlice;
  }
  // Whether the output is no memory of its own but that of the first input.
  bool shares_input() const { return in_place || is_view(); }
  // Elements of the output.
  int64_t elements() const;
  Bytes parameter_bytes() const;
};

struct NetworkStage {
  std::string name;
  std::string op_kind;
  size_t first_op = 0;
  size_t end_op = 0;  // one beyond the last
};

struct Network {
  std::string name;
  std::vector<NetworkOp> ops;
  std::vector<NetworkStage> stages;  // 1..L at index 0..L-1, then the loss
  // The weight of the last linear layer is that of the embedding.
  bool tied_embedding = false;
};

inline constexpr int64_t kFloatBytes = 4;

int64_t Elements(const Shape& shape);

// "Conv2d", "BatchNorm2d": the names of LibTorch's modules where there is one.
const char* NameOf(OpKind kind);

// "layer1.0/Conv2d_3", by op: its stage, its kind and its place in the stage.
std::vector<std::string> OpNames(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_NETWORK_H_
