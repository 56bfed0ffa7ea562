// Counts of what a caching allocator holds, added up from what it tells, event by event, with marks of their own: those that
// the allocator keeps for the user of LibTorch (max_memory_allocated) stay the user's.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_COUNT_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_COUNT_H_

#include <mutex>
#include <vector>

#include "solvers/model/units.h"

namespace stowage {

// Thread-safe. Each event takes a lock that nothing is called under, so that it may come from within an allocator's own.
class AllocationCount {
 public:
  struct Sums {
    Bytes requested;  // by live tensors
    Bytes blocks;     // the same, each rounded up to the granularity
    Bytes reserved;   // of the device

    friend bool operator==(const Sums& a, const Sums& b) {
      return a.requested == b.requested && a.blocks == b.blocks && a.reserved == b.reserved;
    }
  };

  // The most of each sum since it was made or reset. The count outlives it.
  class Mark {
   public:
    explicit Mark(AllocationCount* count);
    ~Mark();
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

    Sums peak() const;
    void Reset();

   private:
    friend class AllocationCount;
    AllocationCount* const count_;
    Sums peak_;
  };

  // `granularity` as of ExecutionDevice.
  explicit AllocationCount(Bytes granularity) : granularity_(granularity) {}

  // A block for so many bytes. It is freed when nobody uses it any more, other streams neither, not when that was asked for.
  void Allocated(Bytes bytes) { Add(bytes, Block(bytes), Bytes(0)); }
  void Freed(Bytes bytes) { Add(Bytes(0) - bytes, Bytes(0) - Block(bytes), Bytes(0)); }
  // The allocator's own memory of the device.
  void Reserved(Bytes bytes) { Add(Bytes(0), Bytes(0), bytes); }
  void Released(Bytes bytes) { Add(Bytes(0), Bytes(0), Bytes(0) - bytes); }

  // What was there before the first event: `read` says what there is now. Calls it again as long as events come meanwhile.
  template <class Read>
  void StartFrom(const Read& read) {
    for (;;) {
      const Sums told = now();
      if (Start(told, read())) return;
    }
  }

  Sums now() const;
  Bytes Block(Bytes bytes) const;

 private:
  void Add(Bytes requested, Bytes blocks, Bytes reserved);
  bool Start(const Sums& told, const Sums& all);

  const Bytes granularity_;
  mutable std::mutex mutex_;
  Sums sums_;
  std::vector<Mark*> marks_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_ALLOCATION_COUNT_H_
