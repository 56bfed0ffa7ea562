// The loops of min_plus_kernel.h over a register type V, for the files that instantiate them: in an
// unnamed namespace on purpose, each instruction set has its own copy. No standard headers here.
//
// V is Vectors or derived from it: Value, kLanes, kRows x kColumns of a tile that fit the registers, and
// Load, Store, Set, Add, Min, Max on V::Register, and Shift.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_IMPL_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_IMPL_H_

#include <stdint.h>

#include "solvers/chain/internal/min_plus_kernel.h"

namespace stowage {
namespace {

int Smaller(int a, int b) { return a < b ? a : b; }
int Larger(int a, int b) { return a > b ? a : b; }

template <class V>
struct Loops {
  using T = typename V::Value;
  using Register = typename V::Register;
  static constexpr int kWidth = kLanes<T>;           // values of a chunk
  static constexpr int kParts = kWidth / V::kLanes;  // registers of a chunk
  static constexpr int kStride = kTile * kWidth;     // from one split to the next

  // into = min(into, min over splits of left + right), for a block of the tile that fits the
  // registers.
  static void Product(const T* left, const T* right, int64_t splits, T* into) {
    Register best[V::kRows][V::kColumns];
    for (int r = 0; r < V::kRows; ++r)
      for (int c = 0; c < V::kColumns; ++c) best[r][c] = V::Load(into + (r * kTile + c) * kWidth);
    for (int64_t i = 0; i < splits; ++i, left += kStride, right += kStride) {
      Register column[V::kColumns];
      for (int c = 0; c < V::kColumns; ++c) column[c] = V::Load(right + c * kWidth);
      for (int r = 0; r < V::kRows; ++r) {
        const Register row = V::Load(left + r * kWidth);
        for (int c = 0; c < V::kColumns; ++c)
          best[r][c] = V::Min(best[r][c], V::Add(row, column[c]));
      }
    }
    for (int r = 0; r < V::kRows; ++r)
      for (int c = 0; c < V::kColumns; ++c) V::Store(into + (r * kTile + c) * kWidth, best[r][c]);
  }

  static void WholeProduct(const T* left, const T* right, int64_t splits, T* into) {
    for (int r = 0; r < kTile; r += V::kRows) {
      for (int c = 0; c < kTile; c += V::kColumns) {
        for (int part = 0; part < kParts; ++part) {
          const int lane = part * V::kLanes;
          Product(left + r * kWidth + lane, right + c * kWidth + lane, splits,
                  into + (r * kTile + c) * kWidth + lane);
        }
      }
    }
  }

  // The same where right is 0.
  static void ZeroProduct(const T* left, int64_t splits, T* into) {
    for (int r = 0; r < kTile; ++r) {
      for (int part = 0; part < kParts; ++part) {
        const T* from = left + r * kWidth + part * V::kLanes;
        Register best = V::Set(kInfinityAs<T>);
        for (int64_t i = 0; i < splits; ++i) best = V::Min(best, V::Load(from + i * kStride));
        for (int c = 0; c < kTile; ++c) {
          T* to = into + (r * kTile + c) * kWidth + part * V::kLanes;
          V::Store(to, V::Min(V::Load(to), best));
        }
      }
    }
  }

  // One split of one row, where memory from lane `from` on allows it; right = nullptr is 0.
  static void Split(const TileJob<T>& job, const T* left, const T* right, int from, T* into) {
    if (from >= kWidth) return;
    const T* penalty = job.penalty + Larger(from, 0) * kWidth;
    for (int part = 0; part < kParts; ++part) {
      const int lane = part * V::kLanes;
      Register term = V::Max(V::Load(left + lane), V::Load(penalty + lane));
      if (right != nullptr) term = V::Add(term, V::Load(right + lane));
      V::Store(into + lane, V::Min(V::Load(into + lane), term));
    }
  }

