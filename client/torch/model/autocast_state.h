// LibTorch's autocast (mixed precision) as it is in force on a thread, kept so that whatever belongs to
// a training step runs under what the step began with, wherever and whenever it runs.
//
// LibTorch remembers the casts of parameters, so that uses after the first need none. A cast made
// without a graph, however, keeps the parameter from being trained by all uses that follow, and what
// is remembered is memory that no schedule knows. So a scope forgets them when it begins and when it
// ends: a cast lives as long as the graph that saved it, or as the forward that made it.
//
// Functions throw what LibTorch throws. Thread-safe, but for casts that other threads remember.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_AUTOCAST_STATE_H_
#define STOWAGE_CLIENT_TORCH_MODEL_AUTOCAST_STATE_H_

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <string>

namespace stowage {

class AutocastState {
 public:
  // Off, casts remembered.
  AutocastState() = default;
  // Of this thread, now.
  static AutocastState Capture();

  // The same, off on all devices: how backwards run.
  AutocastState Off() const;
  bool enabled() const;
  // "off", "cpu:BFloat16", "cuda:Half", "cpu:BFloat16 cuda:Half".
  std::string ToString() const;

 private:
  friend class AutocastScope;
  struct OfDevice {
    c10::DeviceType device;
    at::ScalarType type;
    bool enabled;
  };

  void Apply() const;

  c10::SmallVector<OfDevice, 3> devices_;  // off on all others
  bool remembers_casts_ = true;
};

// `state` in force on this thread, and no casts remembered before and after.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const AutocastState before_;
  const bool casts_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_AUTOCAST_STATE_H_
