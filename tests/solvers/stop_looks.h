// Deadlines that pass at a look at the token instead of at a time: a solve ends at the same step on every machine.
#ifndef STOWAGE_TESTS_SOLVERS_STOP_LOOKS_H_
#define STOWAGE_TESTS_SOLVERS_STOP_LOOKS_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/status/status.h"
#include "solvers/base/stop_token.h"

namespace stowage::testing {

// `solve`, of a token, works on one thread and has nothing to answer with before its end: it says so at the look at
// which the deadline passes and looks no more. Shorter solves are through before a look.
template <class Solve>
void ExpectToEndAtTheLook(const Solve& solve) {
  for (const int64_t look : {1, 2, 3, 10, 50}) {
    StopToken stop;
    stop.PassDeadlineAtLook(look);
    const absl::Status status = solve(stop);
    if (stop.looks() < look) {
      EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
      return;
    }
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status << " after look " << look;
    EXPECT_EQ(stop.looks(), look);
  }
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_STOP_LOOKS_H_
