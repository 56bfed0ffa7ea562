// What an allocator that has no memory says: what was there at that instant. What is read of it later is less,
// since the operation that failed has let go of what it held.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_

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
  // as never before in it, and never more. Words may say more: an allocator counts a region that a source
  // serves as live (CudaBlocks).
  MemoryRefusal ExactBy(const MemoryMeter& meter) const;
};

// What an allocator's observer was told of the refusal before its error flies: for who handles that. Thread-safe.
class RefusalLog {
 public:
  void Note(const MemoryRefusal& refusal);
  // The last that was noted, once. Where several threads run out of memory at once, it may be another's.
  std::optional<MemoryRefusal> Take();

 private:
  std::mutex mutex_;
  std::optional<MemoryRefusal> last_;
};

// For versions that have no observer. From the words of an error: those of LibTorch's CUDA allocator, in which sizes are rounded ("2.50 GiB"),
// of 1.13 to 2.11, and of WordsOfRefusal. Nothing where they say less.
std::optional<MemoryRefusal> ReadMemoryRefusal(const std::string& words);

// As the CUDA allocator has them, sizes rounded alike.
std::string WordsOfRefusal(Bytes asked, Bytes allocated, Bytes reserved, Bytes limit);

// What the CUDA allocator says it was asked for ("Tried to allocate 2.50 GiB"), rounded as it says it; 0 for
// other words.
Bytes AskedIn(const std::string& words);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_REFUSAL_H_
