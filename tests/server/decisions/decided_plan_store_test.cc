// What a server does with decisions: its own and others', when they cannot be kept or told, and what
// becomes of solves that were under way.
#include "server/decisions/decided_plan_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/entries/planning_error.h"
#include "server/entries/revisions.h"
#include "tests/server/decisions/questions.h"
#include "tests/server/decisions/shared_tier.h"
#include "tests/server/store/plan_store_conformance.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

std::shared_ptr<DecisionBook> BookOver(std::unique_ptr<DecisionStore> own,
                                       std::unique_ptr<SharedDecisions> shared) {
  static NoMetrics no_metrics;
  auto book = DecisionBook::Open(std::move(own), std::move(shared), &no_metrics);
  EXPECT_TRUE(book.ok()) << book.status();
  return book.ok() ? *std::move(book) : nullptr;
}

std::unique_ptr<PlanStore> DecidedMemory() {
  return std::make_unique<DecidedPlanStore>(
      std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
      BookOver(std::make_unique<MemoryDecisionStore>(), nullptr));
}

std::unique_ptr<PlanStore> DecidedAndShared() {
  static auto* const kDecisions = new DecisionsInProcess;
  kDecisions->Flush();
  const auto book = BookOver(std::make_unique<MemoryDecisionStore>(), kDecisions->Reach());
  auto shared = std::make_unique<ComparingPlanStore>(
      std::make_unique<MemoryPlanStore>(Bytes(64 << 20)), book);
  return std::make_unique<DecidedPlanStore>(
      std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
                                        std::move(shared), std::chrono::microseconds(1)),
      book);
}

// Not sized: what a deletion has ended may lie in the tiers, where nobody finds it.
INSTANTIATE_TEST_SUITE_P(Decided, PlanStoreConformance,
                         ::testing::Values(StoreFactory{"Memory", DecidedMemory, false},
                                           StoreFactory{"Shared", DecidedAndShared, false}),
                         [](const auto& store) { return store.param.name; });

TEST(DecisionBook, HoldsAnEntryForItsTenant) {
  using Keys = std::vector<PlanKey>;
  const auto book = BookOver(std::make_unique<MemoryDecisionStore>(), nullptr);
  PlanEntry before = *TwoRevisions();
  before.tenant = "vision";
  PlanEntry after = before;
  after.frozen = true;
  ++after.generation;
  ASSERT_TRUE(book->Decide(Key(), 0, DecisionsBetween(before, after)).ok());
  EXPECT_EQ(book->Held(std::nullopt, std::nullopt, 10), Keys{Key()});
  EXPECT_EQ(book->Held("vision", std::nullopt, 10), Keys{Key()});
  EXPECT_EQ(book->Held("vision", Key(), 10), Keys());
  EXPECT_EQ(book->Held("speech", std::nullopt, 10), Keys());
  EXPECT_TRUE(absl::IsAborted(book->Decide(Key(), 0, {DeletionOf(after.generation, 0)})));
  const uint64_t edition = book->Find(Key())->edition;
  ASSERT_TRUE(book->Decide(Key(), edition, {DeletionOf(after.generation, 0)}).ok());
  EXPECT_EQ(book->Held("vision", std::nullopt, 10), Keys());
  EXPECT_EQ(book->Held(std::nullopt, std::nullopt, 10), Keys());
}

int64_t ServingAt(DecidingServer* server) {
  const auto plan = server->service->GetPlan({Key()}, kJustShort);
  return plan.ok() ? plan->plan->revision : 0;
}

absl::Status Pin(DecidingServer* server, int64_t revision, PinAction action = PinAction::kPin) {
  return server->admin->Pin(Administrator(), Key(), {kJustShort, revision}, action);
}

absl::StatusOr<bool> Delete(DecidingServer* server) {
  return server->admin->Delete(Administrator(), Key());
}

bool Waits(const std::function<bool()>& done) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Two servers that have the entry.
class TwoServers : public ::testing::Test {
 protected:
  TwoServers() {
    EXPECT_TRUE(a_->store->Put(Key(), before_).ok());
    EXPECT_EQ(ServingAt(b_.get()), 1);
  }

