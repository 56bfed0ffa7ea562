// A device that is not the CPU, for machines without a GPU: LibTorch's PrivateUse1.
//
// Operations are CPU kernels that run later, in order, on a thread of the device's own (WorkQueue): the host knows shapes
// at once, values only after it has waited. Memory is cut and kept in blocks as CUDA's is (BlockCache), within a limit.
// Matrix products take a workspace at their first call in each thread, and keep it; those with a bias take one of their own. Random numbers come from a generator of
// the device, by seed and offset. Backwards run on a thread that autograd has for the device. What waits is counted.
//
// There is one such device in a process; it lives to the end. Operations whose shapes depend on data wait. Beside compute's
// stream it has others, with events, for copies.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_TEST_DEVICE_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_TEST_DEVICE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/host_link.h"
#include "client/torch/offload/host_pool.h"
#include "client/torch/offload/stream_copies.h"
#include "solvers/model/transfer_model.h"
#include "tests/client/device/block_cache.h"
#include "tests/client/device/work_queue.h"

namespace stowage {

inline constexpr c10::DeviceType kTestDeviceType = c10::DeviceType::PrivateUse1;
inline const c10::Device kTestDevice(kTestDeviceType, 0);

class TestDevice final : public ExecutionDevice {
 public:
  // What a matrix product keeps in each thread.
  static constexpr int64_t kWorkspaceBytes = int64_t{8} << 20;
  static constexpr int64_t kBiasWorkspaceBytes = int64_t{1} << 20;

  // Without a link plans copy nothing; with host memory one can be measured. INVALID_ARGUMENT as ValidateTransferModel has it.
  static absl::StatusOr<std::unique_ptr<TestDevice>> Create(
      std::optional<TransferModel> link = std::nullopt, Bytes host_memory = Bytes(0));
  // Makes the kind of device known to LibTorch, no more: like CUDA, it serves nobody before it is initialised. Create does
  // both.
  static void Register();

  c10::Device device() const override { return kTestDevice; }
  MemoryMeter* meter() override { return meter_.get(); }
  Bytes granularity() const override {
    return Bytes(static_cast<int64_t>(BlockCache::kGranularity));
  }
  std::optional<Bytes> FreeMemory() const override;
  void GiveBackUnused() override { memory().Empty(); }
  bool has_cpu_kernels() const override { return true; }
  std::unique_ptr<StageTimer> MakeTimer() override;
  Device Hardware() const override;
  std::vector<DeviceSetting> Software() const override { return {{"test_device", "1"}}; }
  const TransferModel* link() const override { return link_.link(); }
  HostPool* host() override { return link_.host(); }
  absl::Status SetLink(const TransferModel& link) override;
  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override;

  // Of the process.
  static BlockCache& memory();
  static WorkQueue& compute();
  // Of compute's stream, or of one of LibTorch's pool.
  static WorkQueue& QueueOf(const c10::Stream& stream);
  // Of the host, on any stream: for what it read, because it had to know a shape, for an event or a time. Not Synchronize.
  static int64_t waits();
  // That compute's stream was given, from the host or to it, by copy_: a GPU's engines have them wait for copies of plans.
  static int64_t host_copies();
  static void Synchronize();
  // The stream that this thread's copy_ between host and device goes to, instead of compute's: as where a GPU's thread has chosen one.
  // 0: compute's. Returns the one before.
  static c10::StreamId ChooseCopyStream(c10::StreamId stream);
  static WorkQueue& copy_queue();
  // Copies on such streams take so much longer from now on.
  static void DelayCopies(std::chrono::milliseconds delay);
  static at::Generator generator();
  // LibTorch casts for it by itself.
  static bool has_autocast();

 private:
  TestDevice(std::optional<TransferModel> link, Bytes host_memory);
  bool one_channel() const { return link() != nullptr && !link()->full_duplex; }

  HostLink link_;
  const std::unique_ptr<MemoryMeter> meter_;
  StreamCopies copies_;  // last: they may still write to the link's host memory
};

// Puts a parameter, buffer or other leaf on a device, for all who hold it.
void MoveTo(c10::Device device, const at::Tensor& tensor);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_TEST_DEVICE_H_
