// The test device for Python: a device that is not the CPU, where there is no GPU. device.py makes PyTorch's module of it.
#include <ATen/core/Generator.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "tests/client/device/block_cache.h"
#include "tests/client/device/test_device.h"

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
  module.def("waits", &TestDevice::waits);
  module.def("memory_stats", &stowage::MemoryStats);
  module.def("reset_peak_memory_stats", [] { TestDevice::memory().ResetPeaks(); });
  module.def("get_rng_state", [] { return pybind11::bytes(stowage::RandomState()); });
  module.def("set_rng_state", [](const pybind11::bytes& state) { stowage::SetRandomState(state); });
  module.def("manual_seed", &stowage::Seed);
}
