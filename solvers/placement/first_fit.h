// Puts blocks at the lowest free offset, one by one. Internal to placement.h.
#ifndef STOWAGE_SOLVERS_PLACEMENT_FIRST_FIT_H_
#define STOWAGE_SOLVERS_PLACEMENT_FIRST_FIT_H_

#include <cstdint>
#include <vector>

namespace stowage {

// A block with its size in units of the alignment.
struct UnitBlock {
  int64_t size;
  int64_t begin;
  int64_t end;
};

class FirstFit {
 public:
  // `blocks` must outlive it.
  explicit FirstFit(const std::vector<UnitBlock>& blocks);

  // Places all blocks in the order given. O(n^2). Returns the extent.
  int64_t Place(const std::vector<int>& order);

  // Of the last Place, by block.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Placed {
    int64_t offset;
    int64_t top;
    int64_t begin;
    int64_t end;
  };

  const std::vector<UnitBlock>& blocks_;
  std::vector<Placed> placed_;  // by offset
  std::vector<int64_t> offsets_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLACEMENT_FIRST_FIT_H_
