// stowage._torch: how many bytes tensors on the CPU hold, for Python, and the CPU's random numbers: their state is asked for in
// each block's forward, and as a tensor it takes an allocation, a conversion and a comparison by the dispatcher.
#include <ATen/CPUGeneratorImpl.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "client/torch/memory/thread_memory.h"
#include "client/torch/memory/tracking_allocator.h"

namespace {

// What PyTorch's generator on the CPU draws from: its engine, and a second normal number that it has made already.
struct RandomState {
  at::mt19937_data_pod engine;
  decltype(std::declval<at::CPUGeneratorImpl&>().next_float_normal_sample()) next_float;
  decltype(std::declval<at::CPUGeneratorImpl&>().next_double_normal_sample()) next_double;
};

bool operator==(const RandomState& a, const RandomState& b) {  // by field: a pod has padding
  return a.engine.seed_ == b.engine.seed_ && a.engine.left_ == b.engine.left_ &&
         a.engine.seeded_ == b.engine.seeded_ && a.engine.next_ == b.engine.next_ &&
         a.engine.state_ == b.engine.state_ && a.next_float == b.next_float &&
         a.next_double == b.next_double;
}

using SharedState = std::shared_ptr<RandomState>;

// `before` itself where nothing was drawn since.
SharedState TakeRandomState(SharedState before) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  auto* impl = generator.get<at::CPUGeneratorImpl>();
  RandomState now{impl->engine().data(), impl->next_float_normal_sample(),
                  impl->next_double_normal_sample()};
  return before != nullptr && *before == now ? before : std::make_shared<RandomState>(now);
}

void PutRandomState(const RandomState& state) {
  at::mt19937 engine;
  engine.set_data(state.engine);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  auto* impl = generator.get<at::CPUGeneratorImpl>();
  impl->set_engine(engine);
  impl->set_next_float_normal_sample(state.next_float);
  impl->set_next_double_normal_sample(state.next_double);
}

}  // namespace

// Another LibTorch than the one it was built against may lay out allocators otherwise: the package asks for this before
// anything else.
PYBIND11_MODULE(_torch, module) {
  using stowage::TrackingAllocator;
  module.attr("BUILT_WITH") = STOWAGE_BUILT_WITH_TORCH;
  module.def("install", [] { TrackingAllocator::Install(); });
  module.def("current_bytes", [] { return TrackingAllocator::Install()->current().value(); });
  module.def("take_recent_peak_bytes",
             [] { return TrackingAllocator::Install()->TakeRecentPeak().value(); });
  // Of the calling thread alone, whatever others do meanwhile.
  module.def("thread_bytes",
             [] { return stowage::HeldByThread(*TrackingAllocator::Install())->value(); });
  module.def("take_thread_peak_bytes", [] {
    const int64_t peak = stowage::ThreadPeak(*TrackingAllocator::Install())->value();
    stowage::ResetThreadPeak();
    return peak;
  });
  // For jobs, whatever takes recent peaks meanwhile.
  module.def("peak_bytes", [] { return TrackingAllocator::Install()->peak().value(); });
  module.def("reset_peak", [] { TrackingAllocator::Install()->ResetPeak(); });
  pybind11::class_<RandomState, SharedState>(module, "RandomState");
  module.def("random_state", &TakeRandomState, pybind11::arg("before") = nullptr);
  module.def("set_random_state", &PutRandomState);
}
