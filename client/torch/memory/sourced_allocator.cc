#include "client/torch/memory/sourced_allocator.h"

#include <cstdlib>
#include <utility>

#include "client/torch/memory/tracking_allocator.h"

namespace stowage {
namespace {

// What LibTorch's kernels expect on the CPU.
constexpr Bytes kGranularity{64};

class CpuBlocks final : public SourcedAllocator {
 public:
  explicit CpuBlocks(TrackingAllocator* allocator) : allocator_(allocator) {}

  void Add(std::shared_ptr<BlockSource> source) override { allocator_->Add(std::move(source)); }
  void DropDone() override { allocator_->DropDone(); }
  BlockSource* Enter(BlockSource* source) override { return TrackingAllocator::Enter(source); }

  void* Reserve(Bytes size, Bytes alignment) override {
    if (!allocator_->Reserve(size)) return nullptr;
    void* region = nullptr;
    if (posix_memalign(&region, static_cast<size_t>(alignment.value()),
                       static_cast<size_t>(size.value())) == 0) {
      return region;
    }
    allocator_->Unreserve(size);
    return nullptr;
  }

  void Unreserve(void* region, Bytes size) override {
    allocator_->Unreserve(size);
    std::free(region);
  }

  Bytes granularity() const override { return kGranularity; }

 private:
  TrackingAllocator* const allocator_;
};

}  // namespace

absl::StatusOr<SourcedAllocator*> InstalledAllocator() {
  TrackingAllocator* const installed = TrackingAllocator::Get();
  if (installed == nullptr) {
    return absl::FailedPreconditionError(
        "no allocator to serve for: call TrackingAllocator::Install at the start of main");
  }
  // As the allocator itself, never destroyed.
  static auto* const blocks = new CpuBlocks(installed);
  return blocks;
}

}  // namespace stowage