  static void MaskedSplits(const TileJob<T>& job, T* into) {
    for (int r = 0; r < kTile; ++r) {
      for (int c = 0; c < kTile; ++c) {
        if (job.t0 + c >= job.stages) continue;
        const int need = job.gradient[job.t0 + c] - job.first_memory;
        for (int split = Larger(job.begin, job.free_end); split < job.masked_end; ++split) {
          const T* right = split < job.zero_begin
                               ? job.right + static_cast<int64_t>(split) * kStride + c * kWidth
                               : nullptr;
          Split(job, job.left + static_cast<int64_t>(split) * kStride + r * kWidth, right,
                need + job.run_need[r][split], into + (r * kTile + c) * kWidth);
        }
      }
    }
  }

  // Splits so near to s or t that one of their sides belongs to this tile.
  static void NearSplits(const TileJob<T>& job, int r, int c, T* into) {
    const int s = job.s0 + r, t = job.t0 + c;
    const int need = job.gradient[t] - job.first_memory;
    const T* left = job.left + r * kWidth;
    for (int split = s + 1; split <= Smaller(job.s0 + kTile - 1, t); ++split) {
      Split(job, left + static_cast<int64_t>(split) * kStride,
            job.right_tile + (split - job.s0) * kStride + c * kWidth, need + job.run_need[r][split],
            into);
    }
    if (job.s0 == job.t0) return;
    for (int split = job.t0 + 1; split <= t; ++split) {
      Split(job, left + static_cast<int64_t>(split) * kStride,
            job.diagonal_right + (split - job.t0) * kStride + c * kWidth,
            need + job.run_need[r][split], into);
    }
  }

  // Row r of the tile, the rows below it being done.
  static void FinishRow(const TileJob<T>& job, int r, T* best) {
    const int s = job.s0 + r;
    alignas(kChunkBytes) T kept[kTile * kWidth];
    V::Shift(job.keep[r], kept);
    for (int c = 0; c < kTile; ++c) {
      const int t = job.t0 + c;
      T* out = job.out + (r * kTile + c) * kWidth;
      if (s > t || t >= job.stages) {
        for (int part = 0; part < kParts; ++part) V::Store(out + part * V::kLanes, V::Set(T{0}));
        continue;
      }
      T* into = best + (r * kTile + c) * kWidth;
      const int keep_need =
          s == t ? job.leaf_need[s]
                 : Larger(job.gradient[t] + job.saving_need[s], job.backward_need[s]);
      const int keep_from = keep_need - job.first_memory;
      if (s == t) {
        for (int part = 0; part < kParts; ++part) {
          const int lane = part * V::kLanes;
          const int from = Smaller(Larger(keep_from, 0), kWidth);
          V::Store(into + lane, V::Load(job.penalty + from * kWidth + lane));
        }
      } else {
        Split(job, kept + c * kWidth, nullptr, keep_from, into);
        NearSplits(job, r, c, into);
      }
      Publish(job, r, t, into, out);
    }
    V::Shift(job.own[r], job.right_tile + r * kStride);
  }

  // Where later tiles look for a finished row.
  static void Publish(const TileJob<T>& job, int r, int t, const T* best, T* out) {
    const Register never = V::Set(kInfinityAs<T>);
    const Register forward = V::Set(job.until[t + 1] - job.forward[job.s0 + r]);
    T* left = job.left + static_cast<int64_t>(t + 1) * kStride + r * kWidth;
    for (int part = 0; part < kParts; ++part) {
      const int lane = part * V::kLanes;
      const Register value = V::Load(best + lane);
      V::Store(out + lane, value);
      V::Store(left + lane, V::Min(V::Add(value, forward), never));
    }
  }

