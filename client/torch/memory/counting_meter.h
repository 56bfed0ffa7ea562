#ifndef STOWAGE_CLIENT_TORCH_MEMORY_COUNTING_METER_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_COUNTING_METER_H_

#include "client/torch/memory/allocation_count.h"
#include "client/torch/memory/memory_meter.h"

namespace stowage {

// Meters what is counted; any number may meter one count. Thread-safe; the count outlives it.
class CountingMeter final : public MemoryMeter {
 public:
  // `refusals`: of the allocator that is counted; it outlives the meter. Null: nothing is told of them.
  explicit CountingMeter(AllocationCount* count, RefusalLog* refusals = nullptr)
      : count_(count), all_(count), recent_(count), refusals_(refusals) {}

  Bytes current() const override { return count_->now().requested; }
  Bytes peak() const override { return all_.peak().requested; }
  void ResetPeak() override {
    all_.Reset();
    recent_.Reset();
  }
  Bytes TakeRecentPeak() override {
    const Bytes peak = recent_.peak().requested;
    recent_.Reset();
    return peak;
  }
  Bytes block_bytes() const override { return count_->now().blocks; }
  Bytes peak_block_bytes() const override { return all_.peak().blocks; }
  Bytes reserved() const override { return count_->now().reserved; }
  Bytes peak_reserved() const override { return all_.peak().reserved; }
  RefusalLog* refusals() override { return refusals_; }

 private:
  AllocationCount* const count_;
  AllocationCount::Mark all_;
  AllocationCount::Mark recent_;
  RefusalLog* const refusals_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_COUNTING_METER_H_
