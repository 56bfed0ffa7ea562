// The engine of tiles: chunks of memory slots upwards, and for each the whole triangle of intervals
// in tiles, blocks of rows downwards and columns upwards. Internal to solvers/chain.
//
// A tile needs the tiles below it in its column, those to its left in its rows, and tiles of lower
// chunks in its own and the next row. So two threads work on neighbouring blocks of rows, or on the
// first block of the next chunk, each a column behind the other.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "solvers/base/worker_pool.h"
#include "solvers/chain/internal/persistent_tiles.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Rows of tiles in a block. Their left sides stay in the cache while the columns pass.
constexpr int kBlockRows = 8;
// Right sides are kept for so many chunks at a time.
constexpr int kOpenChunks = 2;

// Steps of a poll, each a vector or less.
constexpr int64_t kStepsPerSplit = int64_t{kTile} * kTile;
constexpr int64_t kStepsPerMaskedSplit = 8 * kStepsPerSplit;
constexpr int64_t kStepsPerTile = 256;

// Which tiles are stored: of every chunk of memory slots and column of tiles only the rows that are
// neither out of reach nor 0. O(L^2 + L chunks).
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

  int chunks() const { return chunks_; }
  int columns() const { return columns_; }
  int64_t tiles() const { return tiles_; }
  const Column& at(int chunk, int column) const { return table_[Place(chunk, column)]; }

 private:
  LiveTiles(int chunks, int columns)
      : chunks_(chunks), columns_(columns), table_(Index(chunks) * Index(columns)) {}

  size_t Place(int chunk, int column) const {
    return Index(chunk) * Index(columns_) + Index(column);
  }
  Column& At(int chunk, int column) { return table_[Place(chunk, column)]; }

  // Rows (0..t, t) of all chunks: as memory grows, more of them are in reach and more are 0.
  void AddRows(const PersistentSlots& slots, const LiveSlots& live, int t, int lanes) {
    int first = t + 1, last = t, right_last = t;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const int low = chunk * lanes, high = low + lanes - 1;
      while (first > 0 && live.least(first - 1, t) <= high) --first;
      while (last >= 0 && live.all_kept(last, t) <= low) --last;
      while (right_last >= 0 &&
             live.all_kept(right_last, t) + slots.input[Index(right_last)] <= low) {
        --right_last;
      }
      Column& column = At(chunk, t / kTile);
      column.first = std::min(column.first, first / kTile);
      column.last = std::max(column.last, last < 0 ? -1 : last / kTile);
      column.right_last = std::max(column.right_last, right_last < 0 ? -1 : right_last / kTile);
    }
  }

  int chunks_;
  int columns_;
  int64_t tiles_ = 0;
  std::vector<Column> table_;
};

template <class T>
class TileStore final : public PersistentEngine {
 public:
  explicit TileStore(LiveTiles live) : live_(std::move(live)) {
    for (T& value : never_) value = kInfinityAs<T>;
  }

  static int64_t Bytes(const LiveTiles& live) {
    return live.tiles() * kTileValues<T> * int64_t{sizeof(T)};
  }
  // False where there is no memory.
  bool Allocate() {
    values_ = NewAlignedArray<T>(live_.tiles() * kTileValues<T>);
    return values_ != nullptr;
  }

  int64_t Value(int s, int t, int64_t m) const override {
    constexpr int64_t kWidth = kLanes<T>;
    const T* tile = Tile(static_cast<int>(m / kWidth), s / kTile, t / kTile);
    const T value = tile[((s % kTile) * kTile + t % kTile) * kWidth + m % kWidth];
    return value < kInfinityAs<T> ? static_cast<int64_t>(value) : kInfinity;
  }
  int64_t bytes() const override { return Bytes(live_); }

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
  const LiveTiles live_;
  AlignedArray<T> values_;
  alignas(kChunkBytes) T never_[kTileValues<T>];
  alignas(kChunkBytes) T zero_[kTileValues<T>] = {};
};

