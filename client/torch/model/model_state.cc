#include "client/torch/model/model_state.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "client/torch/base/real_operations.h"
#include "client/torch/base/torch_version.h"
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

// A contiguous tensor of the CPU, over `*bytes` if that is where the buffer is.
at::Tensor RoomFor(const at::Tensor& buffer, std::vector<char>* bytes) {
  const at::TensorOptions options = buffer.options().device(at::kCPU).requires_grad(false);
  if (!buffer.is_cpu()) return at::empty(buffer.sizes(), options.pinned_memory(buffer.is_cuda()));
  bytes->resize(static_cast<size_t>(buffer.nbytes()));
  return at::from_blob(bytes->data(), buffer.sizes(), options);
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
  state.buffers_ = buffers;
  for (const at::Tensor& buffer : buffers) {
    state.bytes_.emplace_back();
    state.copies_.push_back(RoomFor(buffer, &state.bytes_.back()));
    state.copies_.back().copy_(buffer, /*non_blocking=*/true);
  }
  return state;
}

void BufferState::Restore() const {
  const at::NoGradGuard no_grad;
  const RealOperations real;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    // variable_data has a version counter of its own; a plain copy_ would make saved tensors look
    // overwritten.
    buffers_[i].variable_data().copy_(copies_[i], /*non_blocking=*/true);
  }
}

bool operator==(const BufferState& a, const BufferState& b) {
  if (a.copies_.size() != b.copies_.size()) return false;
  for (size_t i = 0; i < a.copies_.size(); ++i) {
    const at::Tensor &x = a.copies_[i], &y = b.copies_[i];
    WaitFor(a.buffers_[i].device());
    WaitFor(b.buffers_[i].device());
    if (x.nbytes() != y.nbytes()) return false;
    if (x.nbytes() > 0 && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) != 0) return false;
  }
  return true;
}

}  // namespace stowage