  // FinishRow where every lane of every row may do everything: most tiles.
  static void FinishFreeRow(const TileJob<T>& job, int r, const T* best) {
    alignas(kChunkBytes) T kept[kTile * kWidth];
    V::Shift(job.keep[r], kept);
    const T* forward = job.until + job.t0 + 1;
    const T before = job.forward[job.s0 + r];
    T* out = job.out + r * kStride;
    T* left_out = job.left + static_cast<int64_t>(job.t0 + 1) * kStride + r * kWidth;
    for (int lane = 0; lane < kWidth; lane += V::kLanes) {
      Register value[kTile];
      for (int c = 0; c < kTile; ++c) {
        value[c] = V::Min(V::Load(best + (r * kTile + c) * kWidth + lane),
                          V::Load(kept + c * kWidth + lane));
      }
      for (int split = r + 1; split < kTile; ++split) {
        const Register left =
            V::Load(job.left + static_cast<int64_t>(job.s0 + split) * kStride + r * kWidth + lane);
        const T* right = job.right_tile + split * kStride + lane;
        for (int c = 0; c < kTile; ++c)
          value[c] = V::Min(value[c], V::Add(left, V::Load(right + c * kWidth)));
      }
      Register left[kTile];  // for splits t0+1 and on
      for (int c = 0; c < kTile; ++c) {
        for (int d = 0; d < c; ++d) {
          const T* right = job.diagonal_right + (d + 1) * kStride + c * kWidth + lane;
          value[c] = V::Min(value[c], V::Add(left[d], V::Load(right)));
        }
        left[c] = V::Min(V::Add(value[c], V::Set(forward[c] - before)), V::Set(kInfinityAs<T>));
        V::Store(out + c * kWidth + lane, value[c]);
        V::Store(left_out + c * kStride + lane, left[c]);
      }
    }
    V::Shift(job.own[r], job.right_tile + r * kStride);
  }

  static void ComputeTile(const TileJob<T>& job) {
    alignas(kChunkBytes) T best[kTileValues<T>];
    for (int i = 0; i < kTileValues<T>; i += kWidth) {
      const Register before = V::Set(job.before[i + kWidth - 1]);
      for (int lane = 0; lane < kWidth; lane += V::kLanes) V::Store(best + i + lane, before);
    }
    const int product_end = Smaller(job.free_end, job.zero_begin);
    if (job.begin < product_end) {
      const int64_t at = static_cast<int64_t>(job.begin) * kStride;
      WholeProduct(job.left + at, job.right + at, product_end - job.begin, best);
    }
    const int zero_begin = Larger(job.begin, job.zero_begin);
    if (zero_begin < job.free_end) {
      ZeroProduct(job.left + static_cast<int64_t>(zero_begin) * kStride, job.free_end - zero_begin,
                  best);
    }
    if (job.free_end < job.masked_end) MaskedSplits(job, best);
    for (int r = kTile - 1; r >= 0; --r) {
      if (job.free) {
        FinishFreeRow(job, r, best);
      } else {
        FinishRow(job, r, best);
      }
    }
  }

  static void ShiftTile(const ShiftedRow<T>* rows, T* right_tile) {
    for (int r = 0; r < kTile; ++r) V::Shift(rows[r], right_tile + r * kStride);
  }

  static void FillLeft(const TileJob<T>& job) {
    for (int r = 0; r < kTile; ++r) {
      for (int t = job.t0; t < Smaller(job.t0 + kTile, job.stages); ++t) {
        if (t < job.s0 + r) continue;
        const Register forward = V::Set(job.until[t + 1] - job.forward[job.s0 + r]);
        T* left = job.left + static_cast<int64_t>(t + 1) * kStride + r * kWidth;
        for (int part = 0; part < kParts; ++part) V::Store(left + part * V::kLanes, forward);
      }
    }
  }

  static void MinPlusRow(T* into, const T* a, const T* b, T constant, int64_t count) {
    const Register never = V::Set(kInfinityAs<T>);
    const Register plus = V::Set(constant);
    int64_t i = 0;
    for (; i + V::kLanes <= count; i += V::kLanes) {
      const Register term =
          V::Add(V::Min(V::Add(V::LoadAny(a + i), plus), never), V::LoadAny(b + i));
      V::StoreAny(into + i, V::Min(V::LoadAny(into + i), term));
    }
    for (; i < count; ++i) {
      const T left = a[i] + constant;
      const T term = (left < kInfinityAs<T> ? left : kInfinityAs<T>)+b[i];
      into[i] = term < into[i] ? term : into[i];
    }
  }