template <class T>
class TileSolver {
 public:
  TileSolver(const EngineInput& input, const MinPlusKernel<T>& kernel, TileStore<T>* store,
             const SolveContext& context)
      : slots_(input.slots),
        kernel_(kernel),
        store_(*store),
        columns_(store->live().columns()),
        blocks_(Blocks(columns_)),
        forward_(input.forward.begin(), input.forward.end()),
        until_(input.until.begin(), input.until.end()),
        penalty_(NewAlignedArray<T>((kWidth + 1) * kWidth)),
        pool_(static_cast<int>(Tasks(store->live())), context.threads(), context.stop(),
              [context](double share) { context.Report(share); }) {
    needs_.resize(static_cast<size_t>(columns_));
    // Padding shifts by nothing.
    saved_.resize(needs_.size() * kTile);
    input_.resize(needs_.size() * kTile);
    for (size_t s = 0; s < forward_.size() - 1; ++s) {
      Needs& needs = needs_[s / kTile];
      needs.most_gradient = std::max(needs.most_gradient, slots_.gradient[s]);
      needs.least_gradient = std::min(needs.least_gradient, slots_.gradient[s]);
      needs.saving = std::max(needs.saving, slots_.saving_need[s]);
      needs.backward = std::max(needs.backward, slots_.backward_need[s]);
      saved_[s] = {slots_.saved[s] / kWidth, slots_.saved[s] % kWidth};
      input_[s] = {slots_.input[s] / kWidth, slots_.input[s] % kWidth};
    }
  }

  // One per chunk and block of rows.
  static int64_t Tasks(const LiveTiles& live) {
    return int64_t{live.chunks()} * Blocks(live.columns());
  }

  // Beside the table.
  static int64_t ScratchBytes(int columns, int threads) {
    return (kOpenChunks * RightValues(columns) + threads * LeftValues(columns)) *
           static_cast<int64_t>(sizeof(T));
  }

  absl::Status Run() {
    for (AlignedArray<T>& right : right_) right = NewAlignedArray<T>(RightValues(columns_));
    if (penalty_ == nullptr || right_[0] == nullptr || right_[1] == nullptr) return NoScratch();
    for (int from = 0; from <= kWidth; ++from) {
      for (int lane = 0; lane < kWidth; ++lane)
        penalty_[from * kWidth + lane] = lane < from ? kInfinityAs<T> : T{0};
    }
    return pool_.Run([this](WorkerPool::Member* member) { return Work(member); });
  }

 private:
  static constexpr int kWidth = kLanes<T>;
  static constexpr int64_t kStride = kTile * kWidth;  // from one split to the next

  // The left sides of one row of tiles, of a thread's block.
  struct LeftRow {
    T* values;
    int alive;   // the last split that is not all never
    int filled;  // the last split that is written
  };

  // What the four stages of a row or column of tiles need at most, and the least gradient.
  struct Needs {
    int32_t most_gradient = 0, least_gradient = std::numeric_limits<int32_t>::max();
    int32_t saving = 0, backward = 0;
  };

  // So many slots as chunks and lanes.
  struct Shift {
    int chunks, lanes;
  };

  absl::Status NoScratch() const { return NoMemoryForTable(ScratchBytes(columns_, 1)); }
  static int Blocks(int columns) { return (columns + kBlockRows - 1) / kBlockRows; }
  static int64_t LeftRowValues(int columns) { return (columns * kTile + 1) * kStride; }
  static int64_t LeftValues(int columns) { return kBlockRows * LeftRowValues(columns); }
  static int64_t RightColumn(int64_t column) { return column * (column + 1) / 2 * kTileValues<T>; }
  static int64_t RightValues(int columns) { return RightColumn(columns); }

