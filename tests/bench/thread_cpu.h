// The CPU time of the calling thread so far.
#ifndef STOWAGE_TESTS_BENCH_THREAD_CPU_H_
#define STOWAGE_TESTS_BENCH_THREAD_CPU_H_

#include "solvers/base/thread_cpu.h"
#include "solvers/model/units.h"

namespace stowage {

inline Nanos ThreadCpu() { return Nanos(ThreadCpuNanos()); }

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_THREAD_CPU_H_
