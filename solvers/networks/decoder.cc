// Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): norms before
// attention and feed-forward part.
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/networks/network_builder.h"
#include "solvers/networks/networks.h"

namespace stowage {
namespace {

constexpr int64_t kFeedForwardFactor = 4;
constexpr int64_t kTokenBytes = 8;

absl::Status CheckOptions(const DecoderOptions& options) {
  for (const int64_t value : {options.layers, options.width, options.heads, options.length,
                              options.vocabulary, options.batch}) {
    if (value < 1) return absl::InvalidArgumentError(absl::StrCat("must be >= 1, not ", value));
  }
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("heads (", options.heads, ") must divide the width (", options.width, ")"));
  }
  return absl::OkStatus();
}

// One of queries, keys and values, a matrix per head.
size_t Project(NetworkBuilder* net, size_t x, const DecoderOptions& options) {
  return net->Transpose(
      net->Linear(x, options.width),
      {options.batch * options.heads, options.length, options.width / options.heads});
}

size_t Attention(NetworkBuilder* net, size_t x, const DecoderOptions& options) {
  const size_t queries = Project(net, x, options);
  const size_t keys = Project(net, x, options);
  const size_t values = Project(net, x, options);
  const size_t weights = net->Softmax(net->Matmul(queries, keys, options.length));
  const size_t mixed = net->Matmul(weights, values, options.width / options.heads);
  const size_t joined = net->Transpose(mixed, {options.batch, options.length, options.width});
  return net->Linear(joined, options.width);
}

void AddLayer(NetworkBuilder* net, const DecoderOptions& options) {
  const size_t x = net->last();
  const size_t y = net->Add(Attention(net, net->LayerNorm(x), options), x);
  const size_t wide = net->Gelu(net->Linear(net->LayerNorm(y), kFeedForwardFactor * options.width));
  net->Add(net->Linear(wide, options.width), y);
}

}  // namespace

absl::StatusOr<Network> MakeDecoder(const DecoderOptions& options) {
  const absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  NetworkBuilder net(absl::StrCat("decoder", options.layers), {options.batch, options.length},
                     kTokenBytes);
  net.Embedding(net.last(), options.vocabulary, options.width);
  net.EndStage("embedding", "embedding");
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    AddLayer(&net, options);
    net.EndStage(absl::StrCat("layer", layer), "decoder_layer");
  }
  net.Linear(net.LayerNorm(net.last()), options.vocabulary);
  net.EndStage("head", "layer_norm_linear");
  return std::move(net).Build();
}

}  // namespace stowage
