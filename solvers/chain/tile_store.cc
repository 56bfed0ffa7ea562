#include "solvers/chain/tile_store.h"

#include <algorithm>

namespace stowage {

int64_t LiveTiles::Bytes(int64_t stages, int64_t slots, int64_t lanes) {
  const int64_t columns = (stages + kTile - 1) / kTile;
  return (slots / lanes + 1) * columns * static_cast<int64_t>(sizeof(Column));
}

absl::StatusOr<LiveTiles> LiveTiles::Find(const PersistentSlots& slots, const LiveSlots& live,
                                          int lanes, StopPoll* poll) {
  LiveTiles tiles(slots.slots / lanes + 1, (slots.stages + kTile - 1) / kTile);
  for (int chunk = 0; chunk < tiles.chunks_; ++chunk) {
    absl::Status status = poll->Spend(int64_t{4} * tiles.columns_);
    if (!status.ok()) return status;
    for (int column = 0; column < tiles.columns_; ++column) {
      tiles.At(chunk, column) = {column + 1, -1, -1, 0};
    }
  }
  for (int t = 0; t < slots.stages; ++t) {
    absl::Status status = poll->Spend(int64_t{16} * tiles.chunks_);
    if (!status.ok()) return status;
    tiles.AddRows(slots, live, t, lanes);
  }
  for (Column& column : tiles.table_) {
    absl::Status status = poll->Spend(4);
    if (!status.ok()) return status;
    column.begin = tiles.tiles_;
    tiles.tiles_ += std::max(column.last - column.first + 1, 0);
  }
  return tiles;
}

// Rows (0..t, t) of all chunks: as memory grows, more of them are in reach and more are 0.
void LiveTiles::AddRows(const PersistentSlots& slots, const LiveSlots& live, int t, int lanes) {
  int first = t + 1, last = t, right_last = t;
  for (int chunk = 0; chunk < chunks_; ++chunk) {
    const int low = chunk * lanes, high = low + lanes - 1;
    while (first > 0 && live.least(first - 1, t) <= high) --first;
    while (last >= 0 && live.all_kept(last, t) <= low) --last;
    while (right_last >= 0 &&
           live.all_kept(right_last, t) + slots.input[static_cast<size_t>(right_last)] <= low) {
      --right_last;
    }
    Column& column = At(chunk, t / kTile);
    column.first = std::min(column.first, first / kTile);
    column.last = std::max(column.last, last < 0 ? -1 : last / kTile);
    column.right_last = std::max(column.right_last, right_last < 0 ? -1 : right_last / kTile);
  }
}

}  // namespace stowage
