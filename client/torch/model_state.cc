#include "client/torch/model_state.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <mutex>

#include "client/torch/shape_scope.h"
#include "client/torch/torch_version.h"

namespace stowage {
namespace {

at::CPUGeneratorImpl* DefaultGenerator() {
  return at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

// Calls `visit` with the number and the default generator of each GPU that has been used. Generic
// lambdas: a generator has no offset before 2.1.
template <class Visit>
void ForEachGpu([[maybe_unused]] const Visit& visit) {
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  if (!at::globalContext().hasCUDA()) return;
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  for (c10::DeviceIndex i = 0; i < guard.deviceCount(); ++i) {
    // One that has no context has drawn nothing, and is not to get one by being asked.
    if (!at::detail::getCUDAHooks().hasPrimaryContext(i)) continue;
    at::Generator generator =
        at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CUDA, i));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    visit(i, &generator);
  }
#endif
}

// A contiguous tensor over memory that LibTorch did not allocate.
at::Tensor View(const std::vector<char>& bytes, const at::Tensor& like) {
  return at::from_blob(const_cast<char*>(bytes.data()), like.sizes(),
                       like.options().device(at::kCPU));
}

}  // namespace

RandomState RandomState::Capture() {
  Generator* generator = DefaultGenerator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  RandomState state;
  state.engine_ = generator->engine();
  state.float_sample_ = generator->next_float_normal_sample();
  state.double_sample_ = generator->next_double_normal_sample();
  ForEachGpu([&state](c10::DeviceIndex index, auto* gpu) {
    state.gpus_.push_back({index, gpu->current_seed(), gpu->get_offset()});
  });
  return state;
}

void RandomState::Restore() const {
  Generator* generator = DefaultGenerator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  generator->set_engine(engine_);
  generator->set_next_float_normal_sample(float_sample_);
  generator->set_next_double_normal_sample(double_sample_);
  ForEachGpu([this](c10::DeviceIndex index, auto* gpu) {
    for (const Gpu& state : gpus_) {
      if (state.index != index) continue;
      gpu->set_current_seed(state.seed);
      gpu->set_offset(state.offset);
    }
  });
}

bool operator==(const RandomState& a, const RandomState& b) {
  const at::mt19937_data_pod x = a.engine_.data();
  const at::mt19937_data_pod y = b.engine_.data();
  return x.seed_ == y.seed_ && x.left_ == y.left_ && x.seeded_ == y.seeded_ && x.next_ == y.next_ &&
         x.state_ == y.state_ && a.float_sample_ == b.float_sample_ &&
         a.double_sample_ == b.double_sample_ &&
         std::equal(a.gpus_.begin(), a.gpus_.end(), b.gpus_.begin(), b.gpus_.end(),
                    [](const RandomState::Gpu& p, const RandomState::Gpu& q) {
                      return p.index == q.index && p.seed == q.seed && p.offset == q.offset;
                    });
}

BufferState BufferState::Capture(const std::vector<at::Tensor>& buffers) {
  const at::NoGradGuard no_grad;
  const RealOperations real;
  BufferState state;
  state.buffers_ = buffers;
  for (const at::Tensor& buffer : buffers) {
    state.bytes_.emplace_back(static_cast<size_t>(buffer.nbytes()));
    View(state.bytes_.back(), buffer).copy_(buffer);
  }
  return state;
}

void BufferState::Restore() const {
  const at::NoGradGuard no_grad;
  const RealOperations real;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    // variable_data has a version counter of its own; a plain copy_ would make saved tensors look
    // overwritten.
    const at::Tensor target = buffers_[i].variable_data();
    target.copy_(View(bytes_[i], target));
  }
}

}  // namespace stowage
