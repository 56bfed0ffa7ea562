// The test device for Python: a device that is not the CPU, where there is no GPU. device.py makes PyTorch's module of it.
#include <ATen/core/Generator.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "tests/client/device/block_cache.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/work_queue.h"

namespace stowage {
namespace {

std::string RandomState() {
  at::Generator generator = TestDevice::generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.data_ptr()), static_cast<size_t>(state.nbytes())};
}

void SetRandomState(const std::string& bytes) {
  at::Generator generator = TestDevice::generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  if (bytes.size() != state.nbytes()) throw std::invalid_argument("no state of this generator");
  bytes.copy(static_cast<char*>(state.data_ptr()), bytes.size());
  generator.set_state(state);
}

void Seed(uint64_t seed) {
  at::Generator generator = TestDevice::generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

WorkQueue& QueueWithId(c10::StreamId id) {
  return TestDevice::QueueOf(c10::Stream(c10::Stream::UNSAFE, kTestDevice, id));
}

pybind11::dict MemoryStats() {
  const BlockCache::Stats stats = TestDevice::memory().stats();
  pybind11::dict names;
  names["requested_bytes.all.current"] = stats.requested_bytes;
  names["requested_bytes.all.peak"] = stats.requested_peak_bytes;
  names["allocated_bytes.all.current"] = stats.allocated_bytes;
  names["allocated_bytes.all.peak"] = stats.allocated_peak_bytes;
  names["reserved_bytes.all.current"] = stats.reserved_bytes;
  names["reserved_bytes.all.peak"] = stats.reserved_peak_bytes;
  return names;
}

}  // namespace
}  // namespace stowage

PYBIND11_MODULE(_test_device, module) {
  using stowage::TestDevice;
  TestDevice::Create().value();  // makes it known to LibTorch
  module.def("synchronize", [] {
    const pybind11::gil_scoped_release others;
    TestDevice::Synchronize();
  });
  pybind11::class_<stowage::QueueEvent>(module, "Event");
  module.def("new_stream", [] {
    return c10::impl::VirtualGuardImpl(stowage::kTestDeviceType)
        .getStreamFromGlobalPool(stowage::kTestDevice)
        .id();
  });
  module.def("record_event",
             [](c10::StreamId stream) { return stowage::QueueWithId(stream).Record(); });
  module.def("wait_event", [](c10::StreamId stream, const stowage::QueueEvent& event) {
    stowage::QueueWithId(stream).Block(event);
  });
  module.def("choose_stream", &TestDevice::ChooseCopyStream);
  module.def("delay_copies",
             [](int64_t ms) { TestDevice::DelayCopies(std::chrono::milliseconds(ms)); });
  module.def("waits", &TestDevice::waits);
  module.def("memory_stats", &stowage::MemoryStats);
  module.def("reset_peak_memory_stats", [] { TestDevice::memory().ResetPeaks(); });
  module.def("get_rng_state", [] { return pybind11::bytes(stowage::RandomState()); });
  module.def("set_rng_state", [](const pybind11::bytes& state) { stowage::SetRandomState(state); });
  module.def("manual_seed", &stowage::Seed);
}
