// Where the tiles of a table are kept: of every chunk of memory slots and column of tiles, only the
// rows that are neither out of reach nor 0. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_TILE_STORE_H_
#define STOWAGE_SOLVERS_CHAIN_TILE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/aligned_array.h"
#include "solvers/chain/min_plus_kernel.h"
#include "solvers/chain/persistent_slots.h"
#include "solvers/solver.h"

namespace stowage {

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_TILE_STORE_H_
