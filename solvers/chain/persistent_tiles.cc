// The blocked engine: chunks of memory slots upwards, and for each the whole triangle of intervals
// in tiles, blocks of rows downwards and columns upwards. Internal to solvers/chain.
//
// A tile needs the tiles below it in its column, those to its left in its rows, and tiles of lower
// chunks in its own and the next row. So two threads work on neighbouring blocks of rows, or on the
// first block of the next chunk, each a column behind the other.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "solvers/chain/persistent_engine.h"
#include "solvers/chain/task_crew.h"
#include "solvers/chain/tile_store.h"

namespace stowage {
namespace {

// Rows of tiles in a block. Their left sides stay in the cache while the columns pass.
constexpr int kBlockRows = 4;
// Right sides are kept for so many chunks at a time.
constexpr int kOpenChunks = 2;

template <class T>
class Tiles final : public PersistentEngine {
 public:
  explicit Tiles(TileStore<T> store) : store_(std::move(store)) {}

  bool Allocate() { return store_.Allocate(); }
  TileStore<T>& store() { return store_; }

  int64_t Value(int s, int t, int64_t m) const override {
    constexpr int64_t kWidth = kLanes<T>;
    const T* tile = store_.Tile(static_cast<int>(m / kWidth), s / kTile, t / kTile);
    const T value = tile[((s % kTile) * kTile + t % kTile) * kWidth + m % kWidth];
    return value < kNeverAs<T> ? static_cast<int64_t>(value) : kNever;
  }
  int64_t bytes() const override { return TileStore<T>::Bytes(store_.live()); }

 private:
  TileStore<T> store_;
};

template <class T>
class TileSolver {
 public:
  TileSolver(const EngineInput& input, const MinPlusKernel<T>& kernel, TileStore<T>* store,
             const SolveOptions& options)
      : slots_(input.slots),
        kernel_(kernel),
        store_(*store),
        options_(options),
        columns_(store->live().columns()),
        blocks_((columns_ + kBlockRows - 1) / kBlockRows),
        forward_(input.forward.begin(), input.forward.end()),
        penalty_(NewAlignedArray<T>((kWidth + 1) * kWidth)),
        crew_(store->live().chunks() * blocks_, options) {}

  // Beside the table.
  static int64_t ScratchBytes(int columns, int threads) {
    return (kOpenChunks * RightValues(columns) + threads * LeftValues(columns)) *
           static_cast<int64_t>(sizeof(T));
  }

