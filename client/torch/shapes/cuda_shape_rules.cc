#include "client/torch/shapes/cuda_shape_rules.h"

#include <ATen/AccumulateType.h>
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "client/torch/base/torch_version.h"
#include "client/torch/shapes/shape_rules.h"

namespace stowage {
namespace {

using Arguments = std::vector<c10::IValue>;
using Made = std::vector<c10::IValue>;

// cuDNN has kernels for channels last of images and of volumes since then.
constexpr long kCudnnOfChannelsLast = 8005;

using CudaRule = Made (*)(const Arguments& arguments, const CudaKernels& kernels);

const at::Tensor& Contiguously(const c10::IValue& argument, const std::string& name) {
  const at::Tensor& tensor = argument.toTensor();
  TORCH_CHECK(tensor.is_contiguous(), name,
              " of a tensor that is not contiguous has no layout that shapes tell on a GPU");
  return tensor;
}

at::MemoryFormat LayoutOf(const at::Tensor& tensor) { return tensor.suggest_memory_format(); }

at::TensorOptions SumsOf(const at::Tensor& input) {
  return input.options().dtype(at::toAccumulateType(input.scalar_type(), /*is_cuda=*/true));
}

// What CUDA makes as the CPU does: the source is the same, or comes to the same.
Made AsOnCpu(const std::string& name, const Arguments& a) {
  const std::vector<at::Tensor> made = FindShapeRule(name)(a);
  return {made.begin(), made.end()};
}

// The layout of a convolution is the input's or the weight's. Where it is channels last, that is so if cuDNN's kernel is taken,
// and other kernels differ.
void CheckConvolutionLayout(const std::string& name, const at::Tensor& input,
                            const at::Tensor& weight, const Arguments& a, size_t stride,
                            const CudaKernels& kernels) {
  constexpr auto kFirst = at::MemoryFormat::Contiguous;
  if (LayoutOf(input) == kFirst && LayoutOf(weight) == kFirst) return;
  const auto is = [&](at::ScalarType type) {
    return input.scalar_type() == type || weight.scalar_type() == type;
  };
  const std::vector<int64_t> strides = a[stride].toIntVector();
  const std::vector<int64_t> output_padding = a[stride + 4].toIntVector();
  bool pads_little = true;
  for (size_t d = 0; d < output_padding.size(); ++d) {
    pads_little = pads_little && output_padding[d] < strides[std::min(d, strides.size() - 1)];
  }
  const bool is_cudnns = kernels.cudnn >= kCudnnOfChannelsLast && !is(at::kDouble) &&
                         (kernels.convolves_bfloat16 || !is(at::kBFloat16)) && pads_little &&
                         input.numel() <= std::numeric_limits<int32_t>::max();
  TORCH_CHECK(
      is_cudnns, name,
      " of channels last has a layout that shapes tell on a GPU only where cuDNN convolves");
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Made CudaConvolution(const Arguments& a, const CudaKernels& kernels) {
  const std::string name = "aten::convolution";
  CheckConvolutionLayout(name, a[0].toTensor(), a[1].toTensor(), a, 3, kernels);
  return AsOnCpu(name, a);
}

// (gradient, input, weight, bias_sizes, stride, ..., output_mask)
Made CudaConvolutionBackward(const Arguments& a, const CudaKernels& kernels) {
  const std::string name = "aten::convolution_backward";
  CheckConvolutionLayout(name, a[1].toTensor(), a[2].toTensor(), a, 4, kernels);
  return AsOnCpu(name, a);
}

// (input, weight, bias, mean, variance, training, momentum, epsilon): mean and deviation are kept also where they are those
// that were given.
Made CudaBatchNorm(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = Contiguously(a[0], "aten::native_batch_norm");
  const at::TensorOptions sums = SumsOf(input);
  return {at::empty(input.sizes(), input.options()), at::empty({input.size(1)}, sums),
          at::empty({input.size(1)}, sums)};
}

// (input, weight, bias, mean, variance, training, momentum, epsilon): what cuDNN keeps in reserve is nothing, unless channels
// are last.
Made CudnnBatchNorm(const Arguments& a, const CudaKernels&) {
  const std::string name = "aten::cudnn_batch_norm";
  const bool training = a[5].toBool();
  const at::Tensor input = training ? Contiguously(a[0], name) : a[0].toTensor();
  const int64_t kept = training ? input.size(1) : 0;
  const at::TensorOptions options = a[1].toTensor().options();
  return {at::empty_like(input, input.options(), LayoutOf(input)), at::empty({kept}, options),
          at::empty({kept}, options), at::empty({0}, input.options().dtype(at::kByte))};
}

// (input, gradient, weight, ...): of all three, whoever asks.
Made CudnnBatchNormBackward(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = a[0].toTensor();
  const at::Tensor weight = a[2].toTensor();
  return {at::empty(input.sizes(), input.options(), LayoutOf(input)),
          at::empty(weight.sizes(), weight.options()), at::empty(weight.sizes(), weight.options())};
}

// (input, normalized_shape, weight, bias, epsilon)
Made CudaLayerNorm(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = a[0].toTensor();
  std::vector<int64_t> sizes = input.sizes().vec();
  std::fill(sizes.end() - static_cast<std::ptrdiff_t>(a[1].toIntVector().size()), sizes.end(), 1);
  return {at::empty(input.sizes(), input.options()), at::empty(sizes, SumsOf(input)),
          at::empty(sizes, SumsOf(input))};
}

// (condition, input, other)
Made CudaWhere(const Arguments& a, const CudaKernels&) {
  const std::string name = "aten::where.self";
  for (const c10::IValue& argument : a) Contiguously(argument, name);
  return AsOnCpu(name, a);
}

// (input, share, train): one that is not in training copies, and says that all is left.
Made CudaDropout(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = a[0].toTensor();
  return {at::empty_like(input), at::empty_like(input, input.options().dtype(at::kBool))};
}

// (gradient, mask, scale)
Made CudaDropoutBackward(const Arguments& a, const CudaKernels&) {
  const at::Tensor gradient = a[0].toTensor();
  return {at::empty_like(gradient, gradient.options(), LayoutOf(gradient))};
}

// (input, share, generator)
Made CudaFusedDropout(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = a[0].toTensor();
  return {at::empty_like(input), at::empty_like(input, input.options().dtype(at::kByte))};
}

// (input): its backward reads the input alone.
Made CudaLogSigmoid(const Arguments& a, const CudaKernels&) {
  const at::Tensor input = a[0].toTensor();
  return {at::empty_like(input), at::empty({0}, input.options())};
}

// What attention keeps of random numbers is of other types, and elsewhere, before: those are refused.
#if STOWAGE_TORCH_AT_LEAST(2, 7)
at::Tensor RowsBeforeHeads(const at::Tensor& heads_first) {
  const at::Tensor rows_first = heads_first.transpose(1, 2);
  return at::empty(rows_first.sizes(), rows_first.options()).transpose(1, 2);
}

// In the order in which it lies in memory.
at::Tensor RowsAsTheyLie(const at::Tensor& heads_first) {
  return at::empty_like(heads_first.transpose(1, 2)).transpose(1, 2);
}

// (query, key, value, dropout, causal, wants mask, scale): of {batch, heads, rows, width}; a sum for each row, and random
// state whether it draws or not.
Made FlashAttentionOfCuda(const Arguments& a, const CudaKernels&) {
  const at::Tensor query = a[0].toTensor();
  const at::Tensor key = a[1].toTensor();
  TORCH_CHECK(query.size(1) == key.size(1) && query.size(3) % 8 == 0 && !a[5].toBool(),
              "aten::_scaled_dot_product_flash_attention with groups of heads, a width that is no "
              "multiple of 8 or a mask to look at makes what shapes do not tell");
  const at::TensorOptions state = query.options().dtype(at::kUInt64);
  return {RowsAsTheyLie(query),
          at::empty({query.size(0), query.size(1), query.size(2)}, SumsOf(query)),
          at::Tensor(),
          at::Tensor(),
          query.size(2),
          key.size(2),
          at::empty({2}, state),
          at::empty({}, state),
          at::empty({0}, query.options())};
}

// (gradient, query, key, value, ...)
Made FlashAttentionBackwardOfCuda(const Arguments& a, const CudaKernels&) {
  return {RowsAsTheyLie(a[1].toTensor()), RowsAsTheyLie(a[2].toTensor()),
          RowsAsTheyLie(a[3].toTensor())};
}

// (query, key, value, bias, for a backward, dropout, causal, scale): a sum for each row, in tiles of 32, and random state on
// the host.
Made EfficientAttention(const Arguments& a, const CudaKernels&) {
  const at::Tensor query = a[0].toTensor();
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes[3] = a[2].toTensor().size(3);
  const int64_t tiled = a[4].toBool() ? (query.size(2) + 31) / 32 * 32 : 0;
  return {RowsBeforeHeads(at::empty(sizes, query.options())),
          at::empty({query.size(0), query.size(1), tiled}, SumsOf(query)),
          at::empty({}, at::dtype(at::kLong)), at::empty({}, at::dtype(at::kLong))};
}

// (gradient, query, key, value, bias, ..., mask, causal, scale): rows of the bias's gradient are aligned to 16.
Made EfficientAttentionBackward(const Arguments& a, const CudaKernels&) {
  Made made;
  for (const size_t i : {1, 2, 3}) made.emplace_back(RowsBeforeHeads(a[i].toTensor()));
  at::Tensor of_bias;
  if (a[10].toBoolList().get(3)) {
    const at::Tensor bias = a[4].toTensor();
    std::vector<int64_t> sizes = bias.sizes().vec();
    sizes.back() = (sizes.back() + 15) / 16 * 16;
    of_bias = at::empty(sizes, bias.options()).slice(-1, 0, bias.size(-1));
  }
  made.emplace_back(of_bias);
  return made;
}
#endif

std::unordered_map<std::string, CudaRule> AttentionRules() {
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  return {
      {"aten::_scaled_dot_product_flash_attention", FlashAttentionOfCuda},
      {"aten::_scaled_dot_product_flash_attention_backward", FlashAttentionBackwardOfCuda},
      {"aten::_scaled_dot_product_efficient_attention", EfficientAttention},
      {"aten::_scaled_dot_product_efficient_attention_backward", EfficientAttentionBackward},
  };
#else
  return {};
#endif
}

const std::unordered_map<std::string, CudaRule>& CudaRules() {
  static const auto* const rules = [] {
    auto* const all = new std::unordered_map<std::string, CudaRule>{
        {"aten::convolution", CudaConvolution},
        {"aten::convolution_backward", CudaConvolutionBackward},
        {"aten::native_batch_norm", CudaBatchNorm},
        {"aten::cudnn_batch_norm", CudnnBatchNorm},
        {"aten::cudnn_batch_norm_backward", CudnnBatchNormBackward},
        {"aten::native_layer_norm", CudaLayerNorm},
        {"aten::where.self", CudaWhere},
        {"aten::native_dropout", CudaDropout},
        {"aten::native_dropout_backward", CudaDropoutBackward},
        {"aten::_fused_dropout", CudaFusedDropout},
        {"aten::_masked_scale", CudaDropoutBackward},
        {"aten::log_sigmoid_forward", CudaLogSigmoid},
    };
    all->merge(AttentionRules());
    return all;
  }();
  return *rules;
}

constexpr size_t kNoArgument = SIZE_MAX;

// Operations for which the rules of the CPU's kernels hold: those of which LibTorch has one source for both, and those of CUDA
// that allocate alike. Where layouts differ, they hold while that argument is contiguous.
const std::unordered_map<std::string, size_t>& RulesOfBoth() {
  static const auto* const rules = new std::unordered_map<std::string, size_t>{
      {"aten::native_batch_norm_backward", 1},
      {"aten::native_layer_norm_backward", kNoArgument},
      {"aten::native_group_norm", 0},
      {"aten::native_group_norm_backward", 1},
      {"aten::_adaptive_avg_pool2d", kNoArgument},
      {"aten::_adaptive_avg_pool2d_backward", kNoArgument},
      {"aten::_adaptive_avg_pool3d", 0},
      {"aten::_adaptive_avg_pool3d_backward", 1},
      {"aten::embedding", kNoArgument},
      {"aten::embedding_dense_backward", kNoArgument},
      {"aten::index_select", kNoArgument},
      {"aten::nll_loss2d_forward", kNoArgument},
      {"aten::nll_loss2d_backward", kNoArgument},
      {"aten::log_sigmoid_backward", kNoArgument},
      {"aten::binary_cross_entropy", kNoArgument},
      {"aten::binary_cross_entropy_backward", kNoArgument},
      {"aten::binary_cross_entropy_with_logits", kNoArgument},
      {"aten::huber_loss", kNoArgument},
      {"aten::huber_loss_backward", kNoArgument},
      {"aten::mse_loss_backward", kNoArgument},
      {"aten::smooth_l1_loss_backward", kNoArgument},
      {"aten::hardtanh", kNoArgument},
      {"aten::hardtanh_backward", kNoArgument},
      {"aten::relu", kNoArgument},
      {"aten::hardswish", kNoArgument},
      {"aten::hardswish_backward", kNoArgument},
      {"aten::flip", kNoArgument},
      {"aten::roll", kNoArgument},
  };
  return *rules;
}

}  // namespace

std::optional<std::vector<c10::IValue>> MakeAsCuda(const std::string& name,
                                                   const std::vector<c10::IValue>& arguments,
                                                   const CudaKernels& kernels) {
  const auto own = CudaRules().find(name);
  if (own != CudaRules().end()) return own->second(arguments, kernels);
  const auto both = RulesOfBoth().find(name);
  if (both == RulesOfBoth().end()) return std::nullopt;
  if (both->second != kNoArgument) Contiguously(arguments[both->second], name);
  return AsOnCpu(name, arguments);
}

bool IsComposedOnMeta(const std::string& name) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::native_layer_norm", "aten::native_group_norm",
      "aten::_scaled_dot_product_attention_forward", "aten::_fused_rms_norm", "aten::_ctc_loss"};
  return names->count(name) > 0;
}

}  // namespace stowage
