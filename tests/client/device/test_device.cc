#include "tests/client/device/test_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "client/torch/base/lazy_init.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/memory/memory_refusal.h"
#include "client/torch/memory/shared_peaks_meter.h"
#include "client/torch/model/model_state.h"
#include "client/torch/offload/compute_copies.h"
#include "client/torch/offload/queued_timer.h"
#include "tests/client/device/device_casts.h"
#include "tests/client/device/device_ops.h"

#if STOWAGE_TORCH_AT_LEAST(2, 1)
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

namespace stowage {
namespace {

std::atomic<int64_t> waits{0};
std::atomic<int64_t> host_copies{0};
// Where LibTorch has no hook for it, the device needs no initialisation.
std::atomic<bool> initialised{!STOWAGE_LAZY_INIT_BY_DEVICE};
bool casts = false;  // from Register on

// Never destroyed: memory may be asked for to the end.
RefusalLog& Refusals() {
  static auto* const refusals = new RefusalLog();
  return *refusals;
}

// As CUDA's Philox: the numbers of a call are a matter of seed and offset, which moves on with each call.
class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  DeviceGenerator()
      : c10::GeneratorImpl(kTestDevice, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  uint64_t Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    offset_ += 4;
    return seed_ * 6364136223846793005u + offset_ * 1442695040888963407u;
  }

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
#endif
  void set_state(const c10::TensorImpl& state) override {
    const auto* const words = static_cast<const uint64_t*>(state.data());
    seed_ = words[0];
    offset_ = words[1];
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::empty({16}, at::kByte);
    auto* const words = static_cast<uint64_t*>(state.data_ptr());
    words[0] = seed_;
    words[1] = offset_;
    return state.getIntrusivePtr();
  }

 private:
  DeviceGenerator* clone_impl() const override {
    auto* const copy = new DeviceGenerator();
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  uint64_t seed_ = c10::detail::getNonDeterministicRandom();
  uint64_t offset_ = 0;
};

const at::Generator& Generator() {
  static const auto* const generator = new at::Generator(at::make_generator<DeviceGenerator>());
  return *generator;
}

class DeviceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) STOWAGE_ALLOCATE_CONST override {
    TORCH_CHECK(initialised, "the test device is not initialised");
    void* const data = TestDevice::memory().Allocate(bytes);
    if (data == nullptr && bytes > 0) {
      const BlockCache::Stats stats = TestDevice::memory().stats();
      Refusals().Note({Bytes(static_cast<int64_t>(bytes)), Bytes(stats.allocated_bytes),
                       Bytes(stats.reserved_bytes),
                       Bytes(std::min(stats.limit_bytes, stats.live_limit_bytes)), Bytes(0)});
      // How much, only those are told who ask: words are for people.
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the test device is out of memory");
    }
    return {data, data, &Free, kTestDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
#if STOWAGE_ALLOCATOR_COPIES
  void copy_data(void* to, const void* from, size_t bytes) const override {
    TestDevice::compute().Add([to, from, bytes] { std::memcpy(to, from, bytes); });
  }
#endif

 private:
  static void Free(void* data) { TestDevice::memory().Free(data); }
};

// Streams beside compute, as of LibTorch's pool: they are given out in turn, and whoever asks may share one. Never destroyed.
constexpr size_t kPoolStreams = 8;

// One device. Operations are on compute's stream, whichever a thread has chosen; on the others there are copies.
class DeviceGuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kTestDeviceType; }
  c10::Device exchangeDevice(c10::Device) const override { return kTestDevice; }
  c10::Device getDevice() const override { return kTestDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return Stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return Stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static auto* const given = new std::atomic<size_t>(0);
    const auto id = static_cast<c10::StreamId>(1 + (*given)++ % kPoolStreams);
    return c10::Stream(c10::Stream::UNSAFE, kTestDevice, id);
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return Stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<QueueEvent*>(event);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    destroyEvent(*event, 0);
    *event = new QueueEvent(TestDevice::QueueOf(stream).Record());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) TestDevice::QueueOf(stream).Block(*static_cast<QueueEvent*>(event));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || static_cast<QueueEvent*>(event)->passed();
  }
  bool queryStream(const c10::Stream& stream) const override {
    return TestDevice::QueueOf(stream).idle();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    if (stream.id() == 0) return WaitForTestDevice();
    ++waits;
    TestDevice::compute().Resume();
    TestDevice::QueueOf(stream).Synchronize();
  }
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  void synchronizeEvent(void* event) const override {
    ++waits;
    TestDevice::compute().Resume();
    if (event != nullptr) static_cast<QueueEvent*>(event)->Wait();
  }
