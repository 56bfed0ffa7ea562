// Keeps book of the blocks of a replay. Internal to schedule_blocks.h.
#ifndef STOWAGE_SOLVERS_PLAN_BLOCK_BOOK_H_
#define STOWAGE_SOLVERS_PLAN_BLOCK_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "solvers/model/units.h"
#include "solvers/plan/schedule_blocks.h"

namespace stowage {

// Tensors go by numbers below `tensors`. All O(1), but for EndInstruction: O(what changed).
class BlockBook {
 public:
  explicit BlockBook(size_t tensors) : block_(tensors, kNone) {}

  // Whether the tensor takes memory after the instruction that runs, or, before the first, from the
  // start on.
  void See(size_t tensor, bool taken, Bytes size, const BlockName& name);
  // The memory of a tensor is another's from now on.
  void Rename(size_t from, size_t to);

  // Ends what was seen before the first instruction.
  void EndStart();
  // `running` and `held`: the referee's memory while the instruction runs and after it. INTERNAL if
  // the blocks do not add up to them.
  absl::Status EndInstruction(Bytes running, Bytes held, int32_t stage);
  // Ends all blocks.
  ScheduleBlocks Finish();

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void Open(size_t block, int64_t moment);
  void Close(size_t block, int64_t moment);

  ScheduleBlocks blocks_;
  std::vector<size_t> block_;    // by tensor
  std::vector<size_t> made_;     // blocks, by the instruction that runs
  std::vector<size_t> dropped_;  // the same
  int64_t moment_ = 0;
  Bytes live_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_BLOCK_BOOK_H_
