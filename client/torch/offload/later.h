// What the device comes to later than the host: what a step took, what its loss was.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_LATER_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_LATER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace stowage {

// Reads like a Value; who reads it waits until it is there. Copies are one value, which is asked of the device once.
// Thread-safe. A device that it comes from outlives its first reading.
template <class Value>
class Later {
 public:
  Later() : Later(Value()) {}
  // There at once.
  Later(Value value) : state_(std::make_shared<State>()) {  // NOLINT: as a Value
    state_->value = std::move(value);
  }
  // `passed`: whether `read` would wait for nothing; where it says so now, the value is read now. Both may throw, and are
  // called by one thread at a time.
  Later(std::function<bool()> passed, std::function<Value()> read)
      : state_(std::make_shared<State>()) {
    if (passed()) {
      state_->value = read();
      return;
    }
    state_->passed = std::move(passed);
    state_->read = std::move(read);
  }

  // Whether Get waits for nothing, which it does not do itself. Throws what LibTorch throws where the device fails.
  bool ready() const {
    const std::unique_lock<std::mutex> lock(state_->mutex, std::try_to_lock);
    return lock.owns_lock() && (state_->value || state_->passed());  // else another thread waits
  }

  // Valid as long as a copy lives. Throws as `ready`.
  const Value& Get() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->value) {
      state_->value = state_->read();
      state_->passed = nullptr;
      state_->read = nullptr;
    }
    return *state_->value;
  }
  operator const Value&() const { return Get(); }  // NOLINT: as a Value

 private:
  struct State {
    std::mutex mutex;
    std::optional<Value> value;
    std::function<bool()> passed;
    std::function<Value()> read;
  };

  std::shared_ptr<State> state_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_LATER_H_
