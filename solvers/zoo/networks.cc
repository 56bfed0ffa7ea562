#include "solvers/zoo/networks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/model/field_error.h"
#include "solvers/zoo/families.h"
#include "solvers/zoo/network_builder.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/roofline.h"

namespace stowage {
namespace {

absl::Status UnknownName(const std::string& name) {
  const auto append_name = [](std::string* out, const NetworkInfo& info) {
    out->append(info.name);
  };
  return absl::InvalidArgumentError(absl::StrCat("there is no network '", name, "'; there are ",
                                                 absl::StrJoin(AllNetworks(), ", ", append_name),
                                                 ", ",
                                                 absl::StrJoin(AllDecoders(), ", ", append_name)));
}

bool HasOp(const Network& network, const NetworkStage& stage, OpKind kind) {
  const auto first = network.ops.begin() + static_cast<std::ptrdiff_t>(stage.first_op);
  const auto end = network.ops.begin() + static_cast<std::ptrdiff_t>(stage.end_op);
  return std::any_of(first, end, [&](const NetworkOp& op) { return op.kind == kind; });
}

Stage MakeStage(const Network& network, size_t index, const StageMemory& memory,
                const std::vector<OpTimes>& op_times) {
  const NetworkStage& described = network.stages[index];
  OpTimes times;
  for (size_t i = described.first_op; i < described.end_op; ++i) times += op_times[i];
  Stage stage;
  stage.name = described.name;
  stage.op_kind = described.op_kind;
  stage.forward_time = times.forward;
  stage.backward_time = times.backward;
  stage.output = memory.output;
  stage.saved = memory.saved;
  stage.saved_tensors = memory.saved_tensors;
  stage.forward_saving_overhead = memory.forward_saving_overhead;
  stage.forward_overhead = memory.forward_overhead;
  stage.backward_overhead = memory.backward_overhead;
  stage.random = HasOp(network, described, OpKind::kDropout);
  stage.stateful = HasOp(network, described, OpKind::kBatchNorm);
  return stage;
}

}  // namespace

const std::vector<NetworkInfo>& AllNetworks() {
  static const auto* const kNetworks = [] {
    auto* networks = new std::vector<NetworkInfo>;
    for (const ImageNetwork& network : ImageNetworks()) networks->push_back(network.info);
    return networks;
  }();
  return *kNetworks;
}

absl::StatusOr<Network> MakeNetwork(const NetworkOptions& options) {
  const std::pair<const char*, int64_t> sizes[] = {{"image", options.image},
                                                   {"batch", options.batch},
                                                   {"classes", options.classes},
                                                   {"length", options.length}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) return FieldError(name, size, "must be >= 1");
  }
  for (const ImageNetwork& network : ImageNetworks()) {
    if (options.name == network.info.name) return network.make(options);
  }
  const absl::StatusOr<DecoderOptions> decoder = NamedDecoder(options);
  if (!decoder.ok()) return UnknownName(options.name);
  absl::StatusOr<Network> network = MakeDecoder(*decoder);
  if (!network.ok()) return network;
  network->name = options.name;
  network->tied_embedding = true;
  return network;
}

absl::StatusOr<Chain> ChainOf(const Network& network, const DeviceModel& device) {
  absl::Status status = ValidateDeviceModel(device);
  if (!status.ok()) return status;
  ChainSpec spec;
  spec.name = network.name;
  spec.input = network.ops.front().bytes;
  const std::vector<OpTimes> times = ModelledTimes(network, device);
  for (size_t i = 0; i < network.stages.size(); ++i) {
    const StageMemory memory = MemoryOfStage(network, i);
    if (i > 0) spec.stages[i - 1].output_gradient = memory.input_gradient;
    Stage stage = MakeStage(network, i, memory, times);
    if (i + 1 < network.stages.size()) {
      spec.stages.push_back(std::move(stage));
    } else {
      spec.loss = std::move(stage);
    }
  }
  return Chain::Create(std::move(spec));
}

absl::StatusOr<Chain> NetworkChain(const NetworkOptions& options, const DeviceModel& device) {
  absl::StatusOr<Network> network = MakeNetwork(options);
  if (!network.ok()) return network.status();
  return ChainOf(*network, device);
}

Profile ModelledProfile(Chain chain, const DeviceModel& device) {
  std::string name = chain.name();
  return Profile{std::move(name), DescribeModel(device), std::move(chain), CostSource::kModelled};
}

Profile ModelledProfile(Graph graph, const DeviceModel& device) {
  std::string name = graph.name();
  return Profile{std::move(name), DescribeModel(device), std::move(graph), CostSource::kModelled};
}

// Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): norms before
// attention and feed-forward part.

namespace {

constexpr int64_t kFeedForwardFactor = 4;
constexpr int64_t kTokenBytes = 8;

struct NamedSize {
  const char* name;
  const char* description;
  int64_t layers;
  int64_t width;
  int64_t heads;
};

// Table 2 of the paper; heads of 64.
constexpr NamedSize kSizes[] = {
    {"gpt2", "GPT-2 small: 12 layers of width 768", 12, 768, 12},
    {"gpt2_medium", "GPT-2 medium: 24 layers of width 1024", 24, 1024, 16},
    {"gpt2_large", "GPT-2 large: 36 layers of width 1280", 36, 1280, 20},
    {"gpt2_xl", "GPT-2 XL: 48 layers of width 1600", 48, 1600, 25},
};

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

const std::vector<NetworkInfo>& AllDecoders() {
  static const auto* const kDecoders = [] {
    auto* decoders = new std::vector<NetworkInfo>;
    for (const NamedSize& size : kSizes) decoders->push_back({size.name, size.description});
    return decoders;
  }();
  return *kDecoders;
}

bool IsDecoder(const std::string& name) {
  return std::any_of(std::begin(kSizes), std::end(kSizes),
                     [&name](const NamedSize& size) { return name == size.name; });
}

absl::StatusOr<DecoderOptions> NamedDecoder(const NetworkOptions& options) {
  for (const NamedSize& size : kSizes) {
    if (options.name != size.name) continue;
    DecoderOptions decoder;
    decoder.layers = size.layers;
    decoder.width = size.width;
    decoder.heads = size.heads;
    decoder.length = options.length;
    decoder.batch = options.batch;
    return decoder;
  }
  return absl::NotFoundError(absl::StrCat("there is no decoder '", options.name, "'"));
}

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
