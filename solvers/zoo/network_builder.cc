#include "solvers/zoo/network_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stowage {

int64_t Elements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  return elements;
}

const char* NameOf(OpKind kind) {
  // clang-format off
  static constexpr const char* kNames[] = {
      "Input", "Conv2d", "Linear", "Matmul", "BatchNorm2d", "LayerNorm", "ReLU", "GELU", "Softmax",
      "ScaledDotProductAttention", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveAvgPool2d", "Dropout", "Add", "Cat",
      "Flatten", "Identity", "Slice", "Transpose", "Embedding", "LogSoftmax", "NLLLoss"};
  // clang-format on
  static_assert(std::size(kNames) == static_cast<size_t>(OpKind::kNllLoss) + 1);
  return kNames[static_cast<size_t>(kind)];
}

int64_t NetworkOp::elements() const { return Elements(shape); }

Bytes NetworkOp::parameter_bytes() const {
  int64_t elements = 0;
  for (const int64_t parameter : parameters) elements += parameter;
  return Bytes(elements * kFloatBytes);
}

std::vector<std::string> OpNames(const Network& network) {
  std::vector<std::string> names = {"input"};
  for (const NetworkStage& stage : network.stages) {
    for (size_t i = stage.first_op; i < stage.end_op; ++i) {
      names.push_back(
          absl::StrCat(stage.name, "/", NameOf(network.ops[i].kind), "_", i - stage.first_op));
    }
  }
  return names;
}

namespace {

constexpr int64_t kIndexBytes = 8;

Bytes Floats(int64_t elements) { return Bytes(elements * kFloatBytes); }

}  // namespace

OpRules RulesOf(const NetworkOp& op) {
  OpRules rules;
  switch (op.kind) {
    case OpKind::kInput:
      break;
    case OpKind::kGlobalAvgPool:  // the backward of a mean needs the shape alone
      rules.backward_temporary = Floats(1) + Bytes(kIndexBytes);  // the divisor, in both types
      break;
    case OpKind::kLinear:
    case OpKind::kMatmul:
    case OpKind::kGelu:
    case OpKind::kEmbedding:
      rules.saves_inputs = true;
      break;
    case OpKind::kConv2d:
    case OpKind::kAvgPool:
    case OpKind::kAdaptiveAvgPool:
      rules.saves_inputs = true;
      rules.wants_dense_gradient = true;
      break;
    case OpKind::kBatchNorm:
      rules.saves_inputs = true;
      rules.extra = Floats(2 * op.shape[1]);  // mean and inverse deviation
      rules.extra_tensors = 2;
      rules.forward_temporary = Floats(2 * op.shape[1]);
      rules.backward_temporary = op.bytes;  // the CPU kernel makes its result twice
      break;
    case OpKind::kLayerNorm:
      rules.saves_inputs = true;
      rules.extra = Floats(2 * op.elements() / op.shape.back());
      rules.extra_tensors = 2;
      break;
    case OpKind::kAttention:
      rules.saves_inputs = true;
      rules.saves_output = true;
      rules.extra = Floats(op.elements() / op.shape.back());  // of each row, the scores' sum
      break;
    case OpKind::kRelu:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      rules.saves_output = true;
      break;
    case OpKind::kMaxPool:
      rules.saves_inputs = true;
      rules.extra = Bytes(op.elements() * kIndexBytes);
      rules.wants_dense_gradient = true;
      break;
    case OpKind::kDropout:
      rules.extra = op.bytes;  // the mask, already scaled
      break;
    case OpKind::kAdd:
    case OpKind::kCat:
    case OpKind::kFlatten:
    case OpKind::kIdentity:
      rules.passes_gradient = true;
      break;
    case OpKind::kSlice:  // its backward fills a tensor of its own with zeros around it
    case OpKind::kTranspose:
      break;
    case OpKind::kNllLoss:
      rules.saves_inputs = true;
      rules.extra = Floats(1);  // the total weight
      break;
  }
  return rules;
}

namespace {

// Sums over all ops of the largest network stay within 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 48;

bool IsSmallEnough(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 1 || dimension > kMaxElements / elements) return false;
    elements *= dimension;
  }
  return true;
}

}  // namespace

NetworkBuilder::NetworkBuilder(std::string name, Shape input, int64_t element_bytes) {
  network_.name = std::move(name);
  AddOp(OpKind::kInput, {}, std::move(input));
  NetworkOp& op = network_.ops.back();
  op.bytes = Bytes(op.elements() * element_bytes);
}

// Their channels may differ.
void NetworkBuilder::RequireSameSize(size_t x, size_t y) {
  const Shape& a = shape(x);
  const Shape& b = shape(y);
  for (size_t dimension = 2; dimension < a.size(); ++dimension) {
    if (a[dimension] == b[dimension]) continue;
    Fail(absl::StrCat("images of ", absl::StrJoin(a, " x "), " and ", absl::StrJoin(b, " x "),
                      " cannot be joined: the size of the input does not halve evenly"));
    return;
  }
}

void NetworkBuilder::Fail(const std::string& message) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(network_.name, ": ", message));
  }
}

