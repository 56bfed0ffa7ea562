#include "solvers/model/canonical.h"

#include <cstddef>
#include <optional>

#include "solvers/model/transfer_model.h"

namespace stowage {
namespace {

constexpr char kMagic[] = "STWG";

enum ProblemTag : int64_t { kChainTag = 1, kGraphTag = 2, kDagTag = 3 };

// Several booleans as the bits of one integer, in the order given.
int64_t Flags(std::initializer_list<bool> bits) {
  int64_t value = 0;
  int shift = 0;
  for (const bool bit : bits) value |= static_cast<int64_t>(bit) << shift++;
  return value;
}

void WriteOptions(const KeyOptions& options, CanonicalWriter* out) {
  out->String(options.tenant);
  out->Integer(static_cast<int64_t>(options.objective));
  out->String(options.solver);
  out->Integer(options.slots);
}

// A stated class goes before a measured link.
int32_t LinkClass(const Device& device, bool recompute_only) {
  if (device.bandwidth_class != 0 || recompute_only) return device.bandwidth_class;
  const std::optional<TransferModel> transfers = TransfersOf(device);
  return transfers ? BandwidthClassOf(*transfers) : 0;
}

void WriteEnvironment(const Device& device, bool recompute_only, CanonicalWriter* out) {
  out->String(device.model);
  out->String(device.framework);
  out->String(device.math_settings);
  out->Integer(device.allocation_granularity.value());
  out->Integer(LinkClass(device, recompute_only));
  out->Integer(static_cast<int64_t>(device.duplex));
  out->Integer(recompute_only ? 0 : device.host_memory.value());
}

void WriteStage(const Stage& stage, CanonicalWriter* out) {
  out->String(stage.op_kind);
  out->Integer(stage.output.value());
  out->Integer(stage.saved.value());
  out->Integer(stage.output_gradient.value());
  out->Integer(stage.transient_parameters.value());
  const bool lists = !stage.saved_tensors.empty();
  out->Integer(Flags({stage.random, stage.stateful, stage.collective, stage.must_keep, lists}));
  if (!lists) return;
  out->Integer(static_cast<int64_t>(stage.saved_tensors.size()));
  for (const Bytes bytes : stage.saved_tensors) out->Integer(bytes.value());
}

void WriteProblem(const Chain& chain, CanonicalWriter* out) {
  out->Integer(kChainTag);
  out->Integer(chain.activation(0).value());
  out->Integer(chain.gradient(0).value());
  out->Integer(chain.length());
  for (int l = 1; l <= chain.length() + 1; ++l) WriteStage(chain.stage(l), out);
}

void WriteVertex(const Vertex& v, CanonicalWriter* out) {
  out->String(v.op_kind);
  out->Integer(v.output.value());
  out->Integer(v.output_gradient.value());
  out->Integer(v.extra_saved.value());
  out->Integer(v.transient_parameters.value());
  out->Integer(Flags({v.backward_needs_output, v.linear_multi_input, v.random, v.stateful,
                      v.collective, v.must_keep}));
  out->Integer(static_cast<int64_t>(v.alias));
  out->Integer(static_cast<int64_t>(v.inputs.size()));
  for (const GraphInput& input : v.inputs) {
    out->Integer(input.vertex);
    out->Integer(Flags({input.backward_needs}));
  }
}

void WriteNode(const Vertex& v, CanonicalWriter* out) {
  out->String(v.op_kind);
  out->Integer(v.output.value());
  out->Integer(v.transient_parameters.value());
  out->Integer(Flags({v.result, v.random, v.stateful, v.collective, v.must_keep}));
  out->Integer(static_cast<int64_t>(v.alias));
  out->Integer(static_cast<int64_t>(v.inputs.size()));
  for (const GraphInput& input : v.inputs) out->Integer(input.vertex);
}

void WriteProblem(const Graph& graph, CanonicalWriter* out) {
  out->Integer(graph.has_backwards() ? kGraphTag : kDagTag);
  out->Integer(graph.size());
  for (int p = 0; p < graph.size(); ++p) {
    graph.has_backwards() ? WriteVertex(graph.vertex(p), out) : WriteNode(graph.vertex(p), out);
  }
}

// Takes from the front what CanonicalWriter appends; false at the end of the bytes.
class CanonicalReader {
 public:
  explicit CanonicalReader(const std::string& bytes) : bytes_(bytes) {}

  bool Integer(int64_t* value) {
    if (bytes_.size() - at_ < sizeof(*value)) return false;
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(*value); ++i) {
      bits |= uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += sizeof(*value);
    *value = static_cast<int64_t>(bits);
    return true;
  }
  bool String(std::string* value) {
    int64_t size = 0;
    if (!Integer(&size) || size < 0 || static_cast<uint64_t>(size) > bytes_.size() - at_) {
      return false;
    }
    *value = bytes_.substr(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return true;
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

void CanonicalWriter::Integer(int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift));
}

void CanonicalWriter::String(const std::string& value) {
  Integer(static_cast<int64_t>(value.size()));
  bytes_ += value;
}

std::string CanonicalBytes(const Profile& profile, const KeyOptions& options) {
  CanonicalWriter out;
  out.String(kMagic);
  out.Integer(kEncodingVersion);
  WriteOptions(options, &out);
  WriteEnvironment(profile.device, options.recompute_only, &out);
  std::visit([&out](const auto& problem) { WriteProblem(problem, &out); }, profile.problem);
  return out.bytes();
}

std::optional<KeyOptions> OptionsIn(const std::string& canonical) {
  CanonicalReader in(canonical);
  std::string magic;
  int64_t version = 0, objective = 0;
  KeyOptions options;
  const bool read = in.String(&magic) && in.Integer(&version) && in.String(&options.tenant) &&
                    in.Integer(&objective) && in.String(&options.solver) &&
                    in.Integer(&options.slots);
  if (!read || magic != kMagic || version != kEncodingVersion ||
      objective != static_cast<int64_t>(Objective::kLeastTime)) {
    return std::nullopt;
  }
  return options;
}

PlanKey MakePlanKey(const Profile& profile, const KeyOptions& options) {
  return PlanKey{kEncodingVersion, Sha256(CanonicalBytes(profile, options))};
}

}  // namespace stowage
