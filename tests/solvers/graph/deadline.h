// How long a solve that has a deadline goes on for.
#ifndef STOWAGE_TESTS_SOLVERS_GRAPH_DEADLINE_H_
#define STOWAGE_TESTS_SOLVERS_GRAPH_DEADLINE_H_

#include <chrono>
#include <functional>

#include "solvers/solver.h"

namespace stowage::testing {

// More than the 50 ms between polls, for machines slower than those the polls were set on.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kDeadlineSlack = 2.5;
#else
constexpr double kDeadlineSlack = 0.25;
#endif

// Seconds of this thread's processor time that `solve` takes of a token that runs out after `given`:
// the least of up to three runs, as soon as one is within the slack. Other processes do not count.
double SecondsUnderDeadline(std::chrono::milliseconds given,
                            const std::function<void(const StopToken*)>& solve);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_GRAPH_DEADLINE_H_