  // Tasks are numbered chunk by chunk, the lowest block of rows first.
  absl::Status Work(WorkerPool::Member* member) {
    const AlignedArray<T> left = NewAlignedArray<T>(LeftValues(columns_));
    if (left == nullptr) return NoScratch();
    for (int task = member->NextTask(); task >= 0; task = member->NextTask()) {
      const int chunk = task / blocks_;
      const int block = blocks_ - 1 - task % blocks_;
      absl::Status status = RunBlock(chunk, block, task, left.get(), member);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RunBlock(int chunk, int block, int task, T* left, WorkerPool::Member* member) {
    const int first = block * kBlockRows;
    const int end = std::min(first + kBlockRows, columns_);
    LeftRow rows[kBlockRows];
    for (int r = 0; r < kBlockRows; ++r) {
      const int none = (first + r) * kTile;
      rows[r] = {left + r * LeftRowValues(columns_), none, none};
    }
    TileJob<T> job = JobOf(chunk);
    // The right sides of an older chunk give way to this one's.
    const int older = (chunk - kOpenChunks + 1) * blocks_ - 1;
    absl::Status status = older < 0 ? absl::OkStatus() : member->WaitFor(older, columns_);
    for (int column = first; column < columns_ && status.ok(); ++column) {
      if (column >= end) status = member->WaitFor(task - 1, column + 1);
      if (status.ok() && chunk > 0) status = member->WaitFor(task - blocks_, column + 1);
      for (int row = std::min(end - 1, column); row >= first && status.ok(); --row) {
        status =
            member->Spend(kStepsPerTile + RunTile(chunk, row, column, &rows[row - first], &job));
      }
      member->Report(task, column + 1);
    }
    return status;
  }

  // Returns the number of steps.
  int64_t RunTile(int chunk, int row, int column, LeftRow* left, TileJob<T>* job) {
    const LiveTiles::Column& live = store_.live().at(chunk, column);
    if (row < live.first) return 0;
    int64_t steps = kTile * int64_t{FillGap(column, left)};
    SetPlace(row, column, live, left->values, job);
    if (row <= live.last) {
      SetSplits(chunk, row, column, live, *left, job);
      SetKeep(chunk, row, column, job);
      SetOwn(chunk, row, column, job);
      job->before = store_.Tile(chunk - 1, row, column);
      job->out = store_.Stored(chunk, row, column);
      kernel_.compute_tile(*job);
      steps += kStepsPerSplit * (job->free_end - job->begin) +
               kStepsPerMaskedSplit * (job->masked_end - job->free_end);
    } else {
      kernel_.fill_left(*job);
      if (row <= live.right_last) {
        SetOwn(chunk, row, column, job);
        kernel_.shift_tile(job->own, job->right_tile);
      }
    }
    left->alive = left->filled = kTile * (column + 1);
    return steps;
  }

  // Tiles out of reach between two that are not. Returns the number of splits.
  int FillGap(int column, LeftRow* left) {
    const int begin = left->filled + 1, end = kTile * column + 1;
    for (int split = begin; split < end; ++split)
      std::copy(store_.never(), store_.never() + kStride, left->values + split * kStride);
    return std::max(end - begin, 0);
  }

  // What all tiles of a chunk have in common.
  TileJob<T> JobOf(int chunk) const {
    TileJob<T> job;
    job.stages = slots_.stages;
    job.first_memory = chunk * kWidth;
    job.forward = forward_.data();
    job.until = until_.data();
    job.gradient = slots_.gradient.data();
    job.saving_need = slots_.saving_need.data();
    job.backward_need = slots_.backward_need.data();
    job.leaf_need = slots_.leaf_need.data();
    job.penalty = penalty_.get();
    return job;
  }

  void SetPlace(int row, int column, const LiveTiles::Column& live, T* left,
                TileJob<T>* job) const {
    job->s0 = row * kTile;
    job->t0 = column * kTile;
    job->left = left;
    T* right = right_[static_cast<size_t>(job->first_memory / kWidth % kOpenChunks)].get() +
               RightColumn(column);
    job->right = right;
    job->right_tile = right + row * int64_t{kTileValues<T>};
    job->diagonal_right =
        column > live.right_last ? store_.zero() : right + column * int64_t{kTileValues<T>};
  }

  // The splits with both sides outside this tile, and neither out of reach.
  void SetSplits(int chunk, int row, int column, const LiveTiles::Column& live, const LeftRow& left,
                 TileJob<T>* job) const {
    for (int r = 0; r < kTile; ++r)
      job->run_need[r] = slots_.RunNeed(std::min(job->s0 + r, slots_.stages - 1));
    const Needs& rows = needs_[static_cast<size_t>(row)];
    const Needs& columns = needs_[static_cast<size_t>(column)];
    const int last_split = job->t0 + kTile - 1;
    job->free =
        row < column && last_split < slots_.stages &&
        std::max({columns.most_gradient + std::max(job->run_need[0][last_split], rows.saving),
                  rows.backward}) <= job->first_memory;
    job->begin = std::max(row + 1, live.first) * kTile;
    job->zero_begin = (live.right_last + 1) * kTile;
    int end = std::min(column * kTile, left.alive) + 1;
    if (job->begin < end) end = EndOfUse(chunk, row, column, job->begin, end);
    if (job->begin >= end) {
      job->free_end = job->masked_end = job->begin;
      return;
    }
    if (job->free) {
      job->free_end = job->masked_end = end;
      return;
    }
    // The first row needs the most; every row's need grows with the split.
    job->free_end =
        EndOfNeed(job->run_need[0], job->begin, end, job->first_memory - columns.most_gradient);
    job->masked_end = EndOfNeed(job->run_need[kTile - 1], job->free_end, end,
                                job->first_memory + kWidth - 1 - columns.least_gradient);
  }

  static int EndOfNeed(const int32_t* need, int begin, int end, int memory) {
    if (begin >= end || need[end - 1] <= memory) return std::max(begin, end);
    return static_cast<int>(std::upper_bound(need + begin, need + end, memory) - need);
  }

  // A split costs its run at least: of no use where a row costs no more than that at one slot less.
  int EndOfUse(int chunk, int row, int column, int begin, int end) const {
    const T* before = store_.Tile(chunk - 1, row, column) + kWidth - 1;
    T limit = 0;
    for (int r = 0; r < kTile && row * kTile + r < slots_.stages; ++r, before += kStride) {
      const T most = std::max(std::max(before[0], before[kWidth]),
                              std::max(before[2 * kWidth], before[3 * kWidth]));
      if (most >= kInfinityAs<T>) return end;
      limit = std::max(limit, most + forward_[static_cast<size_t>(row * kTile + r)]);
    }
    return static_cast<int>(std::lower_bound(until_.begin() + begin, until_.begin() + end, limit) -
                            until_.begin());
  }

  // Row `stage` of its tile in a column, some slots up.
  ShiftedRow<T> Shifted(int chunk, int stage, int column, const Shift& by) const {
    const int row = stage / kTile;
    const int64_t at = (stage % kTile) * kStride;
    return {store_.Tile(chunk - by.chunks - 1, row, column) + at,
            store_.Tile(chunk - by.chunks, row, column) + at, by.lanes};
  }

  void SetKeep(int chunk, int row, int column, TileJob<T>* job) const {
    for (int r = 0; r < kTile; ++r) {
      const int s = row * kTile + r;
      if (s < slots_.stages && (s + 1) / kTile <= column) {
        job->keep[r] = Shifted(chunk, s + 1, column, saved_[static_cast<size_t>(s)]);
      } else {
        job->keep[r] = {store_.never(), store_.never(), 0};
      }
    }
  }

  void SetOwn(int chunk, int row, int column, TileJob<T>* job) const {
    for (int r = 0; r < kTile; ++r) {
      const int s = row * kTile + r;
      job->own[r] = Shifted(chunk, s, column, input_[static_cast<size_t>(s)]);
    }
  }

  const PersistentSlots& slots_;
  const MinPlusKernel<T>& kernel_;
  TileStore<T>& store_;
  const int columns_;
  const int blocks_;
  const std::vector<T> forward_, until_;
  std::vector<Needs> needs_;          // by row or column of tiles
  std::vector<Shift> saved_, input_;  // by stage
  AlignedArray<T> penalty_;
  AlignedArray<T> right_[kOpenChunks];
  WorkerPool pool_;
};

}  // namespace

template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles(const EngineInput& input,
                                                               const MinPlusKernels& kernels,
                                                               const SolveContext& context) {
  const PersistentSlots& slots = input.slots;
  const int64_t index_bytes = TileIndexBytes(slots.stages, slots.slots, kLanes<T>);
  absl::Status status =
      CheckTableSize(slots.stages, slots.slots, input.bytes_beside + index_bytes, context);
  if (!status.ok()) return status;
  StopPoll poll(context.stop());
  absl::StatusOr<LiveTiles> live = LiveTiles::Find(slots, input.live, kLanes<T>, &poll);
  if (!live.ok()) return live.status();
  if (TileSolver<T>::Tasks(*live) > std::numeric_limits<int>::max()) {
    return absl::ResourceExhaustedError("a table of more blocks of tiles than are counted");
  }
  const int64_t bytes =
      index_bytes + TileStore<T>::Bytes(*live) +
      TileSolver<T>::ScratchBytes(live->columns(), WorkerPool::Threads(context.threads()));
  status = CheckTableSize(slots.stages, slots.slots, input.bytes_beside + bytes, context);
  if (!status.ok()) return status;
  auto tiles = std::make_unique<TileStore<T>>(*std::move(live));
  if (!tiles->Allocate()) return NoMemoryForTable(bytes);
  status = TileSolver<T>(input, KernelFor<T>(kernels), tiles.get(), context).Run();
  if (!status.ok()) return status;
  return std::unique_ptr<PersistentEngine>(std::move(tiles));
}

int64_t TileIndexBytes(int64_t stages, int64_t slots, int64_t lanes) {
  const int64_t columns = (stages + kTile - 1) / kTile;
  return (slots / lanes + 1) * columns * static_cast<int64_t>(sizeof(LiveTiles::Column));
}

template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<int32_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveContext& context);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<double>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveContext& context);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<int64_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveContext& context);

}  // namespace stowage
