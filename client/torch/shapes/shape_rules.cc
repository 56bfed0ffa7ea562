#include "client/torch/shapes/shape_rules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace stowage {
namespace {

using Arguments = std::vector<c10::IValue>;
using Results = std::vector<at::Tensor>;

at::Tensor TensorAt(const Arguments& a, size_t i) {
  return a[i].isTensor() ? a[i].toTensor() : at::Tensor();
}

// One number stands for all dimensions.
int64_t IntAt(const std::vector<int64_t>& list, int64_t dimension) {
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(dimension)];
}

bool MaskAt(const Arguments& a, size_t i, size_t bit) { return a[i].toBoolList().get(bit); }

at::Tensor IfAsked(bool asked, const at::Tensor& tensor) { return asked ? tensor : at::Tensor(); }

at::Tensor Contiguous(const at::Tensor& like) {
  return at::empty_like(like, like.options(), at::MemoryFormat::Contiguous);
}

// Channels last if either is.
at::MemoryFormat FormatOf(const at::Tensor& input, const at::Tensor& weight) {
  const at::MemoryFormat format = input.suggest_memory_format();
  return format != at::MemoryFormat::Contiguous ? format : weight.suggest_memory_format();
}

// Of mean and deviation: a norm of half precision computes in the type of its parameters.
at::TensorOptions StatisticsOf(const at::Tensor& input, const at::Tensor& parameter) {
  return parameter.defined() ? input.options().dtype(parameter.scalar_type()) : input.options();
}

template <size_t kArgument>
Results Like(const Arguments& a) {
  return {at::empty_like(TensorAt(a, kArgument))};
}

template <size_t kArgument>
Results ContiguousLike(const Arguments& a) {
  return {Contiguous(TensorAt(a, kArgument))};
}

// Of an argument's type, and like it unless another argument asks for a mean or sum.
template <size_t kArgument, size_t kReduction>
Results Loss(const Arguments& a) {
  const at::Tensor like = TensorAt(a, kArgument);
  const bool reduces = a[kReduction].toInt() != 0;
  return {reduces ? at::empty({}, like.options()) : at::empty_like(like)};
}

// (input, target, weight, reduction): the loss lies in the memory of what it is the mean or sum of.
Results BinaryCrossEntropy(const Arguments& a) {
  const at::Tensor losses = at::empty_like(TensorAt(a, 0));
  const bool reduces = a[3].toInt() != 0;
  return {reduces ? losses.as_strided({}, {}) : losses};
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Results Convolution(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const at::Tensor weight = TensorAt(a, 1);
  const std::vector<int64_t> stride = a[3].toIntVector();
  const std::vector<int64_t> padding = a[4].toIntVector();
  const std::vector<int64_t> dilation = a[5].toIntVector();
  const std::vector<int64_t> output_padding = a[7].toIntVector();
  const bool transposed = a[6].toBool();
  std::vector<int64_t> sizes = {input.size(0),
                                transposed ? weight.size(1) * a[8].toInt() : weight.size(0)};
  for (int64_t d = 0; d + 2 < input.dim(); ++d) {
    const int64_t reach = IntAt(dilation, d) * (weight.size(d + 2) - 1);
    const int64_t size = input.size(d + 2);
    const int64_t pad = 2 * IntAt(padding, d);
    sizes.push_back(transposed
                        ? (size - 1) * IntAt(stride, d) - pad + reach + IntAt(output_padding, d) + 1
                        : (size + pad - reach - 1) / IntAt(stride, d) + 1);
  }
  return {at::empty(sizes, input.options(), FormatOf(input, weight))};
}

// (gradient, input, weight, bias_sizes, ..., output_mask)
Results ConvolutionBackward(const Arguments& a) {
  const at::Tensor gradient = TensorAt(a, 0);
  const at::Tensor input = TensorAt(a, 1);
  const at::Tensor weight = TensorAt(a, 2);
  const size_t mask = a.size() - 1;
  const at::MemoryFormat format = FormatOf(input, weight);
  Results made(3);
  if (MaskAt(a, mask, 0)) made[0] = at::empty(input.sizes(), input.options(), format);
  if (MaskAt(a, mask, 1)) made[1] = at::empty(weight.sizes(), weight.options(), format);
  if (MaskAt(a, mask, 2)) made[2] = at::empty({gradient.size(1)}, gradient.options());
  return made;
}

// (input, weight, bias, mean, variance, training, momentum, epsilon)
Results BatchNorm(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const at::Tensor weight = TensorAt(a, 1);
  const at::TensorOptions options = StatisticsOf(input, weight.defined() ? weight : TensorAt(a, 3));
  const int64_t kept = a[5].toBool() ? input.size(1) : 0;
  return {at::empty_like(input, input.options(), input.suggest_memory_format()),
          at::empty({kept}, options), at::empty({kept}, options)};
}

// (gradient, input, weight, mean, variance, saved mean, saved deviation, training, epsilon, mask)
Results BatchNormBackward(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 1);
  const at::TensorOptions options = StatisticsOf(input, TensorAt(a, 2));
  Results made(3);
  if (MaskAt(a, 9, 0)) {
    made[0] = at::empty_like(input, input.options(), input.suggest_memory_format());
  }
  if (MaskAt(a, 9, 1)) made[1] = at::empty({input.size(1)}, options);
  if (MaskAt(a, 9, 2)) made[2] = at::empty({input.size(1)}, options);
  return made;
}

