#include "client/torch/execute/movable_parts.h"

#include <ATen/SavedTensorHooks.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/memory/thread_memory.h"
#include "client/torch/offload/device_use.h"

namespace stowage {

bool WarmNodes::Run(int v) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !have_run_.insert({v, std::this_thread::get_id()}).second;
}

std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward,
                                     const std::function<std::vector<StoragePtr>()>& parts,
                                     bool warm) {
  if (!at::SavedTensorDefaultHooks::is_enabled()) {
    throw ImmovableError(absl::StrCat(
        "what its graph holds cannot go to the host as the plan has it, since saved-tensor hooks "
        "are forbidden here: ",
        *at::SavedTensorDefaultHooks::get_disabled_error_message()));
  }
  const DeviceWatch watch(device->device());
  const MemoryMeter& meter = *device->meter();
  const bool by_thread = HeldByThread(meter).has_value();
  const auto held = [&] { return by_thread ? *HeldByThread(meter) : meter.current(); };
  const Bytes before = held();
  const Tensors outputs = forward();
  std::vector<StoragePtr> found = parts();
  int64_t hidden = (held() - before).value();
  hidden -= StorageBytesOf(outputs);
  for (const StoragePtr& part : found) hidden -= static_cast<int64_t>(part->nbytes());
  if (hidden > 0 && (by_thread || warm)) {
    if (!by_thread && watch.SawOthers()) {
      throw StageRuleError(absl::StrCat(
          "another thread steps on this device, too, and memory is counted for both: ", hidden,
          " bytes belong to that step, or to this graph, and those could not go to the host. Steps "
          "whose plans copy must take turns"));
    }
    throw ImmovableError(absl::StrCat("its graph holds ", hidden,
                                      " bytes that autograd has not saved, which cannot go to the "
                                      "host as the plan has it"));
  }
  return found;
}

}  // namespace stowage