  TierInProcess shared_;
  const std::shared_ptr<const PlanEntry> before_ = TwoRevisions();
  std::unique_ptr<DecidingServer> a_ = std::make_unique<DecidingServer>(&shared_);
  std::unique_ptr<DecidingServer> b_ = std::make_unique<DecidingServer>(&shared_);
};

TEST_F(TwoServers, ADecisionReachesTheOtherOneAndSoDoesItsUndoing) {
  ASSERT_TRUE(Pin(a_.get(), 2).ok());
  EXPECT_EQ(ServingAt(b_.get()), 2);
  ASSERT_TRUE(Pin(b_.get(), 2, PinAction::kUnpin).ok());
  EXPECT_EQ(ServingAt(a_.get()), 1);
  shared_.Flush();
  // Also against the one who knows the pin alone.
  EXPECT_EQ(ServingAt(b_.get()), 1);
  EXPECT_EQ(ServingAt(a_.get()), 1);
  ASSERT_TRUE(Pin(a_.get(), 0, PinAction::kFreeze).ok());
  EXPECT_TRUE(b_->store->Get(Key(), Access::kPeek)->frozen);
  ASSERT_TRUE(Pin(b_.get(), 0, PinAction::kUnfreeze).ok());
  b_->book->Upkeep();
  shared_.Flush();
  b_->book->Upkeep();
  EXPECT_FALSE(a_->store->Get(Key(), Access::kPeek)->frozen);
}

// Nobody asks the one that knows it about the key.
TEST_F(TwoServers, UpkeepTellsTheOthersWhenWhatIsSharedWasLost) {
  ASSERT_TRUE(*Delete(a_.get()));
  a_->book->Upkeep();
  const int tells = shared_.decisions()->tells();
  a_->book->Upkeep();
  EXPECT_EQ(shared_.decisions()->tells(), tells) << "once is enough";
  shared_.Flush();
  EXPECT_EQ(ServingAt(b_.get()), 1) << "it cannot know";
  a_->book->Upkeep();
  EXPECT_EQ(ServingAt(b_.get()), 0);
}

// The mark stays, which says nothing of the other keys then.
TEST_F(TwoServers, UpkeepTellsAgainWhatMayHaveBeenEvictedAlone) {
  ASSERT_TRUE(*Delete(a_.get()));
  a_->book->Upkeep();
  shared_.decisions()->Forget(Key());
  a_->book->Upkeep();
  EXPECT_EQ(ServingAt(b_.get()), 1) << "it cannot know";
  for (int i = 0; i < DecisionBook::kUpkeepsPerLook; ++i) a_->book->Upkeep();
  EXPECT_EQ(ServingAt(b_.get()), 0);
}

// What the one has told already, and has not written to the tiers yet, the other one has not read.
TEST_F(TwoServers, AChangeUndoesNoDecisionThatItWasNotMadeOf) {
  const auto read = b_->store->Get(Key(), Access::kUpdate);
  PlanEntry pinned = *read;
  pinned.plans[1].pinned = true;
  ++pinned.generation;
  ASSERT_TRUE(a_->book->Decide(Key(), 0, DecisionsBetween(*read, pinned)).ok());
  auto frozen = std::make_shared<PlanEntry>(*read);
  frozen->frozen = true;
  ++frozen->generation;
  EXPECT_TRUE(
      absl::IsAborted(b_->store->Replace(Key(), read->generation, frozen, Durability::kRequired)));
  EXPECT_TRUE(absl::IsAborted(b_->store->EraseRead(Key(), *read).status()));
  ASSERT_TRUE(Pin(b_.get(), 0, PinAction::kFreeze).ok()) << "of what is there now";
  for (DecidingServer* server : {a_.get(), b_.get()}) {
    EXPECT_EQ(ServingAt(server), 2);
    EXPECT_TRUE(server->store->Get(Key(), Access::kPeek)->frozen);
  }
}