  absl::Status Run() {
    for (AlignedArray<T>& right : right_) right = NewAlignedArray<T>(RightValues(columns_));
    if (penalty_ == nullptr || right_[0] == nullptr || right_[1] == nullptr) return NoMemory();
    for (int from = 0; from <= kWidth; ++from) {
      for (int lane = 0; lane < kWidth; ++lane)
        penalty_[from * kWidth + lane] = lane < from ? kNeverAs<T> : T{0};
    }
    return crew_.Run([this](TaskCrew::Member* member) { return Work(member); });
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

  static absl::Status NoMemory() {
    return absl::ResourceExhaustedError("no memory for a table's scratch");
  }
  static int64_t LeftRowValues(int columns) { return (columns * kTile + 1) * kStride; }
  static int64_t LeftValues(int columns) { return kBlockRows * LeftRowValues(columns); }
  static int64_t RightColumn(int64_t column) { return column * (column + 1) / 2 * kTileValues<T>; }
  static int64_t RightValues(int columns) { return RightColumn(columns); }

  // Tasks are numbered chunk by chunk, the lowest block of rows first.
  absl::Status Work(TaskCrew::Member* member) {
    const AlignedArray<T> left = NewAlignedArray<T>(LeftValues(columns_));
    if (left == nullptr) return NoMemory();
    for (int task = member->NextTask(); task >= 0; task = member->NextTask()) {
      const int chunk = task / blocks_;
      const int block = blocks_ - 1 - task % blocks_;
      absl::Status status = RunBlock(chunk, block, task, left.get(), member);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RunBlock(int chunk, int block, int task, T* left, TaskCrew::Member* member) {
    const int first = block * kBlockRows;
    const int end = std::min(first + kBlockRows, columns_);
    LeftRow rows[kBlockRows];
    for (int r = 0; r < kBlockRows; ++r) {
      const int none = (first + r) * kTile;
      rows[r] = {left + r * LeftRowValues(columns_), none, none};
    }
    // The right sides of an older chunk give way to this one's.
    const int older = (chunk - kOpenChunks + 1) * blocks_ - 1;
    absl::Status status = older < 0 ? absl::OkStatus() : member->WaitFor(older, columns_);
    for (int column = first; column < columns_ && status.ok(); ++column) {
      if (column >= end) status = member->WaitFor(task - 1, column + 1);
      if (status.ok() && chunk > 0) status = member->WaitFor(task - blocks_, column + 1);
      for (int row = std::min(end - 1, column); row >= first && status.ok(); --row) {
        status = member->Spend(32 + RunTile(chunk, row, column, &rows[row - first]));
      }
      member->Report(task, column + 1);
    }
    return status;
  }

  // Returns the number of steps.
  int64_t RunTile(int chunk, int row, int column, LeftRow* left) {
    const LiveTiles::Column& live = store_.live().at(chunk, column);
    if (row < live.first) return 0;
    FillGap(column, left);
    TileJob<T> job = Job(chunk, row, column, left->values);
    int64_t steps = 0;
    if (row <= live.last) {
      SetSplits(chunk, row, column, *left, &job);
      SetKeep(chunk, row, column, &job);
      SetOwn(chunk, row, column, &job);
      job.before = store_.Tile(chunk - 1, row, column);
      job.out = store_.Stored(chunk, row, column);
      kernel_.compute_tile(job);
      steps = int64_t{kTile} * kTile * (job.free_end - job.begin);
    } else {
      kernel_.fill_left(job);
      if (row <= live.right_last) {
        SetOwn(chunk, row, column, &job);
        kernel_.shift_tile(job.own, job.right_tile);
      }
    }
    left->alive = left->filled = kTile * (column + 1);
    return steps;
  }

  // Tiles out of reach between two that are not.
  void FillGap(int column, LeftRow* left) {
    for (int split = left->filled + 1; split <= kTile * column; ++split)
      std::copy(store_.never(), store_.never() + kStride, left->values + split * kStride);
  }

  TileJob<T> Job(int chunk, int row, int column, T* left) {
    TileJob<T> job;
    job.s0 = row * kTile;
    job.t0 = column * kTile;
    job.stages = slots_.stages;
    job.first_memory = chunk * kWidth;
    job.forward = forward_.data();
    job.gradient = slots_.gradient.data();
    job.saving_need = slots_.saving_need.data();
    job.backward_need = slots_.backward_need.data();
    for (int r = 0; r < kTile; ++r)
      job.run_need[r] = slots_.RunNeed(std::min(job.s0 + r, slots_.stages - 1));
    job.penalty = penalty_.get();
    job.left = left;
    T* right = right_[static_cast<size_t>(chunk % kOpenChunks)].get() + RightColumn(column);
    job.right = right;
    job.right_tile = right + row * int64_t{kTileValues<T>};
    const bool zero = column > store_.live().at(chunk, column).right_last;
    job.diagonal_right = zero ? store_.zero() : right + column * int64_t{kTileValues<T>};
    return job;
  }

  // The splits with both sides outside this tile, and neither out of reach.
  void SetSplits(int chunk, int row, int column, const LeftRow& left, TileJob<T>* job) const {
    const LiveTiles::Column& live = store_.live().at(chunk, column);
    job->begin = std::max(row + 1, live.first) * kTile;
    job->zero_begin = (live.right_last + 1) * kTile;
    int end = std::min(column * kTile, left.alive) + 1;
    if (job->begin < end) end = EndOfUse(chunk, row, column, job->begin, end);
    if (job->begin >= end) {
      job->free_end = job->masked_end = job->begin;
      return;
    }
    // The first row needs the most; every row's need grows with the split.
    const auto [least, most] =
        std::minmax_element(slots_.gradient.begin() + job->t0,
                            slots_.gradient.begin() + std::min(job->t0 + kTile, job->stages));
    job->free_end = EndOfNeed(job->run_need[0], job->begin, end, job->first_memory - *most);
    job->masked_end = EndOfNeed(job->run_need[kTile - 1], job->free_end, end,
                                job->first_memory + kWidth - 1 - *least);
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
      if (most >= kNeverAs<T>) return end;
      limit = std::max(limit, most + forward_[static_cast<size_t>(row * kTile + r)]);
    }
    return static_cast<int>(
        std::lower_bound(forward_.begin() + begin, forward_.begin() + end, limit) -
        forward_.begin());
  }

  // Row `stage` of a tile, `shift` slots up.
  ShiftedRow<T> Shifted(int chunk, int stage, int column, int32_t shift) const {
    const int down = shift / kWidth;
    const int64_t at = (stage % kTile) * kStride;
    return {store_.Tile(chunk - down - 1, stage / kTile, column) + at,
            store_.Tile(chunk - down, stage / kTile, column) + at, shift % kWidth};
  }

  void SetKeep(int chunk, int row, int column, TileJob<T>* job) const {
    for (int r = 0; r < kTile; ++r) {
      const int s = row * kTile + r;
      const bool inside = s < slots_.stages && (s + 1) / kTile <= column;
      job->keep[r] = inside ? Shifted(chunk, s + 1, column, slots_.saved[static_cast<size_t>(s)])
                            : ShiftedRow<T>{store_.never(), store_.never(), 0};
    }
  }

  void SetOwn(int chunk, int row, int column, TileJob<T>* job) const {
    for (int r = 0; r < kTile; ++r) {
      const int s = row * kTile + r;
      const int32_t shift = s < slots_.stages ? slots_.input[static_cast<size_t>(s)] : 0;
      job->own[r] = Shifted(chunk, s, column, shift);
    }
  }

  const PersistentSlots& slots_;
  const MinPlusKernel<T>& kernel_;
  TileStore<T>& store_;
  const SolveOptions& options_;
  const int columns_;
  const int blocks_;
  const std::vector<T> forward_;
  AlignedArray<T> penalty_;
  AlignedArray<T> right_[kOpenChunks];
  TaskCrew crew_;
};

}  // namespace

template <class T>
absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles(const EngineInput& input,
                                                               const MinPlusKernels& kernels,
                                                               const SolveOptions& options) {
  LiveTiles live(input.slots, input.live, kLanes<T>);
  const int64_t bytes = TileStore<T>::Bytes(live) +
                        TileSolver<T>::ScratchBytes(live.columns(), TaskCrew::Threads(options));
  absl::Status status = CheckTableSize(input.slots, bytes, options);
  if (!status.ok()) return status;
  auto tiles = std::make_unique<Tiles<T>>(TileStore<T>(std::move(live)));
  if (!tiles->Allocate()) return NoMemoryForTable(bytes);
  status = TileSolver<T>(input, KernelFor<T>(kernels), &tiles->store(), options).Run();
  if (!status.ok()) return status;
  return std::unique_ptr<PersistentEngine>(std::move(tiles));
}

template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<int32_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<double>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);
template absl::StatusOr<std::unique_ptr<PersistentEngine>> ComputeTiles<int64_t>(
    const EngineInput& input, const MinPlusKernels& kernels, const SolveOptions& options);

}  // namespace stowage
