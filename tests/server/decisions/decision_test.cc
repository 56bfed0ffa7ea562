// What decisions are, as bytes, against each other, and applied to an entry.
#include "server/decisions/decision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/decisions/apply_decisions.h"
#include "server/entries/entry_codec.h"
#include "server/entries/revisions.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

constexpr Bytes kOther{1750};
constexpr int64_t kFirst = 3 * kChangesPerHistory + 1;

const Asked& Question() {
  static const auto* const kQuestion = new Asked(ProblemOf(ProfileShape{}));
  return *kQuestion;
}

const PlanKey& Key() { return Question()->key; }

// A schedule for the budget that differs from that of every other peak: what less memory allows.
std::shared_ptr<const Plan> PlanWithin(Bytes peak, Bytes budget, int64_t revision) {
  Plan plan = Solved(Question(), peak).plan;
  plan.budget = budget;
  plan.revision = revision;
  plan.bounds.lower_bound = Nanos(0);
  plan.bounds.proven_optimal = false;
  return std::make_shared<const Plan>(std::move(plan));
}

// Two schedules for kJustShort, the first one faster; one for kOther.
PlanEntry Entry(int64_t generation = kFirst) {
  PlanEntry entry = NewEntry(*Question(), 1);
  entry.generation = generation;
  entry.plans = {{PlanWithin(kJustShort, kJustShort, 1)},
                 {PlanWithin(LeastPeak(ChainProfile({})), kJustShort, 2)},
                 {PlanWithin(kOther, kOther, 1)}};
  EXPECT_NE(entry.plans[0].plan->schedule, entry.plans[1].plan->schedule);
  return entry;
}

PlanEntry Next(absl::StatusOr<PlanEntry> changed) {
  EXPECT_TRUE(changed.ok()) << changed.status();
  ++changed->generation;
  return *std::move(changed);
}

std::shared_ptr<const PlanEntry> Shared(const PlanEntry& entry) {
  return std::make_shared<const PlanEntry>(entry);
}

class Decided {
 public:
  Decided& Add(const PlanEntry& before, const PlanEntry& after) {
    for (Decision& decision : DecisionsBetween(before, after)) {
      decision.stamp = ++stamp_;
      all_.Add(decision);
    }
    return *this;
  }
  // When the next decisions are made.
  Decided& At(int64_t seconds) {
    stamp_ = seconds * kStampsPerSecond;
    return *this;
  }
  Decided& Delete(int64_t up_to) {
    all_.Add({DecisionKind::kDeletion, Bytes(0), ++stamp_, up_to, nullptr});
    return *this;
  }
  std::shared_ptr<const PlanEntry> On(const PlanEntry& entry) const {
    return ApplyDecisions(all_, Shared(entry));
  }
  std::shared_ptr<const PlanEntry> OnNothing() const { return ApplyDecisions(all_, nullptr); }
  const KeyDecisions& all() const { return all_; }

 private:
  KeyDecisions all_;
  int64_t stamp_ = 0;
};

int64_t Serving(const PlanEntry& entry, Bytes budget) {
  const StoredPlan* serving = ServingRevision(entry, budget);
  return serving == nullptr ? 0 : serving->plan->revision;
}

TEST(Decision, ComesBackFromItsBytes) {
  const PlanEntry entry = Entry();
  for (const PlanEntry& after : {Next(Pin(entry, {kJustShort, 2})), Next(Freeze(entry))}) {
    for (Decision decision : DecisionsBetween(entry, after)) {
      decision.stamp = 77;
      const auto back = DecodeDecision(Key(), EncodeDecision(Key(), decision));
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(IdOf(*back), IdOf(decision));
      EXPECT_EQ(back->stamp, 77);
      EXPECT_EQ(back->generation, kFirst + 1);
      EXPECT_EQ(EncodeEntry(*back->kept), EncodeEntry(*decision.kept));
    }
  }
  Decision deletion = DeletionOf(kFirst, 0);
  deletion.stamp = 78;
  const auto back = DecodeDecision(Key(), EncodeDecision(Key(), deletion));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->generation, deletion.generation);
  EXPECT_EQ(back->kept, nullptr);
}

