#include "solvers/chain/tile_store.h"

#include <algorithm>

namespace stowage {

int64_t LiveTiles::Bytes(int64_t stages, int64_t slots, int64_t lanes) {
  const int64_t columns = (stages + kTile - 1) / kTile;
  return (slots / lanes + 1) * columns * static_cast<int64_t>(sizeof(Column));
}

LiveTiles::LiveTiles(const PersistentSlots& slots, const LiveSlots& live, int lanes)
    : chunks_(slots.slots / lanes + 1),
      columns_((slots.stages + kTile - 1) / kTile),
      table_(static_cast<size_t>(chunks_) * static_cast<size_t>(columns_)) {
  for (int chunk = 0; chunk < chunks_; ++chunk) {
    for (int column = 0; column < columns_; ++column) {
      At(chunk, column) = {column + 1, -1, -1, 0};
    }
  }
  for (int t = 0; t < slots.stages; ++t) AddRows(slots, live, t, lanes);
  for (Column& column : table_) {
    column.begin = tiles_;
    tiles_ += std::max(column.last - column.first + 1, 0);
  }
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
