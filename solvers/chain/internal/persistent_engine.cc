#include "solvers/chain/internal/persistent_engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {

PersistentSlots::PersistentSlots(const PersistentSpace& space, int64_t slot_count)
    : stages(space.last()), slots(static_cast<int32_t>(slot_count)) {
  const auto cut = [slot_count](int64_t size) {
    return static_cast<int32_t>(std::min(size, slot_count + 1));
  };
  for (int s = 1; s <= stages; ++s) {
    input.push_back(cut(space.activation(s - 1)));
    saved.push_back(cut(space.saved(s)));
    gradient.push_back(cut(space.gradient(s)));
    saving_need.push_back(cut(space.SavingNeed(s)));
    backward_need.push_back(cut(space.BackwardNeed(s)));
  }
  FillRunNeeds(space);
}

void PersistentSlots::FillRunNeeds(const PersistentSpace& space) {
  for (int s = 0; s < stages; ++s) {
    run_begin.push_back(run_need.size() - static_cast<size_t>(s));
    int64_t need = space.FirstRunNeed(s + 1);
    run_need.push_back(0);  // keeps index s' = s in range
    for (int split = s + 1; split < stages; ++split) {
      if (split > s + 1) need = space.ExtendRunNeed(need, split);
      const bool allowed = space.Recomputable(s + 1, split);
      run_need.push_back(allowed ? static_cast<int32_t>(std::min<int64_t>(need, slots + 1))
                                 : slots + 1);
    }
  }
}

absl::StatusOr<LiveSlots> LiveSlots::Compute(const PersistentSlots& slots, const LeastMemory& least,
                                             StopPoll* poll) {
  LiveSlots live(slots.stages);
  for (int t = 0; t < slots.stages; ++t) {
    absl::Status status = poll->Spend(int64_t{16} * (t + 1));
    if (!status.ok()) return status;
    const size_t ti = static_cast<size_t>(t);
    int32_t inner = 0;
    for (int s = t; s >= 0; --s) {
      const size_t i = static_cast<size_t>(s);
      const int32_t need =
          std::max(slots.gradient[ti] + slots.saving_need[i], slots.backward_need[i]);
      inner = std::min(std::max(need, slots.saved[i] + inner), slots.slots + 1);
      const int64_t memory = least.table(s + 1, t + 1).memory;
      live.table_(s + 1, t + 1) = {static_cast<int32_t>(std::min<int64_t>(memory, slots.slots + 1)),
                                   inner};
    }
  }
  return live;
}

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

absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveOptions& options) {
  if (bytes <= options.table_limit.value()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a table of ", slots, " slots for ", stages,
                                                   " stages takes ", bytes, " bytes; the limit is ",
                                                   options.table_limit.value()));
}

absl::Status NoMemoryForTable(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the machine has no memory left for a table of ", bytes, " bytes"));
}

}  // namespace stowage
