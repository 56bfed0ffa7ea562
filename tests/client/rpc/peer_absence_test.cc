#include "client/rpc/peer_absence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace stowage {
namespace {

using std::chrono::seconds;
using AbsentTurn = PeerAbsence::Turn;

class PeerAbsenceTest : public ::testing::Test {
 protected:
  AbsentTurn Next() { return absence_.Next(now_); }
  void Missed(AbsentTurn turn) { absence_.Missed(turn, now_); }

  PeerAbsence absence_{seconds(5), seconds(15)};
  PeerAbsence::Clock::time_point now_ = PeerAbsence::Clock::time_point() + std::chrono::hours(1);
};

TEST_F(PeerAbsenceTest, OneThatIsThereIsAskedByAll) {
  EXPECT_EQ(Next(), AbsentTurn::kAsk);
  absence_.Heard();
  EXPECT_EQ(Next(), AbsentTurn::kAsk);
}

TEST_F(PeerAbsenceTest, OneThatIsMissedIsLeftAloneAndThenAskedByOne) {
  Missed(Next());
  now_ += seconds(5) - std::chrono::nanoseconds(1);
  EXPECT_EQ(Next(), AbsentTurn::kLeave);
  now_ += std::chrono::nanoseconds(1);
  EXPECT_EQ(Next(), AbsentTurn::kProbe);
  EXPECT_EQ(Next(), AbsentTurn::kLeave) << "the other one finds out";
  // One that never ends says nothing, and keeps nobody else from finding out.
  now_ += seconds(5);
  EXPECT_EQ(Next(), AbsentTurn::kProbe);
}

TEST_F(PeerAbsenceTest, OneThatIsHeardOfIsAskedAgainAndItsPausesBeginAnew) {
  Missed(Next());
  now_ += seconds(5);
  Missed(Next());
  EXPECT_EQ(Next(), AbsentTurn::kLeave);
  absence_.Heard();  // by whoever asked all the same
  EXPECT_EQ(Next(), AbsentTurn::kAsk);
  Missed(AbsentTurn::kAsk);
  now_ += seconds(5);
  EXPECT_EQ(Next(), AbsentTurn::kProbe);
}

TEST_F(PeerAbsenceTest, PausesGrowUpToABound) {
  Missed(Next());
  now_ += seconds(5);
  for (const seconds pause : {seconds(10), seconds(15), seconds(15)}) {
    ASSERT_EQ(Next(), AbsentTurn::kProbe);
    Missed(AbsentTurn::kProbe);
    now_ += pause - seconds(1);
    EXPECT_EQ(Next(), AbsentTurn::kLeave) << pause.count();
    now_ += seconds(1);
  }
}

TEST_F(PeerAbsenceTest, WhoWasNotToFindOutPutsNothingOff) {
  Missed(Next());
  now_ += seconds(4);
  Missed(AbsentTurn::kAsk);  // a call from before
  Missed(AbsentTurn::kLeave);
  now_ += seconds(1);
  EXPECT_EQ(Next(), AbsentTurn::kProbe);
}

// It had begun before, and took longer than the pause: its next try is to go elsewhere.
TEST_F(PeerAbsenceTest, OneThatIsMissedAfterAPauseIsLeftAloneForAnother) {
  for (const AbsentTurn turn : {AbsentTurn::kAsk, AbsentTurn::kLeave}) {
    absence_.Heard();
    Missed(Next());
    now_ += seconds(5);
    ASSERT_EQ(Next(), AbsentTurn::kProbe);
    Missed(AbsentTurn::kProbe);
    now_ += seconds(12);
    Missed(turn);
    now_ += seconds(9);
    EXPECT_EQ(Next(), AbsentTurn::kLeave) << "as long as the one before";
    now_ += seconds(1);
    EXPECT_EQ(Next(), AbsentTurn::kProbe);
  }
}

TEST_F(PeerAbsenceTest, OfManyThreadsOneFindsOut) {
  Missed(Next());
  now_ += seconds(5);
  std::atomic<int> probes{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (Next() == AbsentTurn::kProbe) ++probes;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(probes, 1);
}

}  // namespace
}  // namespace stowage
