#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_OPTIONS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_OPTIONS_H_

#include <functional>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/profile/profile_report.h"

namespace stowage {

// How a model is measured, of whatever shape it is.
struct ProfileOptions {
  int warmup = 1;   // passes that are not counted
  int repeats = 5;  // passes whose times' medians are taken
  // One pass after the warm-up, for the bytes; times are 0.
  bool bytes_only = false;
  // Tensors have no values, and nothing is computed (client/torch/shapes): no pass warms up what computes.
  bool shapes_only = false;
  // Runs a whole step by the plan that stores everything after each pass that counts and scales all times so that they
  // add up to its median (Calibration). Only of 3 repeats or more, where the input needs no gradient and the installed
  // TrackingAllocator or `device` measures memory, and unless a step fails, or takes more than is free of the memory.
  bool calibrate = true;
  // That model and tensors are on; null: the CPU.
  ExecutionDevice* device = nullptr;
  // Measures the link of `device`, too (MeasureTransfers); else the profile says nothing of a link.
  bool transfers = false;
  // Of memory, where `device` is null; null as well: the installed TrackingAllocator.
  MemoryMeter* meter = nullptr;
  // Called on this thread with the share done, in (0, 1]; may be empty.
  std::function<void(double)> progress;
  // What a successful profile leaves behind beside itself; may be null.
  ProfileReport* report = nullptr;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_OPTIONS_H_
