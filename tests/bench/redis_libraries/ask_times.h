// How long GETs take through a library for Redis: the same loop for each library, for `run` to start.
//
//   PROGRAM once PORT TIMEOUT_MS       one GET, of a server that may answer badly, and what has come of it
//   PROGRAM many PORT TIMEOUT_MS KEY   kAsks GETs of that key, one after the other, after a tenth as many
//
// One line of JSON. The standard library alone: one of the programs is compiled without the rest of the repository.
#ifndef STOWAGE_TESTS_BENCH_REDIS_LIBRARIES_ASK_TIMES_H_
#define STOWAGE_TESTS_BENCH_REDIS_LIBRARIES_ASK_TIMES_H_

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace stowage::testing {

// Of one GET.
struct GotValue {
  bool ok = false;
  size_t bytes = 0;  // of the value
};

using GetValue = std::function<GotValue(const std::string& key)>;
// Connects to that port of 127.0.0.1 when first asked.
using MakeGetValue = std::function<GetValue(int port, std::chrono::milliseconds timeout)>;

inline double SecondsOf(const GetValue& get, const std::string& key, GotValue* got) {
  const auto start = std::chrono::steady_clock::now();
  *got = get(key);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of this process, ever.
inline double PeakMiB() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

inline int AskOnce(const GetValue& get) {
  GotValue got;
  const double seconds = SecondsOf(get, "key", &got);
  std::printf("{\"seconds\": %.4f, \"ok\": %s, \"bytes\": %zu, \"peak_mib\": %.1f}\n", seconds,
              got.ok ? "true" : "false", got.bytes, PeakMiB());
  return 0;
}

inline int AskMany(const GetValue& get, const std::string& key) {
  constexpr size_t kAsks = 20000;
  std::vector<double> seconds;
  GotValue got;
  for (size_t i = 0; i < kAsks + kAsks / 10; ++i) {
    const double one = SecondsOf(get, key, &got);
    if (!got.ok) {
      std::fprintf(stderr, "GET %s: no value\n", key.c_str());
      return 1;
    }
    if (i >= kAsks / 10) seconds.push_back(one);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"bytes\": %zu}\n", 1e6 * seconds[kAsks / 2],
              1e6 * seconds[kAsks * 99 / 100], got.bytes);
  return 0;
}

inline int AskTimes(int argc, char** argv, const MakeGetValue& make) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (!(what == "once" && argc == 4) && !(what == "many" && argc == 5)) {
    std::fprintf(stderr, "usage: %s once PORT TIMEOUT_MS | many PORT TIMEOUT_MS KEY\n", argv[0]);
    return 2;
  }
  const GetValue get = make(std::atoi(argv[2]), std::chrono::milliseconds(std::atoi(argv[3])));
  return what == "once" ? AskOnce(get) : AskMany(get, argv[4]);
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_BENCH_REDIS_LIBRARIES_ASK_TIMES_H_