#endif

 private:
  static c10::Stream Stream() { return c10::Stream(c10::Stream::DEFAULT, kTestDevice); }
};

// When the process starts: autograd makes threads for the devices that there are at its first backward.
const c10::impl::DeviceGuardImplRegistrar registrar(kTestDeviceType, new DeviceGuardImpl());

#if STOWAGE_TORCH_AT_LEAST(2, 1)
struct DeviceHooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  void init() const override { initialised = true; }
#endif
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const
#if STOWAGE_TORCH_AT_LEAST(2, 6)
      override
#endif
  {
    return Generator();
  }
  at::Device getDeviceFromPtr(void*) const override { return kTestDevice; }
};
#endif

class CacheFigures final : public AllocatorFigures {
 public:
  Figures Read() const override {
    const BlockCache::Stats stats = TestDevice::memory().stats();
    return {{Bytes(stats.requested_bytes), Bytes(stats.requested_peak_bytes)},
            {Bytes(stats.allocated_bytes), Bytes(stats.allocated_peak_bytes)},
            {Bytes(stats.reserved_bytes), Bytes(stats.reserved_peak_bytes)}};
  }
  void ResetPeaks() override { TestDevice::memory().ResetPeaks(); }
  RefusalLog* refusals() override { return &Refusals(); }
};

// What is closed opens when somebody waits for it, not when time has passed.
class DeviceQueue final : public ComputeQueue {
 public:
  void Mark(size_t mark) override {
    if (mark >= marks_.size()) marks_.resize(mark + 1);
    marks_[mark] = TestDevice::compute().Record();
  }
  bool Passed(size_t mark) override { return marks_[mark].passed(); }
  void Wait(size_t mark) override {
    ++waits;
    TestDevice::compute().Resume();
    marks_[mark].Wait();
  }
  Nanos Between(size_t start, size_t stop) override {
    return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(marks_[stop].time() -
                                                                      marks_[start].time())
                     .count());
  }
  void Close(Nanos) override { TestDevice::compute().Hold(); }
  bool Open() override { return TestDevice::compute().Resume(); }

 private:
  std::vector<QueueEvent> marks_;
};

void CopyOn(const CopyPiece& piece, Stream /*direction*/, c10::Stream stream) {
  TestDevice::QueueOf(stream).Add(
      [piece] { std::memcpy(piece.destination, piece.source, piece.bytes); });
}

void CopyByCompute(const std::vector<CopyPiece>& pieces, const at::Tensor& host_block,
                   c10::Device /*device*/) {
  TestDevice::compute().Add([pieces, host_block] {
    for (const CopyPiece& piece : pieces) {
      std::memcpy(piece.destination, piece.source, piece.bytes);
    }
  });
}

HostPool::Source SystemMemory() {
  return {[](size_t bytes) { return std::aligned_alloc(64, bytes); },
          [](void* data) { std::free(data); }};
}

}  // namespace

void CountHostCopy() { ++host_copies; }

void WaitForTestDevice() {
  ++waits;
  TestDevice::Synchronize();
}

c10::DataPtr AllocateOnTestDevice(size_t bytes) {
  return c10::GetAllocator(kTestDeviceType)->allocate(bytes);
}

at::Generator NextNumbers(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == kTestDeviceType, "a generator of another device");
  return at::detail::createCPUGenerator(
      static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->Next());
}

TestDevice::TestDevice(std::optional<TransferModel> link, Bytes host_memory)
    : link_(link, host_memory, SystemMemory()),
      meter_(std::make_unique<SharedPeaksMeter>(std::make_unique<CacheFigures>())),
      copies_(kTestDevice, &CopyOn) {
  if (one_channel()) copies_.ShareOneStream();
}

absl::StatusOr<std::unique_ptr<TestDevice>> TestDevice::Create(std::optional<TransferModel> link,
                                                               Bytes host_memory) {
  if (link) {
    absl::Status status = ValidateTransferModel(*link);
    if (!status.ok()) return status;
  }
  Register();
  InitialiseLazily(kTestDeviceType);
  // The same sums however many threads the host has. Not before the device is used: a process that ends at once, and with it what
  // LibTorch needs for this, is not to end meanwhile.
  static const bool has_one_thread = [] {
    compute().Add([] { at::set_num_threads(1); });
    return true;
  }();
  static_cast<void>(has_one_thread);
  return std::unique_ptr<TestDevice>(new TestDevice(link, host_memory));
}

