#include "client/torch/step_arena.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr int64_t kLeastAlignment = 64;

}  // namespace

class StepArena::Recorder final : public BlockSource {
 public:
  void* Allocate(size_t) override { return nullptr; }

  void Allocated(const void* block, size_t size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    trace_.Allocate(block, static_cast<int64_t>(size));
  }

  std::optional<size_t> Free(const void* block) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_) trace_.Free(block);
    return std::nullopt;
  }

  bool done() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }

  // The step is over: what lives on outlived it.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }

  // Once it is closed.
  const AllocationTrace& trace() const { return trace_; }

 private:
  mutable std::mutex mutex_;
  AllocationTrace trace_;
  bool closed_ = false;
};

class StepArena::Region final : public BlockSource {
 public:
  // Takes over `base`, which has the plan's extent and counts as reserved.
  Region(TrackingAllocator* allocator, void* base, ArenaPlan plan)
      : allocator_(allocator), base_(static_cast<char*>(base)), follower_(std::move(plan)) {}

  ~Region() override {
    allocator_->Unreserve(follower_.plan().extent);
    std::free(base_);
  }

  void* Allocate(size_t size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::optional<int64_t> offset = follower_.Allocate(static_cast<int64_t>(size));
    return offset ? base_ + *offset : nullptr;
  }

  void Allocated(const void*, size_t) override {}

  std::optional<size_t> Free(const void* block) override {
    const auto* const at = static_cast<const char*>(block);
    if (at < base_ || at >= base_ + follower_.plan().extent.value()) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<size_t>(follower_.Free(at - base_));
  }

  bool done() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return retired_ && follower_.empty();
  }

  void Restart() {
    const std::lock_guard<std::mutex> lock(mutex_);
    follower_.Restart();
  }

  void Retire() {
    const std::lock_guard<std::mutex> lock(mutex_);
    retired_ = true;
  }

  ArenaReport report() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const ArenaPlan& plan = follower_.plan();
    return {plan.extent, plan.live_peak, plan.stranded(), follower_.counts()};
  }

 private:
  TrackingAllocator* const allocator_;
  char* const base_;
  mutable std::mutex mutex_;
  TraceFollower follower_;
  bool retired_ = false;
};

absl::StatusOr<std::unique_ptr<StepArena>> StepArena::Create(const StepArenaOptions& options) {
  TrackingAllocator* const allocator = TrackingAllocator::Get();
  if (allocator == nullptr) {
    return absl::FailedPreconditionError(
        "no allocator to serve for: call TrackingAllocator::Install at the start of main");
  }
  const int64_t alignment = options.alignment.value();
  if (alignment < kLeastAlignment || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("alignment: ", alignment, " is not a power of two of at least 64"));
  }
  if (options.effort < 0) {
    return absl::InvalidArgumentError(absl::StrCat("effort: ", options.effort, " is negative"));
  }
  return std::unique_ptr<StepArena>(new StepArena(allocator, options));
}

StepArena::~StepArena() { Forget(); }

absl::Status StepArena::Prepare() {
  if (open_) return absl::FailedPreconditionError("a step is running in the arena");
  if (recorder_ == nullptr) return absl::FailedPreconditionError("no step was recorded");
  absl::StatusOr<ArenaPlan> plan = recorder_->trace().Plan(options_.alignment, options_.effort);
  if (!plan.ok()) return plan.status();
  Forget();
  if (!allocator_->Reserve(plan->extent)) {
    return absl::ResourceExhaustedError(absl::StrCat("a region of ", plan->extent.value(),
                                                     " bytes is beyond the allocator's limit"));
  }
  void* base = nullptr;
  const auto extent = static_cast<size_t>(plan->extent.value());
  if (posix_memalign(&base, static_cast<size_t>(options_.alignment.value()), extent) != 0) {
    allocator_->Unreserve(plan->extent);
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no region of ", extent, " bytes"));
  }
  region_ = std::make_shared<Region>(allocator_, base, *std::move(plan));
  allocator_->Add(region_);
  return absl::OkStatus();
}

void StepArena::Forget() {
  if (open_ || region_ == nullptr) return;
  region_->Retire();
  region_ = nullptr;
  allocator_->DropDone();
}

ArenaReport StepArena::report() const {
  return region_ == nullptr ? ArenaReport() : region_->report();
}

void StepArena::Begin() {
  open_ = true;
  if (region_ != nullptr) {
    region_->Restart();
    before_ = TrackingAllocator::Enter(region_.get());
    return;
  }
  recorder_ = std::make_shared<Recorder>();
  allocator_->Add(recorder_);
  before_ = TrackingAllocator::Enter(recorder_.get());
}

void StepArena::End() {
  TrackingAllocator::Enter(before_);
  open_ = false;
  if (region_ != nullptr) return;
  recorder_->Close();
  allocator_->DropDone();
}

}  // namespace stowage