  static void MinRow(T* into, const T* a, T constant, int64_t count) {
    const Register plus = V::Set(constant);
    int64_t i = 0;
    for (; i + V::kLanes <= count; i += V::kLanes) {
      V::StoreAny(into + i, V::Min(V::LoadAny(into + i), V::Add(V::LoadAny(a + i), plus)));
    }
    for (; i < count; ++i) into[i] = a[i] + constant < into[i] ? a[i] + constant : into[i];
  }

  static T MinMax(T start, const T* need, T constant, const T* a, const T* b, int64_t count) {
    // Two of them, so that one's latency hides behind the other.
    Register best[2] = {V::Set(start), V::Set(start)};
    const Register plus = V::Set(constant);
    const auto fold = [&](int64_t at, Register* into) {
      const Register sides = V::Max(V::LoadAny(a + at), V::LoadAny(b + at));
      *into = V::Min(*into, V::Max(V::Add(V::LoadAny(need + at), plus), sides));
    };
    int64_t i = 0;
    for (; i + 2 * V::kLanes <= count; i += 2 * V::kLanes) {
      fold(i, &best[0]);
      fold(i + V::kLanes, &best[1]);
    }
    for (; i + V::kLanes <= count; i += V::kLanes) fold(i, &best[0]);
    alignas(kChunkBytes) T lanes[V::kLanes];
    V::Store(lanes, V::Min(best[0], best[1]));
    T least = lanes[0];
    for (int lane = 1; lane < V::kLanes; ++lane) least = lanes[lane] < least ? lanes[lane] : least;
    for (; i < count; ++i) {
      T most = need[i] + constant;
      most = a[i] > most ? a[i] : most;
      most = b[i] > most ? b[i] : most;
      least = most < least ? most : least;
    }
    return least;
  }

  static constexpr MinPlusKernel<T> Kernel() {
    return {&ComputeTile, &ShiftTile, &FillLeft, &MinPlusRow, &MinRow, &MinMax};
  }
};

// Registers of kBytes as the compiler's vectors, of which kRowsOfTile x 4 fit the processor.
template <class T, int kBytes, int kRowsOfTile>
struct Vectors {
  using Value = T;
  typedef T Register __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  typedef T Aligned __attribute__((vector_size(kBytes), may_alias));
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kColumns = 4;

  static Register Load(const T* from) { return *reinterpret_cast<const Aligned*>(from); }
  static Register LoadAny(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void Store(T* to, Register value) { *reinterpret_cast<Aligned*>(to) = value; }
  static void StoreAny(T* to, Register value) { *reinterpret_cast<Unaligned*>(to) = value; }
  static Register Set(T value) { return Register{} + value; }
  static Register Add(Register a, Register b) { return a + b; }
  static Register Min(Register a, Register b) { return a < b ? a : b; }
  static Register Max(Register a, Register b) { return a > b ? a : b; }

  // The four rows by way of memory, for instruction sets without a permutation of two registers.
  static void Shift(const ShiftedRow<T>& row, T* into) {
    constexpr int kWidth = stowage::kLanes<T>;
    alignas(kChunkBytes) T both[2 * kTile * kWidth];
    for (int c = 0; c < kTile; ++c) {
      for (int lane = 0; lane < kWidth; lane += kLanes) {
        Store(both + 2 * c * kWidth + lane, Load(row.low + c * kWidth + lane));
        Store(both + (2 * c + 1) * kWidth + lane, Load(row.high + c * kWidth + lane));
      }
    }
    for (int c = 0; c < kTile; ++c) {
      const T* from = both + (2 * c + 1) * kWidth - row.shift;
      for (int lane = 0; lane < kWidth; lane += kLanes)
        Store(into + c * kWidth + lane, LoadAny(from + lane));
    }
  }
};

}  // namespace
}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_IMPL_H_
