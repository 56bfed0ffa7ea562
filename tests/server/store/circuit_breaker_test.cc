#include "server/store/circuit_breaker.h"

#include <gtest/gtest.h>

#include <set>

namespace stowage::testing {
namespace {

using Clock = CircuitBreaker::Clock;
using Pass = CircuitBreaker::Pass;
using std::chrono::milliseconds;

constexpr BreakerOptions kOptions{3, milliseconds(100), milliseconds(400)};
const Clock::time_point kStart = Clock::time_point() + std::chrono::hours(1);

void Open(CircuitBreaker* breaker) {
  for (int i = 0; i < kOptions.failures; ++i) {
    ASSERT_NE(breaker->Admit(kStart), Pass::kNo);
    breaker->Failed(kStart);
  }
}

// When it admits again, in milliseconds after `from`.
int64_t PauseAfter(CircuitBreaker* breaker, Clock::time_point from) {
  int64_t pause = 0;
  while (breaker->Admit(from + milliseconds(pause)) == Pass::kNo) ++pause;
  return pause;
}

TEST(CircuitBreaker, OpensAfterFailuresInARow) {
  CircuitBreaker breaker(kOptions, 1);
  for (int i = 0; i < 10; ++i) {
    breaker.Failed(kStart);
    breaker.Failed(kStart);
    breaker.Succeeded();
  }
  EXPECT_FALSE(breaker.open());
  Open(&breaker);
  EXPECT_TRUE(breaker.open());
  EXPECT_EQ(breaker.Admit(kStart), Pass::kNo);
}

TEST(CircuitBreaker, OneProbeAtATime) {
  CircuitBreaker breaker(kOptions, 1);
  Open(&breaker);
  const Clock::time_point later = kStart + milliseconds(100);
  EXPECT_NE(breaker.Admit(later), Pass::kNo);
  EXPECT_EQ(breaker.Admit(later), Pass::kNo);
  EXPECT_EQ(breaker.Admit(later + std::chrono::hours(1)), Pass::kNo);
  breaker.Succeeded();
  EXPECT_FALSE(breaker.open());
  EXPECT_NE(breaker.Admit(later), Pass::kNo);
  EXPECT_NE(breaker.Admit(later), Pass::kNo);
}

TEST(CircuitBreaker, WhatWasNotTriedCountsAsNothing) {
  CircuitBreaker breaker(kOptions, 1);
  for (int i = 0; i < 10; ++i) {
    const Pass pass = breaker.Admit(kStart);
    ASSERT_EQ(pass, Pass::kYes);
    breaker.NotTried(pass);
  }
  EXPECT_FALSE(breaker.open());
  Open(&breaker);
  const Clock::time_point later = kStart + milliseconds(100);
  EXPECT_EQ(breaker.Admit(later), Pass::kProbe);
  breaker.NotTried(Pass::kYes);  // of one from before it opened, which the probe outlives
  EXPECT_EQ(breaker.Admit(later), Pass::kNo);
  breaker.NotTried(Pass::kProbe);
  EXPECT_TRUE(breaker.open());
  EXPECT_NE(breaker.Admit(later), Pass::kNo) << "the next one is the probe";
  breaker.Failed(later);
  EXPECT_EQ(breaker.Admit(later), Pass::kNo);
}

TEST(CircuitBreaker, ThePauseDoublesUpToABoundAndStartsOver) {
  CircuitBreaker breaker(kOptions, 1);
  Open(&breaker);
  Clock::time_point now = kStart;
  for (const int64_t nominal : {100, 200, 400, 400, 400}) {
    const int64_t pause = PauseAfter(&breaker, now);
    EXPECT_GE(pause, nominal / 2);
    EXPECT_LE(pause, nominal);
    now += milliseconds(pause);
    breaker.Failed(now);
  }
  now += milliseconds(PauseAfter(&breaker, now));
  breaker.Succeeded();
  Open(&breaker);
  EXPECT_LE(PauseAfter(&breaker, kStart), 100);
}

TEST(CircuitBreaker, ServersDoNotComeBackAllAtOnce) {
  std::set<int64_t> pauses;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CircuitBreaker breaker(kOptions, seed);
    Open(&breaker);
    pauses.insert(PauseAfter(&breaker, kStart));
  }
  EXPECT_GT(pauses.size(), 15u);
}

TEST(CircuitBreaker, ALateSuccessOfACallFromBeforeDoesNotClose) {
  CircuitBreaker breaker(kOptions, 1);
  ASSERT_NE(breaker.Admit(kStart), Pass::kNo);
  Open(&breaker);
  breaker.Succeeded();
  EXPECT_TRUE(breaker.open());
  EXPECT_EQ(breaker.Admit(kStart), Pass::kNo);
}

TEST(CircuitBreaker, LateFailuresDoNotLengthenThePause) {
  CircuitBreaker breaker(kOptions, 1);
  Open(&breaker);
  for (int i = 0; i < 10; ++i) breaker.Failed(kStart + milliseconds(40));
  EXPECT_LE(PauseAfter(&breaker, kStart), 100);
}

}  // namespace
}  // namespace stowage::testing