TEST(Decision, BytesThatAreDamagedOrAboutAnotherKeyAreNone) {
  Decision decision = DecisionsBetween(Entry(), Next(Pin(Entry(), {kJustShort, 2}))).front();
  decision.stamp = 77;
  const std::string whole = EncodeDecision(Key(), decision);
  std::mt19937_64 rng(5);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    damaged[rng() % damaged.size()] ^= static_cast<char>(1 + rng() % 255);
    if (i % 3 == 0) damaged.resize(rng() % damaged.size());
    EXPECT_FALSE(DecodeDecision(Key(), damaged).ok());
  }
  PlanKey other = Key();
  other.encoding_version += 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeDecision(other, whole).status()));
  EXPECT_TRUE(absl::IsUnimplemented(DecodeDecision(Key(), EncodeEntry(Entry())).status()));
  for (const int64_t stamp : {int64_t{0}, int64_t{-5}, kLatestStamp + 1}) {
    decision.stamp = stamp;
    EXPECT_FALSE(DecodeDecision(Key(), EncodeDecision(Key(), decision)).ok()) << stamp;
  }
}

// What a decision is about: freeze and standing, nothing that reports and solves do.
TEST(Decision, IsWhatAnAdministratorHasChanged) {
  const PlanEntry entry = Entry();
  PlanEntry solved = entry;
  AddRevision({PlanWithin(kOther, kJustShort, 3)}, &solved);
  solved.profile_wanted = true;
  EXPECT_TRUE(DecisionsBetween(entry, solved).empty());
  const auto pinned = DecisionsBetween(entry, Next(Pin(entry, {kJustShort, 2})));
  ASSERT_EQ(pinned.size(), 1u);
  EXPECT_EQ(IdOf(pinned[0]), (DecisionId{DecisionKind::kBudget, kJustShort.value()}));
  EXPECT_EQ(pinned[0].kept->plans.size(), 2u) << "those of other budgets were not decided about";
  const auto frozen = DecisionsBetween(entry, Next(Freeze(entry)));
  ASSERT_EQ(frozen.size(), 1u);
  EXPECT_EQ(frozen[0].kept->plans.size(), 3u);
  const PlanEntry frozen_entry = Next(Freeze(entry));
  const auto unfrozen = DecisionsBetween(frozen_entry, Next(Unfreeze(frozen_entry)));
  ASSERT_EQ(unfrozen.size(), 1u);
  EXPECT_EQ(unfrozen[0].kept, nullptr);
}

// Servers learn in any order, and more than once.
TEST(Decision, ServersThatLearnTheSameInAnyOrderAgree) {
  const PlanEntry first = Entry(), pinned = Next(Pin(first, {kJustShort, 2}));
  const PlanEntry anew = Next(Freeze(Entry(5 * kChangesPerHistory)));
  std::vector<Decision> told = {
      DecisionsBetween(first, pinned).front(),
      DecisionsBetween(pinned, Next(Unpin(pinned, {kJustShort, 2}))).front(),
      DecisionsBetween(Entry(5 * kChangesPerHistory), anew).front(),
      {DecisionKind::kDeletion, Bytes(0), 0, 4 * kChangesPerHistory, nullptr},
      {DecisionKind::kDeletion, Bytes(0), 0, kChangesPerHistory, nullptr}};
  for (size_t i = 0; i < told.size(); ++i) told[i].stamp = static_cast<int64_t>(10 - i);
  std::mt19937_64 rng(3);
  std::optional<std::string> agreed;
  for (int round = 0; round < 100; ++round) {
    std::vector<Decision> order = told;
    order.insert(order.end(), told.begin(), told.end());
    std::shuffle(order.begin(), order.end(), rng);
    KeyDecisions known;
    for (const Decision& decision : order) known.Add(decision);
    std::string all;
    for (const auto& [id, decision] : known.all) all += EncodeDecision(Key(), decision);
    if (!agreed) agreed = all;
    EXPECT_EQ(all, *agreed);
    EXPECT_EQ(known.all.size(), 2u) << "the deletion, and what is about a later history";
  }
}

