// Meters by the peaks that an allocator keeps itself, of which there is one of each: whoever resets them begins anew for all.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_SHARED_PEAKS_METER_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_SHARED_PEAKS_METER_H_

#include <memory>
#include <mutex>
#include <utility>

#include "client/torch/memory/memory_meter.h"

namespace stowage {

// What an allocator says of itself. Thread-safe.
class AllocatorFigures {
 public:
  struct Figure {
    Bytes now;
    Bytes peak;  // since ResetPeaks
  };
  // As MemoryMeter has them.
  struct Figures {
    Figure requested;
    Figure blocks;
    Figure reserved;
  };

  virtual ~AllocatorFigures() = default;
  virtual Figures Read() const = 0;
  virtual void ResetPeaks() = 0;
  // As MemoryMeter has it.
  virtual RefusalLog* refusals() { return nullptr; }
};

// Resets the allocator's peaks with its own, and keeps what they were where only the recent one begins anew. Thread-safe.
class SharedPeaksMeter final : public MemoryMeter {
 public:
  explicit SharedPeaksMeter(std::unique_ptr<AllocatorFigures> allocator)
      : allocator_(std::move(allocator)) {}

  Bytes current() const override { return allocator_->Read().requested.now; }
  Bytes peak() const override { return Highest().requested; }
  void ResetPeak() override;
  Bytes TakeRecentPeak() override;
  Bytes block_bytes() const override { return allocator_->Read().blocks.now; }
  Bytes peak_block_bytes() const override { return Highest().blocks; }
  Bytes reserved() const override { return allocator_->Read().reserved.now; }
  Bytes peak_reserved() const override { return Highest().reserved; }
  RefusalLog* refusals() override { return allocator_->refusals(); }

 private:
  struct Peaks {
    Bytes requested;
    Bytes blocks;
    Bytes reserved;
  };

  Peaks Highest() const;
  static Peaks Higher(const Peaks& a, const AllocatorFigures::Figures& b);

  const std::unique_ptr<AllocatorFigures> allocator_;
  mutable std::mutex mutex_;
  Peaks earlier_;  // since the last ResetPeak, up to the last TakeRecentPeak
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_SHARED_PEAKS_METER_H_
