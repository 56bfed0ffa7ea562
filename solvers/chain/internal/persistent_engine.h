// A chain in memory slots as the discretised tables read it: stages count from 0, sizes are 32-bit
// and cut off just above the number of slots, where nothing fits any more. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_ENGINE_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/chain/internal/aligned_array.h"
#include "solvers/chain/internal/min_plus_dispatch.h"
#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/solver.h"

namespace stowage {

struct PersistentSlots {
  // `space` in slots.
  PersistentSlots(const PersistentSpace& space, int64_t slots);

  // What an object takes, but for O(L).
  static int64_t SizeBytes(int64_t stages) {
    return stages * (stages + 1) / 2 * static_cast<int64_t>(sizeof(int32_t));
  }

  // More slots than this are refused: sums of two sizes stay within 32 bits.
  static constexpr int64_t kMaxSlots = int64_t{1} << 28;

  // m_0(s, s', t) without delta^t, at index s' in s+1..stages-1; never falls with s'.
  const int32_t* RunNeed(int s) const {
    return run_need.data() + run_begin[static_cast<size_t>(s)];
  }

  int stages;
  int32_t slots;
  std::vector<int32_t> input;  // a^{s-1}
  std::vector<int32_t> saved, gradient;
  std::vector<int32_t> saving_need, backward_need;  // of m_all: under delta^t, and under delta^s

 private:
  void FillRunNeeds(const PersistentSpace& space);

  std::vector<int32_t> run_need;
  std::vector<size_t> run_begin;
};

// For every interval the slots from which on it runs at all, and those from which on all of it is
// kept (cut off above the slots). In between its row is worth a place in a table. Both grow as s
// falls.
class LiveSlots {
 public:
  // CANCELLED, DEADLINE_EXCEEDED. O(L^2).
  static absl::StatusOr<LiveSlots> Compute(const PersistentSlots& slots, const LeastMemory& least,
                                           StopPoll* poll);

  static int64_t SizeBytes(int64_t stages) { return IntervalTable<Range>::SizeBytes(stages); }

  int32_t least(int s, int t) const { return table_(s + 1, t + 1).least; }
  int32_t all_kept(int s, int t) const { return table_(s + 1, t + 1).all_kept; }

 private:
  struct Range {
    int32_t least, all_kept;
  };

  explicit LiveSlots(int stages) : table_(stages) {}

  IntervalTable<Range> table_;
};

// Where the tiles of a table are kept: of every chunk of memory slots and column of tiles, only the
// rows that are neither out of reach nor 0. Internal to solvers/chain.

// The tiles that live in each (chunk, column). O(L^2 + L chunks).
class LiveTiles {
 public:
  struct Column {
    int32_t first;       // tiles above hold never
    int32_t last;        // tiles below hold 0
    int32_t right_last;  // the same for C(s, t, m - a^{s-1}); at least `last`
    int64_t begin;       // tiles stored before this column
  };

  // CANCELLED, DEADLINE_EXCEEDED. O(chunks L).
  static absl::StatusOr<LiveTiles> Find(const PersistentSlots& slots, const LiveSlots& live,
                                        int lanes, StopPoll* poll);

  // What an object takes, the tiles not included.
  static int64_t Bytes(int64_t stages, int64_t slots, int64_t lanes);

  int chunks() const { return chunks_; }
  int columns() const { return columns_; }
  int64_t tiles() const { return tiles_; }
  const Column& at(int chunk, int column) const { return table_[Index(chunk, column)]; }

 private:
  LiveTiles(int chunks, int columns)
      : chunks_(chunks),
        columns_(columns),
        table_(static_cast<size_t>(chunks) * static_cast<size_t>(columns)) {}

  size_t Index(int chunk, int column) const {
    return static_cast<size_t>(chunk) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }
  Column& At(int chunk, int column) { return table_[Index(chunk, column)]; }
  void AddRows(const PersistentSlots& slots, const LiveSlots& live, int t, int lanes);

  int chunks_;
  int columns_;
  int64_t tiles_ = 0;
  std::vector<Column> table_;
};

template <class T>
class TileStore {
 public:
  explicit TileStore(LiveTiles live) : live_(std::move(live)) {
    for (T& value : never_) value = kNeverAs<T>;
  }

  static int64_t Bytes(const LiveTiles& live) {
    return live.tiles() * kTileValues<T> * int64_t{sizeof(T)};
  }
  // False where there is no memory.
  bool Allocate() {
    values_ = NewAlignedArray<T>(live_.tiles() * kTileValues<T>);
    return values_ != nullptr;
  }

  const LiveTiles& live() const { return live_; }

  // Tile (row, column), row <= column, of any chunk up to the last; below chunk 0 nothing fits.
  const T* Tile(int chunk, int row, int column) const {
    if (chunk < 0) return never_;
    const LiveTiles::Column& range = live_.at(chunk, column);
    if (row < range.first) return never_;
    if (row > range.last) return zero_;
    return values_.get() + (range.begin + (row - range.first)) * kTileValues<T>;
  }
  T* Stored(int chunk, int row, int column) { return const_cast<T*>(Tile(chunk, row, column)); }
  const T* never() const { return never_; }
  const T* zero() const { return zero_; }

 private:
  LiveTiles live_;
  AlignedArray<T> values_;
  alignas(kChunkBytes) T never_[kTileValues<T>];
  alignas(kChunkBytes) T zero_[kTileValues<T>] = {};
};

// What computes and keeps the values of a discretised table: one of two engines over one of three
// types of value. Internal to solvers/chain.

class PersistentEngine {
 public:
  virtual ~PersistentEngine() = default;
  // C(s, t, m) in units of time above the ideal, or kNever where nothing fits or the value is
  // beyond the type. 0 <= m; stages count from 0. The a^{s-1} beside m must fit the slots too.
  virtual int64_t Value(int s, int t, int64_t m) const = 0;
  virtual int64_t bytes() const = 0;
};

// What both engines start from.
struct EngineInput {
  const PersistentSlots& slots;
  const LiveSlots& live;
  const std::vector<StageRepeat>& repeats;
  std::vector<int64_t> forward;  // forward time of the stages before s, in units of time
  int64_t bytes_beside;          // of the table: what is held beside the engine
};

// The largest sum of forward times that a type of value takes.
template <class T>
bool FitsValues(int64_t forward_total) {
  return forward_total < static_cast<int64_t>(kNeverAs<T>);
}

// RESOURCE_EXHAUSTED if `bytes` in all are over the limit of a table.
absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveOptions& options);
absl::Status NoMemoryForTable(int64_t bytes);

// All intervals, in tiles (min_plus_kernel.h). For chains without much repetition.
template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles(const EngineInput& input,
                                                               const MinPlusKernels& kernels,
                                                               const SolveOptions& options);

// One row per distinct interval. For chains whose stages repeat.
template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeRows(const EngineInput& input,
                                                              const MinPlusKernels& kernels,
                                                              const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_PERSISTENT_ENGINE_H_