TEST(Decision, ADeletionEndsAllThatHasBegunAndNothingThatBeginsAfterIt) {
  for (const int64_t there : {int64_t{1}, kFirst, FirstGeneration() + 9}) {
    const int64_t begun = FirstGeneration();
    const int64_t up_to = DeletionOf(there, 0).generation;
    EXPECT_GT(up_to, there);
    EXPECT_GE(up_to, begun) << "a solve in flight";
    EXPECT_FALSE(IsNewer(up_to + 1, up_to)) << "a whole history";
    // Again and again within a moment.
    int64_t deleted = up_to;
    for (int i = 0; i < 5; ++i) {
      const int64_t anew = FirstGeneration(deleted);
      EXPECT_GT(anew, deleted);
      deleted = DeletionOf(FirstGeneration(deleted), deleted).generation;
      EXPECT_GE(deleted, anew) << "of another server";
    }
    EXPECT_LT(deleted, int64_t{1} << 53) << "exact as a double";
  }
}

TEST(ApplyDecisions, WhatIsAsDecidedStaysTheSameObject) {
  const PlanEntry pinned = Next(Pin(Entry(), {kJustShort, 2}));
  KeyDecisions decided = Decided().Add(Entry(), pinned).all();
  const auto entry = Shared(pinned);
  EXPECT_EQ(ApplyDecisions(decided, entry), entry);
  decided.edition = 7;
  const auto of_edition = ApplyDecisions(decided, entry);
  EXPECT_EQ(of_edition->edition, 7u);
  EXPECT_EQ(ApplyDecisions(decided, of_edition), of_edition);
  const auto untouched = Shared(Entry());
  EXPECT_EQ(ApplyDecisions(KeyDecisions(), untouched), untouched);
}

// The copy of a server that was away.
TEST(ApplyDecisions, AnOldCopyIsAsDecided) {
  const PlanEntry entry = Entry();
  const PlanEntry pinned = Next(Pin(entry, {kJustShort, 2}));
  EXPECT_EQ(Serving(*Decided().Add(entry, pinned).On(entry), kJustShort), 2);
  const PlanEntry unpinned = Next(Unpin(pinned, {kJustShort, 2}));
  EXPECT_EQ(Serving(*Decided().Add(entry, pinned).Add(pinned, unpinned).On(pinned), kJustShort), 1)
      << "the undoing counts against a copy that is pinned";
  const PlanEntry rolled_back = Next(RollBack(entry, {kJustShort, 1}));
  EXPECT_EQ(Serving(*Decided().Add(entry, rolled_back).On(entry), kJustShort), 2);
  PlanEntry in_shadow = entry;
  in_shadow.plans[1].state = RevisionState::kShadow;
  EXPECT_EQ(Serving(in_shadow, kJustShort), 1);
  const PlanEntry promoted = Next(Promote(in_shadow, {kJustShort, 2}));
  EXPECT_EQ(Serving(*Decided().Add(in_shadow, promoted).On(in_shadow), kJustShort), 2);
  const PlanEntry frozen = Next(Freeze(entry));
  EXPECT_TRUE(Decided().Add(entry, frozen).On(entry)->frozen);
  EXPECT_FALSE(Decided().Add(entry, frozen).Add(frozen, Next(Unfreeze(frozen))).On(frozen)->frozen);
  EXPECT_EQ(Decided().Add(entry, pinned).On(entry)->generation, entry.generation);
}