// (input, normalized_shape, weight, bias, epsilon)
Results LayerNorm(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const int64_t kept = input.dim() - static_cast<int64_t>(a[1].toIntVector().size());
  std::vector<int64_t> sizes = input.sizes().vec();
  std::fill(sizes.begin() + kept, sizes.end(), 1);
  const at::TensorOptions options = StatisticsOf(input, TensorAt(a, 2));
  return {Contiguous(input), at::empty(sizes, options), at::empty(sizes, options)};
}

// (gradient, input, normalized_shape, mean, deviation, weight, bias, mask)
Results LayerNormBackward(const Arguments& a) {
  Results made(3);
  if (MaskAt(a, 7, 0)) made[0] = Contiguous(TensorAt(a, 1));
  if (MaskAt(a, 7, 1)) made[1] = Contiguous(TensorAt(a, 5));
  if (MaskAt(a, 7, 2)) made[2] = Contiguous(TensorAt(a, 6));
  return made;
}

// (input, weight, bias, N, C, HxW, groups, epsilon)
Results GroupNorm(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const at::TensorOptions options = StatisticsOf(input, TensorAt(a, 1));
  const std::vector<int64_t> sizes = {a[3].toInt(), a[6].toInt()};
  return {at::empty_like(input, input.options(), input.suggest_memory_format()),
          at::empty(sizes, options), at::empty(sizes, options)};
}

// (gradient, input, mean, deviation, weight, N, C, HxW, groups, mask)
Results GroupNormBackward(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 1);
  const at::TensorOptions options = StatisticsOf(input, TensorAt(a, 4));
  const std::vector<int64_t> channels = {a[6].toInt()};
  return {IfAsked(MaskAt(a, 9, 0),
                  at::empty_like(input, input.options(), input.suggest_memory_format())),
          IfAsked(MaskAt(a, 9, 1), at::empty(channels, options)),
          IfAsked(MaskAt(a, 9, 2), at::empty(channels, options))};
}

// (input, output_size)
Results AdaptivePool(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const std::vector<int64_t> pooled = a[1].toIntVector();
  std::vector<int64_t> sizes = input.sizes().vec();
  std::copy(pooled.begin(), pooled.end(), sizes.end() - static_cast<int64_t>(pooled.size()));
  return {at::empty(sizes, input.options(), input.suggest_memory_format())};
}

// (gradient, input)
Results AdaptivePoolBackward(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 1);
  return {at::empty(input.sizes(), input.options(), input.suggest_memory_format())};
}

// (weight, indices, ...)
Results Embedding(const Arguments& a) {
  const at::Tensor weight = TensorAt(a, 0);
  std::vector<int64_t> sizes = TensorAt(a, 1).sizes().vec();
  sizes.push_back(weight.size(1));
  return {at::empty(sizes, weight.options())};
}

// (gradient, indices, rows, ...)
Results EmbeddingBackward(const Arguments& a) {
  const at::Tensor gradient = TensorAt(a, 0);
  return {at::empty({a[2].toInt(), gradient.size(-1)}, gradient.options())};
}

// (input, dimension, indices)
Results IndexSelect(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  std::vector<int64_t> sizes = input.sizes().vec();
  const int64_t dimension = at::maybe_wrap_dim(a[1].toInt(), input.dim());
  if (!sizes.empty()) sizes[static_cast<size_t>(dimension)] = TensorAt(a, 2).numel();
  return {at::empty(sizes, input.options())};
}

