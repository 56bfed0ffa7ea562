#include "tests/client/device/wait_count.h"

#include "tests/client/device/test_device.h"
#ifdef STOWAGE_TORCH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#endif

namespace stowage {

#ifdef STOWAGE_TORCH_CUDA
// What LibTorch warns of where it is asked to warn of calls that synchronize; other warnings are dropped.
class WaitCount::Warnings final : public c10::WarningHandler {
 public:
  Warnings() {
    c10::WarningUtils::set_warning_handler(this);
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
  }
  ~Warnings() override {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
    c10::WarningUtils::set_warning_handler(nullptr);
  }
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("synchroniz") != std::string::npos) ++count_;
  }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};
#else
class WaitCount::Warnings {
 public:
  int64_t count() const { return 0; }
};
#endif

WaitCount::WaitCount(c10::Device device)
    : device_(device),
      before_(TestDevice::waits()),
      warnings_(device.is_cuda() ? std::make_unique<Warnings>() : nullptr) {}

WaitCount::~WaitCount() = default;

int64_t WaitCount::count() const {
  if (warnings_) return warnings_->count();
  return device_.type() == kTestDeviceType ? TestDevice::waits() - before_ : 0;
}

}  // namespace stowage
