// What a server's memory took over time, and whether it stays so.
#ifndef STOWAGE_TESTS_BENCH_LOAD_MEMORY_TRAIL_H_
#define STOWAGE_TESTS_BENCH_LOAD_MEMORY_TRAIL_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace stowage {

// The rule of MemoryTrail::Judge in words, for a page.
inline constexpr char kFlatMemoryRule[] =
    "memory is flat where the median of the last quarter of the time is at most that of the second "
    "quarter, a tenth of it and 16 MiB; of a server that has run for half of the time since its "
    "last start that time counts, of others all their lives one after the other";

struct MemoryVerdict {
  double from_second = 0;  // where the time that is judged begins
  int64_t early_bytes = 0;
  int64_t late_bytes = 0;

  int64_t most_bytes() const { return early_bytes + early_bytes / 10 + (int64_t{16} << 20); }
  bool is_flat() const { return late_bytes <= most_bytes(); }
};

// Seconds are those of the whole run, and do not fall. Not thread-safe.
class MemoryTrail {
 public:
  // Another process from now on.
  void Started(double second) { started_ = second; }
  void Saw(double second, int64_t resident_bytes);

  // By kFlatMemoryRule: the first quarter is for caches, threads and the allocator to find their size.
  // Nothing where too little was seen.
  std::optional<MemoryVerdict> Judge(double end_second) const;
  int64_t most_bytes() const;

 private:
  struct Look {
    double second;
    int64_t bytes;
  };

  std::optional<int64_t> MedianOf(double from_second, double to_second) const;

  double started_ = 0;
  std::vector<Look> looks_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_MEMORY_TRAIL_H_
