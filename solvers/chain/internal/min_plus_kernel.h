// The inner loops of the discretised recurrence (Beaumont et al. 2019, Theorem 1), compiled once
// per instruction set. Internal to solvers/chain.
//
// Time is cut into values T above the ideal, memory into chunks of kLanes<T> slots. Within a chunk
// the recurrence is a min-plus product of triangular matrices whose elements are chunks,
//
//   row(s, t) = min over splits s' of left(s, s') + right(s', t),
//   left(s, s') = forward time of s..s'-1 + C(s, s'-1, m),   right(s', t) = C(s', t, m - a^{s'-1}),
//
// and is computed in tiles of 4 x 4 rows held in registers. Indices count from 0 here: stage s of
// the paper is s - 1, and a split s' is the first stage of the right part.
//
// What includes this file for an instruction set that not every machine has must not include
// anything with inline functions of the standard library: the linker might keep that copy.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_H_

#include <stdint.h>

namespace stowage {

inline constexpr int kTile = 4;
inline constexpr int kChunkBytes = 64;
template <class T>
inline constexpr int kLanes = kChunkBytes / static_cast<int>(sizeof(T));
// Values of a tile: [s][t][lane].
template <class T>
inline constexpr int kTileValues = kTile* kTile* kLanes<T>;

// A value that stands for "does not fit". Two of them add up without overflow, and all sums below
// it are exact.
template <class T>
inline constexpr T kInfinityAs = T{0};
template <>
inline constexpr int32_t kInfinityAs<int32_t> = (int32_t{1} << 30) - 1;
template <>
inline constexpr double kInfinityAs<double> = 4503599627370496.0;  // 2^52
template <>
inline constexpr int64_t kInfinityAs<int64_t> = int64_t{1} << 61;

// Four rows of one tile (the same s, four t), `shift` lanes up: lanes below `shift` come from the
// end of `low`, the others from the start of `high`.
template <class T>
struct ShiftedRow {
  const T* low;
  const T* high;
  int shift;
};

// One tile of one chunk: rows s = s0..s0+3, columns t = t0..t0+3. All chunks are 64-byte aligned.
template <class T>
struct TileJob {
  int s0, t0;
  int stages;        // rows and columns from here on are padding
  int first_memory;  // of the chunk

  // No padding, not on the diagonal, and all that follows below is allowed in every row and lane.
  bool free;

  // Splits begin..free_end are allowed in every row and lane, up to masked_end in some. From
  // zero_begin on the right side is 0 and not stored.
  int begin, free_end, masked_end, zero_begin;

  const T* forward;                // forward time of the stages before s
  const T* until;                  // the same where that of stage s-1 may stop early
  const int32_t* gradient;         // delta^t
  const int32_t* saving_need;      // m_all, its part under delta^t ...
  const int32_t* backward_need;    // ... and the other
  const int32_t* leaf_need;        // m_all(s, s)
  const int32_t* run_need[kTile];  // m_0 without delta^t, by split
  const T* penalty;                // [0..kLanes][lane]: never below that lane, else 0

  T* left;                  // of these rows: [split][row][lane]
  const T* right;           // of these columns: [split][column][lane]
  const T* diagonal_right;  // the same from split t0 on
  T* right_tile;            // the same from split s0 on: written
  const T* before;          // C of this tile one chunk below: more memory is never slower
  T* out;                   // C of this tile: written

  ShiftedRow<T> keep[kTile];  // C(s + 1, t, m - saved)
  ShiftedRow<T> own[kTile];   // C(s, t, m - a^{s-1})
};

template <class T>
struct MinPlusKernel {
  void (*compute_tile)(const TileJob<T>& job);
  // right_tile = the four shifted rows.
  void (*shift_tile)(const ShiftedRow<T>* rows, T* right_tile);
  // left for splits t0+1..t0+4 where C is 0, without the padding.
  void (*fill_left)(const TileJob<T>& job);
  // into[i] = min(into[i], min(constant + a[i], never) + b[i]), rows apart from each other.
  void (*min_plus_row)(T* into, const T* a, const T* b, T constant, int64_t count);
  // The same with b = 0.
  void (*min_row)(T* into, const T* a, T constant, int64_t count);
  // min of `start` and over i of max(need[i] + constant, a[i], b[i]).
  T (*min_max)(T start, const T* need, T constant, const T* a, const T* b, int64_t count);
};

struct MinPlusKernels {
  const char* name;
  MinPlusKernel<int32_t> narrow;
  MinPlusKernel<double> real;
  MinPlusKernel<int64_t> wide;
};

extern const MinPlusKernels kGenericKernels;
#if defined(__x86_64__)
extern const MinPlusKernels kAvx2Kernels;
extern const MinPlusKernels kAvx512Kernels;
#endif

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_KERNEL_H_
