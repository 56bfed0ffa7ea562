// What an allocator that has no memory says: what was there at that instant. What is read of it later is less,
// since the operation that failed has let go of what it held.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "client/torch/memory/memory_meter.h"
#include "solvers/model/units.h"

namespace stowage {

struct MemoryRefusal {
  Bytes asked;      // for a block
  Bytes allocated;  // to all that was live
  Bytes reserved;   // of the device, by the allocator
  Bytes limit;  // of what it could reserve at that instant; a GPU's other processes have the rest
  Bytes rounding;  // that all of these together may be off

  // The same, exact where `meter` knows, which was reset when the step began: at most refusals as much is live
  // as never before in it, and never more. Words may say more.
  MemoryRefusal ExactBy(const MemoryMeter& meter) const;
};

// What an allocator, or its observer, notes of a refusal before the error flies: for who handles that, and for who is told of
// no error and finds that there were more refusals than before. Thread-safe.
class RefusalLog {
 public:
  void Note(const MemoryRefusal& refusal);
  // How many were noted so far.
  int64_t count() const;
  // The last that was noted, once. Where several threads run out of memory at once, it may be another's.
  std::optional<MemoryRefusal> Take();
  // The last that was noted after so many, taken or not.
  std::optional<MemoryRefusal> After(int64_t count) const;

 private:
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  bool taken_ = false;
  MemoryRefusal last_;
};

// What a meter tells from now on. The meter outlives it.
class RefusalWatch {
 public:
  explicit RefusalWatch(MemoryMeter* meter)
      : log_(meter->refusals()), before_(log_ == nullptr ? 0 : log_->count()) {}

  // The last refusal since then; nothing where there was none, or the meter does not tell.
  std::optional<MemoryRefusal> Last() const {
    return log_ == nullptr ? std::nullopt : log_->After(before_);
  }

 private:
  RefusalLog* log_;
  int64_t before_;
};

// For versions that have no observer. From the words of an error: those of LibTorch's CUDA allocator, in which sizes are rounded ("2.50 GiB"),
// of 1.13 to 2.11, and of WordsOfRefusal. Nothing where they say less.
std::optional<MemoryRefusal> ReadMemoryRefusal(const std::string& words);

// As the CUDA allocator has them, sizes rounded alike.
std::string WordsOfRefusal(const MemoryRefusal& refusal);

// What the CUDA allocator says it was asked for ("Tried to allocate 2.50 GiB"), rounded as it says it; 0 for
// other words.
Bytes AskedIn(const std::string& words);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_