absl::Status TestDevice::SetLink(const TransferModel& link) {
  absl::Status status = link_.SetLink(link);
  if (status.ok() && one_channel()) copies_.ShareOneStream();
  return status;
}

void TestDevice::Register() {
  static const bool registered = [] {
    static auto* const allocator = new DeviceAllocator();
    c10::SetAllocator(kTestDeviceType, allocator);
#if STOWAGE_TORCH_AT_LEAST(2, 1)
    at::RegisterPrivateUse1HooksInterface(new DeviceHooks());
    // Autograd asks the accelerator for streams. One with a name is it before any other; without, a LibTorch that was built
    // for CUDA takes that, also where there is no driver for it. A GPU that is there stays the accelerator.
    if (!at::globalContext().hasCUDA()) c10::register_privateuse1_backend("test_device");
#endif
    RegisterTestDeviceOps();
    casts = RegisterTestDeviceCasts();
    RandomState::UseGenerator(Generator());
    UseComputeCopies(kTestDeviceType, &CopyByCompute);
    return true;
  }();
  static_cast<void>(registered);
}

std::unique_ptr<StageTimer> TestDevice::MakeTimer() {
  return MakeQueuedTimer(std::make_unique<DeviceQueue>());
}

std::optional<Bytes> TestDevice::FreeMemory() const {
  const BlockCache::Stats stats = memory().stats();
  return std::min(Bytes(stats.limit_bytes), Hardware().memory) - Bytes(stats.allocated_bytes);
}

Device TestDevice::Hardware() const {
  Device device;
  device.model = "test device";
  device.allocation_granularity = granularity();
  device.memory = Bytes(int64_t{1} << 30);
  return device;
}

std::unique_ptr<DeviceCopy> TestDevice::StartCopy(Stream direction,
                                                  const std::vector<CopyPiece>& pieces) {
  return copies_.Start(direction, pieces);
}

// Never destroyed: tensors of static storage duration are freed after main.
BlockCache& TestDevice::memory() {
  static auto* const memory = new BlockCache([] { Synchronize(); });
  return *memory;
}

WorkQueue& TestDevice::compute() {
  static auto* const queue = new WorkQueue();
  return *queue;
}

WorkQueue& TestDevice::QueueOf(const c10::Stream& stream) {
  if (stream.id() == 0) return compute();
  static auto* const pool = new std::array<WorkQueue, kPoolStreams>();
  return pool->at(static_cast<size_t>(stream.id() - 1));
}

namespace {
thread_local c10::StreamId copy_stream = 0;
std::atomic<int64_t> copy_delay_ms{0};
}  // namespace

c10::StreamId TestDevice::ChooseCopyStream(c10::StreamId stream) {
  return std::exchange(copy_stream, stream);
}

WorkQueue& TestDevice::copy_queue() {
  WorkQueue& queue = QueueOf(c10::Stream(c10::Stream::UNSAFE, kTestDevice, copy_stream));
  const std::chrono::milliseconds delay(copy_delay_ms.load());
  if (copy_stream != 0 && delay.count() > 0) {
    queue.Add([delay] { std::this_thread::sleep_for(delay); });
  }
  return queue;
}

void TestDevice::DelayCopies(std::chrono::milliseconds delay) { copy_delay_ms = delay.count(); }

int64_t TestDevice::waits() { return stowage::waits.load(); }

int64_t TestDevice::host_copies() { return stowage::host_copies.load(); }
void TestDevice::Synchronize() { compute().Synchronize(); }
at::Generator TestDevice::generator() { return Generator(); }

bool TestDevice::has_autocast() { return casts; }

void MoveTo(c10::Device device, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const bool trains = tensor.requires_grad();
  at::Tensor gradient = tensor.grad();
  const at::Tensor moved = tensor.detach().to(device);
  // set_data would refuse: only LibTorch's own devices may stand in for each other.
  tensor.unsafeGetTensorImpl()->shallow_copy_from(moved.getIntrusivePtr());
  tensor.requires_grad_(trains);
  if (gradient.defined()) tensor.mutable_grad() = gradient.to(device);
}

}  // namespace stowage