// A server that had nothing has solved it anew.
TEST(ApplyDecisions, AnotherHistoryIsAsDecided) {
  const PlanEntry entry = Entry();
  PlanEntry anew = Entry(7 * kChangesPerHistory + 1);
  // The same schedule under another number, and another one under this number.
  anew.plans = {{PlanWithin(LeastPeak(ChainProfile({})), kJustShort, 1)},
                {PlanWithin(kJustShort, kJustShort, 2)}};
  const auto pinned = Decided().Add(entry, Next(Pin(entry, {kJustShort, 2}))).On(anew);
  EXPECT_EQ(Serving(*pinned, kJustShort), 2);
  EXPECT_EQ(ServingRevision(*pinned, kJustShort)->plan->schedule, entry.plans[1].plan->schedule);
  EXPECT_EQ(pinned->generation, anew.generation);
  // Without the schedule.
  anew.plans = {{PlanWithin(kJustShort, kJustShort, 1)}};
  const auto put_back = Decided().Add(entry, Next(Pin(entry, {kJustShort, 2}))).On(anew);
  EXPECT_EQ(Serving(*put_back, kJustShort), 2);
  EXPECT_EQ(ServingRevision(*put_back, kJustShort)->plan->schedule, entry.plans[1].plan->schedule);
  // What was solved is what was rolled back.
  const auto rolled_back = Decided().Add(entry, Next(RollBack(entry, {kJustShort, 1}))).On(anew);
  EXPECT_EQ(Serving(*rolled_back, kJustShort), 2) << "what served then is put back";
  // Frozen: nothing of it changes.
  const auto frozen = Decided().Add(entry, Next(Freeze(entry))).On(anew);
  EXPECT_EQ(frozen->plans.size(), 3u);
  EXPECT_TRUE(frozen->frozen);
  EXPECT_EQ(frozen->generation, anew.generation);
}

TEST(ApplyDecisions, WhatIsGoneIsMadeOfWhatWasKept) {
  const PlanEntry entry = Entry();
  EXPECT_EQ(
      Serving(*Decided().Add(entry, Next(Pin(entry, {kJustShort, 2}))).OnNothing(), kJustShort), 2);
  EXPECT_EQ(Serving(*Decided().Add(entry, Next(RollBack(entry, {kJustShort, 1}))).OnNothing(),
                    kJustShort),
            2);
  EXPECT_EQ(Decided().Add(entry, Next(Freeze(entry))).OnNothing()->plans.size(), 3u);
  // Two decisions: of both.
  const PlanEntry one = Next(Pin(entry, {kJustShort, 2})), two = Next(Pin(one, {kOther, 1}));
  const auto both = Decided().Add(entry, one).Add(one, two).OnNothing();
  EXPECT_TRUE(PinnedRevision(*both, kJustShort) && PinnedRevision(*both, kOther));
  // Nothing that is decided any more.
  EXPECT_EQ(Decided().Add(entry, one).Add(one, Next(Unpin(one, {kJustShort, 2}))).OnNothing(),
            nullptr);
  EXPECT_EQ(KeyDecisions().all.size(), 0u);
  EXPECT_EQ(Decided().OnNothing(), nullptr);
}

TEST(ApplyDecisions, ATimeIsOfTheLaterOfChangeAndDecision) {
  PlanEntry entry = Entry();
  entry.updated_s = 1000;
  const PlanEntry pinned = Next(Pin(entry, {kJustShort, 2})), frozen = Next(Freeze(pinned));
  Decided decided;
  decided.At(500).Add(entry, pinned);
  EXPECT_EQ(decided.On(entry)->updated_s, 1000);
  decided.At(2000).Add(pinned, frozen);
  EXPECT_EQ(decided.On(entry)->updated_s, 2000) << "the tiers have not taken it";
  PlanEntry reported = frozen;
  reported.updated_s = 1000;
  EXPECT_EQ(decided.On(reported)->updated_s, 1000) << "they have: a stamp may be of another clock";
  reported.updated_s = 3000;
  EXPECT_EQ(decided.On(reported)->updated_s, 3000);
  // What is frozen comes back whole, but in the entry that is there now.
  PlanEntry changed = reported;
  changed.plans.pop_back();
  EXPECT_EQ(decided.On(changed)->updated_s, 3000);
  // Of one that a server has changed that notes no times, after the decision or before it.
  reported.updated_s.reset();
  changed.updated_s.reset();
  EXPECT_EQ(decided.On(reported)->updated_s, std::nullopt);
  EXPECT_EQ(decided.On(changed)->updated_s, std::nullopt);
  EXPECT_EQ(decided.OnNothing()->updated_s, 2000);
}