// (input, target, weight, reduction, ...): of images.
Results NllLoss2d(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  std::vector<int64_t> sizes;
  if (a[3].toInt() == 0) sizes = TensorAt(a, 1).sizes().vec();
  return {at::empty(sizes, input.options()), at::empty({}, input.options())};
}

// (condition, input, other)
Results Where(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 1);
  const at::Tensor other = TensorAt(a, 2);
  const auto sizes =
      at::infer_size(TensorAt(a, 0).sizes(), at::infer_size(input.sizes(), other.sizes()));
  return {at::empty(sizes, input.options().dtype(at::result_type(input, other)))};
}

// (input, share, train): what is left, and which elements are.
Results Dropout(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  const bool training = a[2].isNone() || a[2].toBool();
  return {training ? at::empty_like(input) : input,
          at::empty_like(input, input.options().dtype(at::kBool))};
}

// (input): the loss and what its backward reads.
Results LogSigmoid(const Arguments& a) {
  const at::Tensor input = TensorAt(a, 0);
  return {Contiguous(input), Contiguous(input)};
}

// Of sizes {batch, heads, rows, ...}: heads and rows lie the other way round.
at::Tensor RowsFirst(std::vector<int64_t> sizes, const at::TensorOptions& options) {
  std::swap(sizes[1], sizes[2]);
  return at::empty(sizes, options).transpose(1, 2);
}

// (query, key, value, ...): what comes out, and a sum for each row of the query.
Results FlashAttention(const Arguments& a) {
  const at::Tensor query = TensorAt(a, 0);
  const at::TensorOptions sums = query.options().dtype(at::toOpMathType(query.scalar_type()));
  return {at::empty_like(query), RowsFirst(query.sizes().slice(0, 3).vec(), sums)};
}

// (gradient, query, key, value, ...)
Results FlashAttentionBackward(const Arguments& a) {
  Results made;
  for (const size_t i : {1, 2, 3}) {
    made.push_back(RowsFirst(TensorAt(a, i).sizes().vec(), TensorAt(a, i).options()));
  }
  return made;
}

const std::unordered_map<std::string, ShapeRule>& Rules() {
  static const auto* const rules = new std::unordered_map<std::string, ShapeRule>{
      {"aten::convolution", Convolution},
      {"aten::convolution_backward", ConvolutionBackward},
      {"aten::native_batch_norm", BatchNorm},
      {"aten::native_batch_norm_backward", BatchNormBackward},
      {"aten::native_layer_norm", LayerNorm},
      {"aten::native_layer_norm_backward", LayerNormBackward},
      {"aten::native_group_norm", GroupNorm},
      {"aten::native_group_norm_backward", GroupNormBackward},
      {"aten::_adaptive_avg_pool2d", AdaptivePool},
      {"aten::_adaptive_avg_pool2d_backward", AdaptivePoolBackward},
      {"aten::_adaptive_avg_pool3d", AdaptivePool},
      {"aten::_adaptive_avg_pool3d_backward", AdaptivePoolBackward},
      {"aten::embedding", Embedding},
      {"aten::embedding_dense_backward", EmbeddingBackward},
      {"aten::index_select", IndexSelect},
      {"aten::nll_loss2d_forward", NllLoss2d},
      {"aten::nll_loss2d_backward", ContiguousLike<1>},
      {"aten::where.self", Where},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", FlashAttention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", FlashAttentionBackward},
      {"aten::native_dropout", Dropout},
      {"aten::native_dropout_backward", Like<0>},
      {"aten::log_sigmoid_forward", LogSigmoid},
      {"aten::log_sigmoid_backward", Like<0>},
      {"aten::binary_cross_entropy", BinaryCrossEntropy},
      {"aten::binary_cross_entropy_backward", Like<1>},
      {"aten::binary_cross_entropy_with_logits", Loss<1, 4>},
      {"aten::huber_loss", Loss<0, 2>},
      {"aten::huber_loss_backward", Like<1>},
      {"aten::mse_loss_backward", Like<1>},
      {"aten::smooth_l1_loss_backward", Like<1>},
      {"aten::hardtanh", Like<0>},
      {"aten::hardtanh_backward", Like<0>},
      {"aten::relu", Like<0>},
      {"aten::hardswish", Like<0>},
      {"aten::hardswish_backward", Like<0>},
      {"aten::flip", Like<0>},
      {"aten::roll", ContiguousLike<0>},
  };
  return *rules;
}

}  // namespace

ShapeRule FindShapeRule(const std::string& name) {
  const auto rule = Rules().find(name);
  return rule == Rules().end() ? nullptr : rule->second;
}

}  // namespace stowage
