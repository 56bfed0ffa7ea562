#include "proto/codec/codec.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec_problem.h"
#include "proto/codec/enum_map.h"
#include "proto/codec/field_path.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kMaxNameLength = 256;

constexpr EnumMap<v1::Duplex, Duplex, 3> kDuplexes{{
    {v1::DUPLEX_UNSPECIFIED, Duplex::kUnspecified},
    {v1::DUPLEX_HALF, Duplex::kHalf},
    {v1::DUPLEX_FULL, Duplex::kFull},
}};

constexpr EnumMap<v1::CostSource, CostSource, 4> kCostSources{{
    {v1::COST_SOURCE_UNSPECIFIED, CostSource::kUnspecified},
    {v1::COST_SOURCE_MEASURED, CostSource::kMeasured},
    {v1::COST_SOURCE_MODELLED, CostSource::kModelled},
    {v1::COST_SOURCE_BYTES_ONLY, CostSource::kBytesOnly},
}};

void WriteDevice(const Device& device, v1::Device* out) {
  out->set_model(device.model);
  out->set_framework(device.framework);
  out->set_math_settings(device.math_settings);
  out->set_allocation_granularity_bytes(device.allocation_granularity.value());
  out->set_bandwidth_class(device.bandwidth_class);
  out->set_duplex(ToWire(kDuplexes, device.duplex));
  out->set_host_memory_bytes(device.host_memory.value());
  out->set_to_host_bytes_per_second(device.to_host_bytes_per_second);
  out->set_to_device_bytes_per_second(device.to_device_bytes_per_second);
  out->set_to_host_latency_ns(device.to_host_latency.value());
  out->set_to_device_latency_ns(device.to_device_latency.value());
  out->set_memory_bytes(device.memory.value());
}

absl::StatusOr<Device> ReadDevice(const v1::Device& message) {
  Device device;
  device.model = message.model();
  device.framework = message.framework();
  device.math_settings = message.math_settings();
  const int64_t granularity = message.allocation_granularity_bytes();
  device.allocation_granularity = Bytes(granularity == 0 ? 1 : granularity);
  device.bandwidth_class = message.bandwidth_class();
  device.host_memory = Bytes(message.host_memory_bytes());
  device.to_host_bytes_per_second = message.to_host_bytes_per_second();
  device.to_device_bytes_per_second = message.to_device_bytes_per_second();
  device.to_host_latency = Nanos(message.to_host_latency_ns());
  device.to_device_latency = Nanos(message.to_device_latency_ns());
  device.memory = Bytes(message.memory_bytes());
  absl::Status status = FromWire(kDuplexes, "device.duplex", message.duplex(), &device.duplex);
  if (!status.ok()) return status;
  status = ValidateDevice(device);
  if (!status.ok()) return status;
  return device;
}

absl::StatusOr<Problem> MakeGraph(absl::StatusOr<GraphSpec> spec) {
  if (!spec.ok()) return spec.status();
  return Graph::Create(*std::move(spec));
}

absl::StatusOr<Problem> ReadProblem(const v1::Profile& message) {
  switch (message.problem_case()) {
    case v1::Profile::kChain:
      return Chain::Create(ReadChain(message.chain(), message.name()));
    case v1::Profile::kGraph:
      return MakeGraph(ReadGraph(message.graph(), message.name()));
    case v1::Profile::kDag:
      return MakeGraph(ReadDag(message.dag(), message.name()));
    case v1::Profile::PROBLEM_NOT_SET:
      break;
  }
  return FieldError("problem", "unset", "exactly one of chain, graph and dag must be set");
}

// Names of fields are relative to the profile.
absl::StatusOr<Profile> ReadProfile(const v1::Profile& message) {
  if (message.name().size() > kMaxNameLength) {
    return FieldError(
        "name", absl::StrCat(message.name().substr(0, 32), "..."),
        absl::StrCat("must have at most ", kMaxNameLength, " bytes, has ", message.name().size()));
  }
  CostSource cost_source = CostSource::kUnspecified;
  absl::Status status = FromWire(kCostSources, "cost_source", message.cost_source(), &cost_source);
  if (!status.ok()) return status;
  absl::StatusOr<Device> device = ReadDevice(message.device());
  if (!device.ok()) return device.status();
  absl::StatusOr<Problem> problem = ReadProblem(message);
  if (!problem.ok()) return problem.status();
  return Profile{message.name(), *std::move(device), *std::move(problem), cost_source};
}

}  // namespace

v1::Profile ToProto(const Profile& profile) {
  v1::Profile message;
  message.set_name(profile.name);
  WriteDevice(profile.device, message.mutable_device());
  switch (KindOf(profile.problem)) {
    case ProblemKind::kChain:
      WriteChain(std::get<Chain>(profile.problem), message.mutable_chain());
      break;
    case ProblemKind::kGraph:
      WriteGraph(std::get<Graph>(profile.problem), message.mutable_graph());
      break;
    case ProblemKind::kDag:
      WriteDag(std::get<Graph>(profile.problem), message.mutable_dag());
      break;
  }
  message.set_cost_source(ToWire(kCostSources, profile.cost_source));
  return message;
}

absl::StatusOr<Profile> FromProto(const v1::Profile& message) {
  absl::StatusOr<Profile> profile = ReadProfile(message);
  if (!profile.ok()) return UnderField("profile.", profile.status());
  return profile;
}

}  // namespace stowage