TEST(ApplyDecisions, ADeletionIsNoChangeOfWhatBeginsAfterIt) {
  Decided decided;
  decided.At(5000).Delete(DeletionOf(kFirst, 0).generation);
  PlanEntry anew = Entry(FirstGeneration(decided.all().deleted_up_to()));
  anew.updated_s = 1000;
  KeyDecisions all = decided.all();
  all.edition = 7;
  const auto given = ApplyDecisions(all, Shared(anew));
  ASSERT_EQ(given->edition, 7u);
  EXPECT_EQ(given->updated_s, 1000);
}

TEST(ApplyDecisions, WhatReportsHaveRetiredStaysSoUnlessItIsPinned) {
  const PlanEntry entry = Entry();
  PlanEntry retired = Next(RollBack(entry, {kJustShort, 1}));
  retired.plans[1].state = RevisionState::kRetired;
  EXPECT_EQ(Serving(*Decided().Add(entry, Next(RollBack(entry, {kJustShort, 1}))).On(retired),
                    kJustShort),
            0);
  EXPECT_EQ(
      Serving(*Decided().Add(entry, Next(Pin(entry, {kJustShort, 2}))).On(retired), kJustShort), 2);
}

TEST(ApplyDecisions, AFrozenEntryKeepsItsReports) {
  const PlanEntry entry = Entry(), frozen = Next(Freeze(entry));
  PlanEntry reported = Next(frozen);
  reported.reports.push_back({1, kJustShort, 1, 1.0, 1.0, 10, 2});
  const auto given = Decided().Add(entry, frozen).On(reported);
  EXPECT_EQ(given->reports.size(), 1u);
  EXPECT_EQ(given->generation, reported.generation);
}

TEST(ApplyDecisions, WhatWasDeletedIsNotThereWhateverWasDecidedBefore) {
  const PlanEntry entry = Entry(), pinned = Next(Pin(entry, {kJustShort, 2})),
                  frozen = Next(Freeze(pinned));
  Decided decided;
  decided.Add(entry, pinned)
      .Add(pinned, frozen)
      .Delete(DeletionOf(frozen.generation, 0).generation);
  for (const PlanEntry& copy : {entry, pinned, frozen}) EXPECT_EQ(decided.On(copy), nullptr);
  EXPECT_EQ(decided.OnNothing(), nullptr);
  const PlanEntry anew = Entry(FirstGeneration(decided.all().deleted_up_to()));
  ASSERT_NE(decided.On(anew), nullptr);
  EXPECT_EQ(Serving(*decided.On(anew), kJustShort), 1) << "the pin was about the one before";
  EXPECT_FALSE(decided.On(anew)->frozen);
}

// Under which a pinned plan does not hold: it is no answer there.
TEST(ApplyDecisions, APinThatDoesNotHoldUnderAnotherReferenceIsNotPutBack) {
  const PlanEntry entry = Entry();
  ProfileShape larger;
  larger.overhead = 5000;
  PlanEntry anew = NewEntry(*ProblemOf(larger), 1);
  ASSERT_EQ(anew.canonical, entry.canonical);
  anew.generation = 7 * kChangesPerHistory + 1;
  const auto given = Decided().Add(entry, Next(Pin(entry, {kJustShort, 1}))).On(anew);
  ASSERT_NE(given, nullptr);
  EXPECT_TRUE(given->plans.empty());
}

}  // namespace
}  // namespace stowage::testing