TEST_F(TwoServers, OfDecisionsThatDidNotKnowOfEachOtherBothCount) {
  ASSERT_TRUE(Pin(a_.get(), 2).ok());
  shared_.Flush();
  ASSERT_TRUE(Pin(b_.get(), 0, PinAction::kFreeze).ok());
  for (DecidingServer* server : {a_.get(), b_.get(), a_.get()}) {
    server->book->Upkeep();
    server->book->Compare(Key());
  }
  for (DecidingServer* server : {a_.get(), b_.get()}) {
    EXPECT_EQ(ServingAt(server), 2);
    EXPECT_TRUE(server->store->Get(Key(), Access::kPeek)->frozen);
  }
}

TEST_F(TwoServers, ADeletionEndsAPinThatItDidNotKnow) {
  ASSERT_TRUE(Pin(a_.get(), 2).ok());
  shared_.Flush();
  ASSERT_TRUE(*Delete(b_.get()));
  EXPECT_EQ(ServingAt(a_.get()), 0);
  shared_.Flush();
  EXPECT_EQ(ServingAt(a_.get()), 0);
  EXPECT_EQ(ServingAt(b_.get()), 0);
}

TEST_F(TwoServers, WhatCannotBeToldIsRefusedAndHasNotHappened) {
  shared_.decisions()->SetOut(true);
  const auto refused = [](const absl::Status& status) {
    EXPECT_EQ(PlanningReason(status), "STORE_UNAVAILABLE") << status;
  };
  refused(Pin(a_.get(), 2));
  refused(Delete(a_.get()).status());
  EXPECT_EQ(a_->book->Find(Key()), nullptr);
  EXPECT_EQ(ServingAt(a_.get()), 1);
  shared_.decisions()->SetOut(false);
  EXPECT_EQ(ServingAt(a_.get()), 1);
  EXPECT_EQ(ServingAt(b_.get()), 1);
}

// It may have been told.
TEST_F(TwoServers, WhatWasRefusedBecauseAnAnswerWasLostIsWithdrawn) {
  for (const bool deletes : {false, true}) {
    shared_.decisions()->LoseAnswers(true);
    const absl::Status refused = deletes ? Delete(a_.get()).status() : Pin(a_.get(), 2);
    EXPECT_EQ(PlanningReason(refused), "STORE_UNAVAILABLE") << refused;
    shared_.decisions()->LoseAnswers(false);
    EXPECT_EQ(ServingAt(a_.get()), 1) << deletes;
    EXPECT_EQ(ServingAt(b_.get()), 1) << deletes;
    shared_.Flush();
    EXPECT_EQ(ServingAt(a_.get()), 1) << deletes;
  }
  EXPECT_TRUE(Pin(a_.get(), 2).ok());
  EXPECT_EQ(ServingAt(b_.get()), 2);
}

class DiskFull : public ::testing::Test {
 protected:
  DiskFull() { EXPECT_TRUE(plans_.Put(Key(), before_).ok()); }
  // What a server that begins now finds.
  size_t Written() const { return disk_->Load()->size(); }

  const std::shared_ptr<const PlanEntry> before_ = TwoRevisions();
  NoMetrics metrics_;
  std::atomic<bool> full_{false};
  const std::shared_ptr<MemoryDecisionStore> disk_ = std::make_shared<MemoryDecisionStore>();
  DecisionsInProcess shared_;
  const std::shared_ptr<DecisionBook> book_ =
      BookOver(std::make_unique<UnreliableStore>(disk_, &full_), shared_.Reach());
  MemoryPlanStore plans_{Bytes(64 << 20)};
  DecidedPlanStore store_{std::make_unique<ForwardingStore>(Borrowed(&plans_)), book_};
  PlanAdmin admin_{&store_, &metrics_, nullptr};
};

