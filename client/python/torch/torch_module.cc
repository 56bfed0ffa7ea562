// stowage._torch: how many bytes tensors on the CPU hold, for Python.
#include <pybind11/pybind11.h>

#include <cstdint>

#include "client/torch/memory/tracking_allocator.h"

// Another LibTorch than the one it was built against may lay out allocators otherwise: the package asks for this before
// anything else.
PYBIND11_MODULE(_torch, module) {
  using stowage::TrackingAllocator;
  module.attr("BUILT_WITH") = STOWAGE_BUILT_WITH_TORCH;
  module.def("install", [] { TrackingAllocator::Install(); });
  module.def("current_bytes", [] { return TrackingAllocator::Install()->current().value(); });
  module.def("take_recent_peak_bytes",
             [] { return TrackingAllocator::Install()->TakeRecentPeak().value(); });
  // For jobs, whatever takes recent peaks meanwhile.
  module.def("peak_bytes", [] { return TrackingAllocator::Install()->peak().value(); });
  module.def("reset_peak", [] { TrackingAllocator::Install()->ResetPeak(); });
}
