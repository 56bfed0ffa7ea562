#include "client/torch/memory/step_arena.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {

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
  // Takes over `base`, which the allocator reserved.
  Region(SourcedAllocator* allocator, void* base, Bytes size)
      : allocator_(allocator), base_(static_cast<char*>(base)), size_(size) {}

  ~Region() override { allocator_->Unreserve(base_, size_); }

  void* Allocate(size_t size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::optional<int64_t> offset = follower_.Allocate(static_cast<int64_t>(size));
    return offset ? base_ + *offset : nullptr;
  }

  void Allocated(const void*, size_t) override {}

  std::optional<size_t> Free(const void* block) override {
    const auto* const at = static_cast<const char*>(block);
    if (at < base_ || at >= base_ + size_.value()) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<size_t>(follower_.Free(at - base_));
  }

  bool done() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return retired_ && follower_.empty();
  }

  // A step by that plan begins.
  void Restart(std::shared_ptr<const ArenaPlan> plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    follower_.Restart(std::move(plan));
  }

  void Retire() {
    const std::lock_guard<std::mutex> lock(mutex_);
    retired_ = true;
  }

  Bytes size() const { return size_; }

  TraceFollower::Counts counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return follower_.counts();
  }

 private:
  SourcedAllocator* const allocator_;
  char* const base_;
  const Bytes size_;
  mutable std::mutex mutex_;
  TraceFollower follower_;
  bool retired_ = false;
};

absl::StatusOr<std::unique_ptr<StepArena>> StepArena::Create(const StepArenaOptions& options,
                                                             SourcedAllocator* allocator) {
  if (allocator == nullptr) {
    const absl::StatusOr<SourcedAllocator*> installed = InstalledAllocator();
    if (!installed.ok()) return installed.status();
    allocator = *installed;
  }
  StepArenaOptions used = options;
  if (used.alignment == Bytes(0)) used.alignment = allocator->granularity();
  const int64_t alignment = used.alignment.value();
  if (used.alignment < allocator->granularity() || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("alignment: ", alignment,
                                                   " is not a power of two of at least ",
                                                   allocator->granularity().value()));
  }
  if (options.effort < 0) {
    return absl::InvalidArgumentError(absl::StrCat("effort: ", options.effort, " is negative"));
  }
  return std::unique_ptr<StepArena>(new StepArena(allocator, used));
}

StepArena::~StepArena() { Forget(); }

absl::Status StepArena::Prepare(Bytes most) {
  if (open_) return absl::FailedPreconditionError("a step is running in the arena");
  if (recorder_ == nullptr) return absl::FailedPreconditionError("no step was recorded");
  absl::StatusOr<ArenaPlan> plan = recorder_->trace().Plan(options_.alignment, options_.effort);
  if (!plan.ok()) return plan.status();
  latest_ = std::make_shared<const ArenaPlan>(*std::move(plan));
  if (latest_->extent > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the step's blocks reach over ", latest_->extent.value(), " bytes, ",
                     latest_->fragmentation().value(), " of them fragmentation; there is room for ",
                     most.value()));
  }
  const absl::Status status = Reserve(latest_->extent);
  if (status.ok()) plans_[recorded_] = latest_;
  return status;
}

// A region of that size at least, and large enough for every plan.
absl::Status StepArena::Reserve(Bytes size) {
  size = std::max(size, options_.alignment);
  for (const auto& [kind, plan] : plans_) size = std::max(size, plan->extent);
  if (region_ != nullptr && region_->size() >= size) return absl::OkStatus();
  Release();
  void* const base = allocator_->Reserve(size, options_.alignment);
  if (base == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no region of ", size.value(), " bytes within the memory's limit"));
  }
  region_ = std::make_shared<Region>(allocator_, base, size);
  allocator_->Add(region_);
  return absl::OkStatus();
}

void StepArena::Release() {
  if (open_ || region_ == nullptr) return;
  region_->Retire();
  region_ = nullptr;
  allocator_->DropDone();
}

void StepArena::Forget(Kind kind) {
  if (!open_) plans_.erase(kind);
}

void StepArena::Forget() {
  if (open_) return;
  plans_.clear();
  latest_ = nullptr;
  Release();
}

ArenaReport StepArena::report() const {
  ArenaReport report;
  if (region_ != nullptr) {
    report.reserved = region_->size();
    report.counts = region_->counts();
  }
  if (latest_ != nullptr) {
    report.extent = latest_->extent;
    report.live_peak = latest_->live_peak;
    report.fragmentation = latest_->fragmentation();
  }
  return report;
}

void StepArena::Begin(Kind kind) {
  const auto plan = plans_.find(kind);
  recording_ = plan == plans_.end() || !Reserve(Bytes(0)).ok();
  if (!recording_) {
    latest_ = plan->second;
    region_->Restart(latest_);
    before_ = allocator_->Enter(region_.get());
  } else {
    Release();
    recorded_ = kind;
    recorder_ = std::make_shared<Recorder>();
    allocator_->Add(recorder_);
    before_ = allocator_->Enter(recorder_.get());
  }
  open_ = true;
}

void StepArena::End() {
  allocator_->Enter(before_);
  open_ = false;
  if (!recording_) return;
  recorder_->Close();
  allocator_->DropDone();
}

}  // namespace stowage