TEST_F(DiskFull, WhatCannotBeWrittenIsRefusedAndHasNotHappened) {
  full_ = true;
  for (const PinAction action : {PinAction::kPin, PinAction::kFreeze}) {
    const absl::Status refused = admin_.Pin(Administrator(), Key(), {kJustShort, 2}, action);
    EXPECT_EQ(PlanningReason(refused), "STORE_UNAVAILABLE") << refused;
  }
  EXPECT_EQ(PlanningReason(admin_.Delete(Administrator(), Key()).status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(store_.Get(Key(), Access::kLookup), before_) << "not even in memory";
  EXPECT_EQ(shared_.tells(), 0) << "nor told";
  full_ = false;
  EXPECT_EQ(Written(), 0u);
  EXPECT_TRUE(admin_.Pin(Administrator(), Key(), {kJustShort, 2}, PinAction::kPin).ok());
  EXPECT_EQ(Written(), 1u);
}

TEST_F(DiskFull, WhatWasLearnedCountsAndIsWrittenWhenItCanBe) {
  const auto other = BookOver(std::make_unique<MemoryDecisionStore>(), shared_.Reach());
  ASSERT_TRUE(other->Decide(Key(), 0, {DeletionOf(before_->generation, 0)}).ok());
  full_ = true;
  book_->Compare(Key());
  EXPECT_EQ(store_.Get(Key(), Access::kLookup), nullptr);
  book_->Upkeep();
  EXPECT_EQ(Written(), 0u);
  full_ = false;
  book_->Upkeep();
  EXPECT_EQ(Written(), 1u);
}

// On the hot path, where nobody waits.
TEST_F(DiskFull, WhatIsNotWaitedForIsAsDecided) {
  const auto now = [this] { return store_.GetNow(Key(), Access::kLookup); };
  EXPECT_EQ(*now(), before_);
  ASSERT_TRUE(admin_.Pin(Administrator(), Key(), {kJustShort, 2}, PinAction::kPin).ok());
  ASSERT_TRUE(*plans_.Erase(Key()));
  EXPECT_FALSE(now().has_value()) << "it is to be put back first";
  ASSERT_NE(store_.Get(Key(), Access::kLookup), nullptr);
  EXPECT_NE(plans_.Get(Key(), Access::kPeek), nullptr);
  ASSERT_TRUE(*plans_.Erase(Key()));
  ASSERT_TRUE(plans_.Put(Key(), before_).ok());
  const auto pinned = now();
  ASSERT_TRUE(pinned && *pinned);
  EXPECT_NE(PinnedRevision(**pinned, kJustShort), nullptr);
  EXPECT_EQ(*now(), *pinned) << "made once";
  ASSERT_TRUE(*admin_.Delete(Administrator(), Key()));
  ASSERT_TRUE(plans_.Put(Key(), before_).ok());
  ASSERT_TRUE(now().has_value());
  EXPECT_EQ(*now(), nullptr);
}

// Who deletes while a solve is under way.
enum class Deletes { kThisServer, kTheOther };

class DeletedDuring : public TwoServers, public ::testing::WithParamInterface<Deletes> {
 protected:
  void DeleteNow() {
    ASSERT_TRUE(*Delete(GetParam() == Deletes::kThisServer ? a_.get() : b_.get()));
  }
  // Nothing has come back, and what is asked later is solved anew and kept.
  void ExpectDeletedAndSolvedAnew() {
    for (DecidingServer* server : {a_.get(), b_.get()}) {
      EXPECT_EQ(server->store->Look(Key(), Access::kUpdate).absence, Absence::kErased);
      EXPECT_EQ(ServingAt(server), 0);
    }
    ASSERT_TRUE(a_->Compute(Asking(), kJustShort).ok());
    EXPECT_EQ(ServingAt(a_.get()), 1);
    EXPECT_EQ(ServingAt(b_.get()), 1);
    shared_.Flush();
    EXPECT_EQ(ServingAt(a_.get()), 1);
  }
};

TEST_P(DeletedDuring, AnAnswerIsGivenAndNotKept) {
  a_->solver.Hold();
  a_->service->ComputePlan(ComputeRequest{Asking(), kOther, KeyOptions(), std::nullopt},
                           a_->answers.Of(1));
  ASSERT_TRUE(a_->solver.WaitUntilStarted(1));
  DeleteNow();
  a_->solver.Release();
  const auto answer = a_->answers.WaitFor(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->plan.status, PlanStatus::kFound);
  ExpectDeletedAndSolvedAnew();
}

TEST_P(DeletedDuring, AFrontierIsGivenAndNotKept) {
  a_->solver.Hold();
  a_->service->GetFrontier(ComputeRequest{Asking(), kOther, KeyOptions(), std::nullopt},
                           a_->answers.Of(1));
  ASSERT_TRUE(Waits([this] { return a_->solver.frontiers() == 1; }));
  DeleteNow();
  a_->solver.Release();
  const auto answer = a_->answers.WaitFor(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NE(answer->frontier, nullptr);
  ExpectDeletedAndSolvedAnew();
}

// Also where it is asked for anew before the old solve ends.
TEST_P(DeletedDuring, WhatIsAskedForMeanwhileIsNotMixedWithTheOldSolve) {
  a_->solver.Hold();
  a_->service->ComputePlan(ComputeRequest{Asking(), kOther, KeyOptions(), std::nullopt},
                           a_->answers.Of(1));
  ASSERT_TRUE(a_->solver.WaitUntilStarted(1));
  DeleteNow();
  ASSERT_TRUE(b_->Compute(Asking(), kJustShort).ok());
  a_->solver.Release();
  ASSERT_TRUE(a_->answers.WaitFor(1).ok());
  const auto entry = a_->store->Get(Key(), Access::kUpdate);
  ASSERT_NE(entry, nullptr);
  ASSERT_EQ(entry->plans.size(), 1u) << "of the later request alone";
  EXPECT_EQ(entry->plans[0].plan->budget, kJustShort);
}

TEST_P(DeletedDuring, AReSolveInTheBackgroundIsNotKept) {
  ServerOptions newer;
  newer.planning.solver_version = "99.0.0";
  newer.planning.background.interval = std::chrono::milliseconds(1);
  a_ = std::make_unique<DecidingServer>(&shared_, newer);
  a_->solver.Hold();
  ASSERT_EQ(ServingAt(a_.get()), 1);
  ASSERT_TRUE(a_->solver.WaitUntilStarted(1));
  DeleteNow();
  a_->solver.Release();
  const auto& resolves = a_->metrics.resolves[static_cast<size_t>(ResolveReason::kUpgrade)];
  ASSERT_TRUE(Waits([&resolves] { return resolves > 0; }));
  a_->service->Stop();  // waits for what is done with it
  for (DecidingServer* server : {a_.get(), b_.get()}) EXPECT_EQ(ServingAt(server), 0);
}

INSTANTIATE_TEST_SUITE_P(By, DeletedDuring,
                         ::testing::Values(Deletes::kThisServer, Deletes::kTheOther),
                         [](const auto& who) {
                           return who.param == Deletes::kThisServer ? "ThisServer" : "TheOther";
                         });

int64_t SecondsNow() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

TEST(DecidedPlanStore, WhatWasDecidedOutlivesTheServer) {
  const TemporaryFolder folder;
  ServerOptions options;
  options.decisions = folder / "decisions";
  const auto before = TwoRevisions();
  const int64_t begun = SecondsNow();
  for (const bool shared_is_kept : {true, false}) {
    TierInProcess shared;
    if (shared_is_kept) {
      DecidingServer server(&shared, options);
      ASSERT_TRUE(server.store->Put(Key(), before).ok());
      ASSERT_TRUE(Pin(&server, 2).ok());
    }
    DecidingServer server(&shared, options);
    EXPECT_EQ(ServingAt(&server), 2) << shared_is_kept;
    const auto updated_s = server.store->Get(Key(), Access::kInspect)->updated_s;
    ASSERT_TRUE(updated_s) << shared_is_kept;
    EXPECT_GE(*updated_s, begun) << "when it was pinned";
    EXPECT_LE(*updated_s, SecondsNow());
    EXPECT_NE(shared.Plans(nullptr)->Get(Key(), Access::kPeek), nullptr) << "for the others";
  }
}

}  // namespace
}  // namespace stowage::testing
