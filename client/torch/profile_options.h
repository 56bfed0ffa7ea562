#ifndef STOWAGE_CLIENT_TORCH_PROFILE_OPTIONS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_OPTIONS_H_

#include <functional>

#include "client/torch/memory_meter.h"

namespace stowage {

// How a model is measured, of whatever shape it is.
struct ProfileOptions {
  int warmup = 1;   // passes that are not counted
  int repeats = 5;  // passes whose times' medians are taken
  // One pass after the warm-up, for the bytes; times are 0.
  bool bytes_only = false;
  // Null: the installed TrackingAllocator.
  MemoryMeter* meter = nullptr;
  // Called on this thread with the share done, in (0, 1]; may be empty.
  std::function<void(double)> progress;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_OPTIONS_H_
