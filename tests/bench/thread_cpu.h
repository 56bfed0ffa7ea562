// The CPU time of the calling thread so far.
#ifndef STOWAGE_TESTS_BENCH_THREAD_CPU_H_
#define STOWAGE_TESTS_BENCH_THREAD_CPU_H_

#include <time.h>

#include <cstdint>

#include "solvers/model/units.h"

namespace stowage {

inline Nanos ThreadCpu() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Nanos(int64_t{now.tv_sec} * 1000000000 + now.tv_nsec);
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_THREAD_CPU_H_
