#include "solvers/networks/networks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/model/field_error.h"
#include "solvers/networks/families.h"
#include "solvers/networks/stage_memory.h"

namespace stowage {
namespace {

using Family = absl::StatusOr<Network> (*)(const NetworkOptions&);
constexpr Family kFamilies[] = {MakeResNet,  MakeDenseNet,    MakeInception,   MakeVgg,
                                MakeAlexNet, MakeCellNetwork, MakeNamedDecoder};

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
    for (std::vector<NetworkInfo> family :
         {ResNets(), DenseNets(), Inceptions(), Vggs(), AlexNets(), CellNetworks()}) {
      for (NetworkInfo& info : family) networks->push_back(std::move(info));
    }
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
  for (const Family family : kFamilies) {
    absl::StatusOr<Network> network = family(options);
    if (!absl::IsNotFound(network.status())) return network;
  }
  return UnknownName(options.name);
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

}  // namespace stowage
