#include "client/torch/model/model_state.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "client/torch/base/real_operations.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/offload/compute_copies.h"
#include "client/torch/offload/device_use.h"

namespace stowage {
namespace {

at::CPUGeneratorImpl* DefaultGenerator() {
  return at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

std::vector<at::Generator>& OtherGenerators() {
  static auto* const generators = new std::vector<at::Generator>();
  return *generators;
}

// Undefined where there is none.
at::Generator GeneratorOf(c10::Device device) {
  if (device.is_cpu()) return at::Generator();
  for (const at::Generator& generator : OtherGenerators()) {
    if (generator.device() == device) return generator;
  }
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  return at::globalContext().defaultGenerator(device);
#else
  return device.is_cuda() ? at::globalContext().defaultGenerator(device) : at::Generator();
#endif
}

// Seed and offset: what the numbers of a device's generator follow from, one by one.
using Numbers = std::array<uint64_t, 2>;

Numbers NumbersOf(const at::Generator& generator) {
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  return {generator.current_seed(), generator.get_offset()};
#else
  Numbers numbers;
  std::memcpy(numbers.data(), generator.get_state().data_ptr(), sizeof(numbers));
  return numbers;
#endif
}

void SetNumbers(at::Generator generator, const Numbers& numbers) {
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  // A seed that is set anew makes cuDNN's recurrent layers draw their dropout's state anew.
  if (generator.current_seed() != numbers[0]) generator.set_current_seed(numbers[0]);
  generator.set_offset(numbers[1]);
#else
  const at::Tensor state = at::empty({sizeof(numbers)}, at::kByte);
  std::memcpy(state.data_ptr(), numbers.data(), sizeof(numbers));
  generator.set_state(state);
#endif
}

bool IsPlainMemory(const at::Tensor& buffer) {
  return buffer.is_cpu() && IsContiguousMemory(buffer);
}

constexpr size_t kSlotAlignment = 64;

// A contiguous tensor of the CPU, in memory that no meter of tensors counts.
at::Tensor HostCopyFor(const at::Tensor& buffer) {
  const at::TensorOptions options = buffer.options().device(at::kCPU).requires_grad(false);
  if (!buffer.is_cpu()) return at::empty(buffer.sizes(), options.pinned_memory(buffer.is_cuda()));
  const auto bytes = std::make_shared<std::vector<char>>(static_cast<size_t>(buffer.nbytes()));
  return at::from_blob(
      bytes->data(), buffer.sizes(), [bytes](void*) {}, options);
}

}  // namespace

RandomState RandomState::Capture(c10::Device device) {
  Generator* generator = DefaultGenerator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  RandomState state(generator->engine());
  state.float_sample_ = generator->next_float_normal_sample();
  state.double_sample_ = generator->next_double_normal_sample();
  state.other_ = GeneratorOf(device);
  if (state.other_.defined()) {
    const std::lock_guard<std::mutex> other_lock(state.other_.mutex());
    state.numbers_ = NumbersOf(state.other_);
  }
  return state;
}

void RandomState::Restore() const {
  Generator* generator = DefaultGenerator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  generator->set_engine(engine_);
  generator->set_next_float_normal_sample(float_sample_);
  generator->set_next_double_normal_sample(double_sample_);
  if (!other_.defined()) return;
  at::Generator other = other_;
  const std::lock_guard<std::mutex> other_lock(other.mutex());
  SetNumbers(other, numbers_);
}

void RandomState::UseGenerator(at::Generator generator) {
  OtherGenerators().push_back(std::move(generator));
}

bool operator==(const RandomState& a, const RandomState& b) {
  const at::mt19937_data_pod x = a.engine_.data();
  const at::mt19937_data_pod y = b.engine_.data();
  return x.seed_ == y.seed_ && x.left_ == y.left_ && x.seeded_ == y.seeded_ && x.next_ == y.next_ &&
         x.state_ == y.state_ && a.float_sample_ == b.float_sample_ &&
         a.double_sample_ == b.double_sample_ && a.other_ == b.other_ && a.numbers_ == b.numbers_;
}

BufferState BufferState::Capture(const std::vector<at::Tensor>& buffers) {
  const at::NoGradGuard no_grad;
  const RealOperations real;
  BufferState state;
  state.kept_.reserve(buffers.size());
  size_t block_bytes = 0;
  std::optional<c10::Device> place;
  for (const at::Tensor& buffer : buffers) {
    Kept kept{buffer, at::Tensor(), state.bytes_.size(), static_cast<size_t>(buffer.nbytes())};
    if (IsPlainMemory(buffer)) {
      const auto* const data = static_cast<const char*>(buffer.data_ptr());
      state.bytes_.insert(state.bytes_.end(), data, data + kept.bytes);
    } else if (ComputeCopiesOf(buffer) != nullptr &&
               place.value_or(buffer.device()) == buffer.device()) {
      place = buffer.device();
      kept.in_host_block = true;
      kept.begin = block_bytes;
      block_bytes += (kept.bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    } else {
      kept.copy = HostCopyFor(buffer);
      kept.copy.copy_(buffer, /*non_blocking=*/true);
    }
    state.kept_.push_back(std::move(kept));
  }
  if (block_bytes > 0) {
    state.host_block_ = HostBlockFor(*place, static_cast<int64_t>(block_bytes), at::kByte);
    state.CopyHostBlock(/*to_buffers=*/false);
  }
  return state;
}

void BufferState::CopyHostBlock(bool to_buffers) const {
  if (!host_block_.defined()) return;
  std::vector<CopyPiece> pieces;
  const at::Tensor* any = nullptr;
  for (const Kept& kept : kept_) {
    if (!kept.in_host_block) continue;
    any = &kept.buffer;
    TORCH_CHECK(ComputeCopiesOf(kept.buffer) != nullptr && kept.buffer.nbytes() == kept.bytes,
                "a buffer of the model has become another in size or layout");
    void* const buffer = kept.buffer.data_ptr();
    void* const here = static_cast<char*>(host_block_.data_ptr()) + kept.begin;
    pieces.push_back(to_buffers ? CopyPiece{buffer, here, kept.bytes}
                                : CopyPiece{here, buffer, kept.bytes});
  }
  const ComputeCopies copies = ComputeCopiesOf(*any);
  copies(pieces, host_block_, any->device());
}

const void* BufferState::DataOf(const Kept& kept) const {
  if (kept.in_host_block) return static_cast<const char*>(host_block_.data_ptr()) + kept.begin;
  return kept.copy.defined() ? kept.copy.data_ptr() : bytes_.data() + kept.begin;
}

// Writes to the memory itself, or to tensors with version counters of their own: a plain copy_ would make saved tensors look
// overwritten.
void BufferState::Restore() const {
  const at::NoGradGuard no_grad;
  const RealOperations real;
  CopyHostBlock(/*to_buffers=*/true);
  for (const Kept& kept : kept_) {
    if (kept.in_host_block) continue;
    const at::Tensor& buffer = kept.buffer;
    if (kept.copy.defined()) {
      buffer.variable_data().copy_(kept.copy, /*non_blocking=*/true);
      continue;
    }
    TORCH_CHECK(IsPlainMemory(buffer) && buffer.nbytes() == kept.bytes,
                "a buffer of the model has become another in size or layout");
    if (kept.bytes > 0) std::memcpy(buffer.data_ptr(), bytes_.data() + kept.begin, kept.bytes);
  }
}

bool operator==(const BufferState& a, const BufferState& b) {
  if (a.kept_.size() != b.kept_.size()) return false;
  for (size_t i = 0; i < a.kept_.size(); ++i) {
    const BufferState::Kept &x = a.kept_[i], &y = b.kept_[i];
    WaitFor(x.buffer.device());
    WaitFor(y.buffer.device());
    if (x.bytes != y.bytes) return false;
    if (x.bytes > 0 && std::memcmp(a.DataOf(x), b.DataOf(y), x.bytes) != 0) return false;
  }
  return true;
}

}  // namespace stowage
