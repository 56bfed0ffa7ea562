// Work on a few threads.
#ifndef STOWAGE_TESTS_BENCH_PARALLEL_H_
#define STOWAGE_TESTS_BENCH_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace stowage {

// make(0), ..., make(count - 1) on `threads` threads, in this order in the answer; the first error
// ends it. `done` is told each result when there is one, one at a time.
template <class Result, class Make, class Done>
absl::StatusOr<std::vector<Result>> MakeAll(size_t count, int threads, const Make& make,
                                            const Done& done) {
  std::vector<std::optional<Result>> results(count);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  absl::Status status;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      absl::StatusOr<Result> result = make(i);
      const std::lock_guard<std::mutex> lock(mutex);
      if (!result.ok()) {
        status.Update(result.status());
        next = count;
        return;
      }
      done(*result);
      results[i] = *std::move(result);
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (!status.ok()) return status;
  std::vector<Result> all;
  all.reserve(count);
  for (std::optional<Result>& result : results) all.push_back(*std::move(result));
  return all;
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_PARALLEL_H_