size_t NetworkBuilder::AddOp(OpKind kind, std::vector<size_t> inputs, Shape shape,
                             std::vector<int64_t> parameters) {
  if (!IsSmallEnough(shape)) {
    Fail(absl::StrCat("a tensor of [", absl::StrJoin(shape, ", "),
                      "] elements: every dimension must be >= 1 and the product <= 2^48"));
    // What follows is not used: any shape of the same rank keeps the arithmetic defined.
    for (int64_t& dimension : shape) dimension = 1;
  }
  NetworkOp op;
  op.kind = kind;
  op.inputs = std::move(inputs);
  op.shape = std::move(shape);
  op.bytes = Bytes(op.elements() * kFloatBytes);
  op.parameters = std::move(parameters);
  for (const int64_t parameter : op.parameters) {
    if (parameter > kMaxElements) Fail("a parameter beyond 2^48 elements");
  }
  network_.ops.push_back(std::move(op));
  return last();
}

size_t NetworkBuilder::Slide(OpKind kind, size_t x, int64_t channels, const Window& window,
                             std::vector<int64_t> parameters) {
  const Shape& image = shape(x);
  const int64_t window_height = (window.height - 1) * window.dilation + 1;
  const int64_t window_width = (window.width - 1) * window.dilation + 1;
  int64_t height = image[2] + 2 * window.pad_height - window_height;
  int64_t width = image[3] + 2 * window.pad_width - window_width;
  if (height < 0 || width < 0) {
    Fail(absl::StrCat("an image of ", image[2], " x ", image[3], " is too small for a window of ",
                      window_height, " x ", window_width));
    height = width = 0;
  }
  const size_t op = AddOp(
      kind, {x},
      {image[0], channels, height / window.stride_height + 1, width / window.stride_width + 1},
      std::move(parameters));
  network_.ops[op].window = window;
  return op;
}

size_t NetworkBuilder::Conv2d(size_t x, int64_t channels, const Window& window, bool bias) {
  std::vector<int64_t> parameters = {channels * this->channels(x) * window.height * window.width};
  if (bias) parameters.push_back(channels);
  return Slide(OpKind::kConv2d, x, channels, window, std::move(parameters));
}

size_t NetworkBuilder::LayerNorm(size_t x) {
  const int64_t width = shape(x).back();
  return AddOp(OpKind::kLayerNorm, {x}, shape(x), {width, width});
}

size_t NetworkBuilder::Relu(size_t x) {
  const size_t op = ReluCopy(x);
  network_.ops[op].in_place = true;
  return op;
}

size_t NetworkBuilder::Add(size_t x, size_t y) {
  RequireSameSize(x, y);
  return AddOp(OpKind::kAdd, {x, y}, shape(x));
}

size_t NetworkBuilder::AddInPlace(size_t x, size_t y) {
  const size_t op = Add(x, y);
  network_.ops[op].in_place = true;
  return op;
}

size_t NetworkBuilder::Cat(const std::vector<size_t>& parts) {
  Shape shape = this->shape(parts.front());
  shape[1] = 0;
  for (const size_t part : parts) {
    RequireSameSize(parts.front(), part);
    shape[1] += channels(part);
  }
  return AddOp(OpKind::kCat, parts, std::move(shape));
}

size_t NetworkBuilder::Flatten(size_t x) {
  const int64_t batch = shape(x)[0];
  return AddOp(OpKind::kFlatten, {x}, {batch, Elements(shape(x)) / batch});
}

size_t NetworkBuilder::Slice(size_t x) {
  const Shape& image = shape(x);
  return AddOp(OpKind::kSlice, {x}, {image[0], image[1], image[2] - 1, image[3] - 1});
}

size_t NetworkBuilder::Linear(size_t x, int64_t features) {
  Shape shape = this->shape(x);
  const int64_t weights = shape.back() * features;
  shape.back() = features;
  return AddOp(OpKind::kLinear, {x}, std::move(shape), {weights, features});
}

size_t NetworkBuilder::Matmul(size_t x, size_t y, int64_t columns) {
  Shape shape = this->shape(x);
  shape.back() = columns;
  return AddOp(OpKind::kMatmul, {x, y}, std::move(shape));
}

size_t NetworkBuilder::Embedding(size_t x, int64_t vocabulary, int64_t width) {
  Shape shape = this->shape(x);
  shape.push_back(width);
  return AddOp(OpKind::kEmbedding, {x}, std::move(shape), {vocabulary * width});
}

void NetworkBuilder::EndStage(std::string name, std::string op_kind) {
  const size_t end = network_.ops.size();
  for (size_t op = stage_start_; op < end; ++op) {
    for (const size_t input : network_.ops[op].inputs) {
      if (input + 1 < stage_start_) Fail("stage " + name + " reads more than its input");
    }
  }
  network_.stages.push_back({std::move(name), std::move(op_kind), stage_start_, end});
  stage_start_ = end;
}

absl::StatusOr<Network> NetworkBuilder::Build() && {
  const size_t scores = AddOp(OpKind::kLogSoftmax, {last()}, shape(last()));
  AddOp(OpKind::kNllLoss, {scores}, {1});
  EndStage("loss", "cross_entropy");
  if (!status_.ok()) return status_;
  return std::move(network_);
}

}  // namespace stowage
