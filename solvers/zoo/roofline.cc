#include "solvers/zoo/roofline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/zoo/network_builder.h"

namespace stowage {
namespace {

constexpr double kNanosASecond = 1e9;

struct Work {
  double flops = 0;
  double bytes = 0;
  int kernels = 0;
};

struct OpWork {
  Work forward;
  Work backward;
};

double Number(Bytes bytes) { return static_cast<double>(bytes.value()); }

// A multiplication and an addition per weight and output element that it takes part in.
double MatrixFlops(const Network& network, const NetworkOp& op) {
  const auto outputs = static_cast<double>(op.elements());
  if (op.kind == OpKind::kMatmul) {
    return 2 * outputs * static_cast<double>(network.ops[op.inputs.front()].shape.back());
  }
  const int64_t columns = op.kind == OpKind::kConv2d ? op.shape[1] : op.shape.back();
  const int64_t weights_per_output = op.parameters.front() / columns;
  return 2 * outputs * static_cast<double>(weights_per_output);
}

// `needs_input_gradient`: whether the op before has something to train.
OpWork WorkOf(const Network& network, const NetworkOp& op, bool needs_input_gradient) {
  const double out = Number(op.bytes);
  const double extra = Number(RulesOf(op).extra);
  double in = 0;
  for (const size_t input : op.inputs) in += Number(network.ops[input].bytes);
  switch (op.kind) {
    case OpKind::kInput:
    case OpKind::kFlatten:
    case OpKind::kIdentity:
      return {};
    case OpKind::kSlice:
      return {{}, {0, in + out, 1}};
    case OpKind::kConv2d:
    case OpKind::kLinear:
    case OpKind::kMatmul: {
      const double flops = MatrixFlops(network, op);
      const double traffic = in + out + Number(op.parameter_bytes());
      // One product for each operand's gradient.
      const int products = needs_input_gradient ? 2 : 1;
      return {{flops, traffic, 1}, {products * flops, products * traffic, products}};
    }
    // Two products, each score by itself; the backward makes the scores again and five products in all.
    case OpKind::kAttention: {
      const double flops =
          4 * static_cast<double>(op.elements()) * static_cast<double>(op.shape[1]);
      return {{flops, in + out + extra, 1}, {2.5 * flops, 2 * (in + out), 2}};
    }
    // Reads its input for the statistics and again to apply them; both gradients likewise.
    case OpKind::kBatchNorm:
    case OpKind::kLayerNorm:
      return {{0, 3 * in, 2}, {0, 5 * in, 2}};
    case OpKind::kRelu:
    case OpKind::kGelu:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return {{0, in + out, 1}, {0, 2 * out + in, 1}};
    case OpKind::kMaxPool:
    case OpKind::kDropout:
      return {{0, in + out + extra, 1}, {0, in + out + extra, 1}};
    case OpKind::kAvgPool:
    case OpKind::kAdaptiveAvgPool:
    case OpKind::kGlobalAvgPool:
    case OpKind::kTranspose:
    case OpKind::kNllLoss:
      return {{0, in + out, 1}, {0, in + out, 1}};
    case OpKind::kAdd:
    case OpKind::kCat:
      return {{0, in + out, 1}, {}};
    case OpKind::kEmbedding:
      return {{0, in + 2 * out, 1}, {0, Number(op.parameter_bytes()) + 2 * out, 2}};
  }
  return {};
}

// Gradients of a tensor that several ops read are added up.
Work GradientSum(const NetworkOp& read) { return {0, 3 * Number(read.bytes), 1}; }

double SecondsFor(const Work& work, const DeviceModel& device) {
  const double arithmetic =
      work.flops / (device.peak_flops_per_second * device.arithmetic_efficiency);
  const double traffic = work.bytes / (device.peak_bytes_per_second * device.bandwidth_efficiency);
  const double overhead = static_cast<double>(device.kernel_overhead.value()) / kNanosASecond;
  return std::max(arithmetic, traffic) + overhead * work.kernels;
}

Nanos RoundUp(double seconds) {
  const double nanos = std::ceil(seconds * kNanosASecond);
  return Nanos(nanos < static_cast<double>(kMaxTimeTotal) ? static_cast<int64_t>(nanos)
                                                          : kMaxTimeTotal);
}

absl::Status CheckRange(const char* field, double value, double most) {
  if (value > 0 && value <= most) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat(value),
      std::isinf(most) ? std::string("must be > 0") : absl::StrCat("must be in (0, ", most, "]"));
}

}  // namespace

const DeviceModel& ModelledV100() {
  static const auto* const kModel =
      new DeviceModel{"V100 16 GB", 14e12, 900e9, 0.9, 0.85, Nanos(5000), Bytes(int64_t{16} << 30)};
  return *kModel;
}

absl::Status ValidateDeviceModel(const DeviceModel& model) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  if (model.kernel_overhead < Nanos(0)) {
    return FieldError("device.kernel_overhead_ns", model.kernel_overhead.value(), "must be >= 0");
  }
  for (const absl::Status& status :
       {CheckRange("device.peak_flops_per_second", model.peak_flops_per_second, kNoLimit),
        CheckRange("device.peak_bytes_per_second", model.peak_bytes_per_second, kNoLimit),
        CheckRange("device.arithmetic_efficiency", model.arithmetic_efficiency, 1),
        CheckRange("device.bandwidth_efficiency", model.bandwidth_efficiency, 1)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Device DescribeModel(const DeviceModel& model) {
  Device device;
  device.model = absl::StrCat("modelled ", model.name);
  device.framework = "none";
  device.math_settings = "float32";
  device.memory = model.memory;
  return device;
}

OpTimes& OpTimes::operator+=(const OpTimes& more) {
  forward = std::min(forward + more.forward, Nanos(kMaxTimeTotal));
  backward = std::min(backward + more.backward, Nanos(kMaxTimeTotal));
  return *this;
}

std::vector<OpTimes> ModelledTimes(const Network& network, const DeviceModel& device) {
  const size_t count = network.ops.size();
  std::vector<OpTimes> times(count);
  std::vector<bool> read_later(count, false);
  for (size_t i = count; i-- > 0;) {
    const NetworkOp& op = network.ops[i];
    const OpWork work = WorkOf(network, op, i > 1);
    double backward = SecondsFor(work.backward, device);
    for (const size_t input : op.inputs) {
      if (read_later[input]) backward += SecondsFor(GradientSum(network.ops[input]), device);
      read_later[input] = true;
    }
    times[i] = {RoundUp(SecondsFor(work.forward, device)), RoundUp(backward)};
  }
  return times;
}

namespace {

// Of the weight that the last linear layer shares with the embedding.
Bytes TiedBytes(const Network& network) {
  if (!network.tied_embedding) return Bytes(0);
  const auto is_embedding = [](const NetworkOp& op) { return op.kind == OpKind::kEmbedding; };
  return std::find_if(network.ops.begin(), network.ops.end(), is_embedding)->parameter_bytes();
}

}  // namespace

ModelBytes BytesOfModel(const Network& network) {
  ModelBytes bytes;
  for (const NetworkOp& op : network.ops) {
    bytes.parameters += op.parameter_bytes();
    // A mean and a variance per channel.
    if (op.kind == OpKind::kBatchNorm) bytes.buffers += Bytes(2 * op.shape[1] * kFloatBytes);
  }
  bytes.tied = TiedBytes(network);
  bytes.parameters -= bytes.tied;
  bytes.trained = bytes.parameters;
  return bytes;
}

}  // namespace stowage
