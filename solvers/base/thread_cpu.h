// The CPU time that the calling thread has taken so far.
#ifndef STOWAGE_SOLVERS_BASE_THREAD_CPU_H_
#define STOWAGE_SOLVERS_BASE_THREAD_CPU_H_

#include <time.h>

#include <cstdint>

namespace stowage {

// In nanoseconds. Costs a system call.
inline int64_t ThreadCpuNanos() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_THREAD_CPU_H_
