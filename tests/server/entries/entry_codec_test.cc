#include "server/entries/entry_codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/entries/field_code.h"
#include "server/entries/sealed_bytes.h"
#include "tests/server/entries/full_entries.h"
#include "tests/server/store/entries.h"

namespace stowage::testing {
namespace {

using Decoded = absl::StatusOr<std::shared_ptr<const PlanEntry>>;

// One of few bytes.
PlanEntry SmallEntry() {
  PlanEntry entry = *EntryOf("abc");
  ChainSpec spec;
  spec.stages.resize(1);
  spec.stages[0].output = spec.stages[0].saved = Bytes(300);
  spec.stages[0].forward_time = Nanos(1000);
  entry.reference =
      std::make_shared<const Instance>(Instance{*Chain::Create(std::move(spec)), std::nullopt});
  entry.store_all = *Instance(entry.reference->problem()).store_all();
  Plan plan = *entry.plans[0].plan;
  plan.schedule = entry.reference->store_all_schedule();
  plan.budget = entry.store_all.peak;
  plan.prediction = entry.store_all;
  plan.bounds.store_all_makespan = entry.store_all.makespan;
  plan.bounds.store_all_peak = entry.store_all.peak;
  entry.plans[0].plan = std::make_shared<const Plan>(plan);
  return entry;
}

// The small entry's bytes after a change of the entry that its maker would not make.
Decoded AfterChange(const std::function<void(PlanEntry*)>& change) {
  PlanEntry entry = SmallEntry();
  change(&entry);
  return DecodeEntry(KeyOf("abc"), EncodeEntry(entry));
}

void ExpectCorrupt(const Decoded& decoded) {
  ASSERT_FALSE(decoded.ok());
  EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << decoded.status();
  EXPECT_EQ(FailureOf(decoded.status()), CacheFailure::kCorrupt);
}

TEST(EntryCodec, EveryFieldComesBack) {
  for (const PlanEntry& entry :
       {FullChainEntry(), FullGraphEntry(), FullDagEntry(), SmallEntry(), *EntryOf("x", 9)}) {
    const std::string bytes = EncodeEntry(entry);
    const Decoded decoded = DecodeEntry(KeyOf(entry.canonical), bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ExpectEqualEntries(entry, **decoded);
    EXPECT_EQ(EncodeEntry(**decoded), bytes);
  }
}

TEST(EntryCodec, RecomputesThatStopEarlyComeBack) {
  const PlanEntry chain_entry = FullChainEntry(), graph_entry = FullGraphEntry();
  ChainSpec chain = chain_entry.reference->chain().spec();
  chain.stages[0].recompute_saving_time = Nanos(0);
  chain.stages[1].recompute_saving_time = Nanos(1);
  chain.stages[1].recompute_saving_overhead = Bytes(1);
  GraphSpec graph = graph_entry.reference->graph().spec();
  graph.vertices[0].recompute_saving_time = Nanos(0);
  graph.vertices[1].recompute_saving_time = Nanos(1);
  graph.vertices[1].recompute_saving_overhead = Bytes(1);
  const Problem problems[] = {*Chain::Create(chain), *Graph::Create(graph)};
  for (const Problem& problem : problems) {
    PlanEntry entry = SmallEntry();
    entry.reference = std::make_shared<const Instance>(problem);
    entry.store_all = *Instance(problem).store_all();
    entry.plans.clear();
    entry.least_budget.reset();
    const std::string bytes = EncodeEntry(entry);
    const Decoded decoded = DecodeEntry(KeyOf("abc"), bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ExpectEqualEntries(entry, **decoded);
    EXPECT_EQ(EncodeEntry(**decoded), bytes);
  }
}

TEST(EntryCodec, AnEntryWithNothingButItsReferenceComesBack) {
  PlanEntry entry = SmallEntry();
  entry.plans.clear();
  entry.least_budget.reset();
  const Decoded decoded = DecodeEntry(KeyOf("abc"), EncodeEntry(entry));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqualEntries(entry, **decoded);
}

// Versions before this one read the bytes, and write them.
TEST(EntryCodec, ATimeIsBesideTheBytes) {
  PlanEntry entry = SmallEntry();
  entry.generation = 5;
  EXPECT_EQ(UpdateNoteOf(entry), "");
  const std::string bytes = EncodeEntry(entry);
  entry.updated_s = 1234;
  EXPECT_EQ(EncodeEntry(entry), bytes);
  EXPECT_EQ(UpdateNoteOf(entry), "5:1234");
  EXPECT_EQ((*DecodeEntry(KeyOf("abc"), bytes, "5:1234"))->updated_s, 1234);
  for (const char* const other : {"", "4:1234", "6:1234", "1234", "5:", "5:1234:5", "x"}) {
    const Decoded decoded = DecodeEntry(KeyOf("abc"), bytes, other);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ((*decoded)->updated_s, std::nullopt) << other;
  }
  EXPECT_EQ((*DecodeEntry(KeyOf("abc"), bytes))->updated_s, std::nullopt);
}

// These bytes are on disks: where they change, so must kEntryVersion.
TEST(EntryCodec, TheBytesOfThisVersionAreThese) {
  EXPECT_EQ(absl::BytesToHexString(EncodeEntry(SmallEntry())),
            "53545745020000004e00000000000000036162630000000001d00f00d804d8040000000000000000"
            "000000000000000000000000000000000000000000015401000000d80400000000000000000e0006"
            "000201230001000000000000000219238e8c170c8967156cd33c3b5441378f0f8914b15b15a712e3"
            "fbd0bca723fc");
  EXPECT_EQ(Sha256(EncodeEntry(FullChainEntry())).ToHex(),
            "dddde87204a157c4e223fa2f0ce2e994eb1a9d224046f941cc1ee238f608915e");
  EXPECT_EQ(Sha256(EncodeEntry(FullGraphEntry())).ToHex(),
            "bf0c8ee8aaea5e9387ec26c5f929646f9a8554d0ce3fab4544149b44ee8520b0");
}

TEST(EntryCodec, CutAnywhereIsCorrupt) {
  for (const PlanEntry& entry : {SmallEntry(), FullChainEntry()}) {
    const std::string bytes = EncodeEntry(entry);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ExpectCorrupt(DecodeEntry(KeyOf(entry.canonical), bytes.substr(0, size)));
    }
    ExpectCorrupt(DecodeEntry(KeyOf(entry.canonical), bytes + '\0'));
  }
}

TEST(EntryCodec, AnyBitThatFlipsIsSeen) {
  const std::string bytes = EncodeEntry(SmallEntry());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Decoded decoded = DecodeEntry(KeyOf("abc"), flipped);
    ASSERT_FALSE(decoded.ok()) << "bit " << bit;
    // The first 8 bytes say what it is and of which version.
    EXPECT_EQ(FailureOf(decoded.status()),
              bit < 64 ? CacheFailure::kForeign : CacheFailure::kCorrupt)
        << "bit " << bit;
  }
}

TEST(EntryCodec, AnotherVersionIsForeign) {
  const absl::StatusOr<std::string> body = Unseal(kEntryVersion, EncodeEntry(SmallEntry()));
  ASSERT_TRUE(body.ok());
  for (const uint32_t version : {0u, kEntryVersion + 1, std::numeric_limits<uint32_t>::max()}) {
    const Decoded decoded = DecodeEntry(KeyOf("abc"), Seal(version, *body));
    ASSERT_FALSE(decoded.ok());
    EXPECT_TRUE(absl::IsUnimplemented(decoded.status())) << decoded.status();
    EXPECT_EQ(FailureOf(decoded.status()), CacheFailure::kForeign);
  }
}

TEST(EntryCodec, AnotherKeysEntryIsCorrupt) {
  ExpectCorrupt(DecodeEntry(KeyOf("abd"), EncodeEntry(SmallEntry())));
}

TEST(EntryCodec, PlansThatTheEvaluatorRefusesAreCorrupt) {
  const auto with_plan = [](const std::function<void(Plan*)>& change) {
    return AfterChange([&change](PlanEntry* entry) {
      Plan plan = *entry->plans[0].plan;
      change(&plan);
      entry->plans[0].plan = std::make_shared<const Plan>(plan);
    });
  };
  ASSERT_TRUE(with_plan([](Plan*) {}).ok());
  ExpectCorrupt(with_plan([](Plan* plan) { plan->budget -= Bytes(1); }));
  ExpectCorrupt(with_plan([](Plan* plan) { plan->schedule.pop_back(); }));
  ExpectCorrupt(with_plan([](Plan* plan) { plan->schedule[0].stage = 3; }));
  ExpectCorrupt(with_plan([](Plan* plan) { plan->schedule.clear(); }));
  ExpectCorrupt(with_plan([](Plan* plan) { plan->status = PlanStatus::kNotFound; }));
  ExpectCorrupt(with_plan([](Plan* plan) { plan->bounds.lower_bound = Nanos(1001); }));
  ExpectCorrupt(with_plan([](Plan* plan) {
    plan->schedule.insert(plan->schedule.begin(), OffloadStart(TensorKind::kActivation, 0));
  }));
}

TEST(EntryCodec, ThatNothingFitsMustNotContradictItselfOrPlainTraining) {
  const auto infeasible = [](Bytes budget, Bytes least) {
    return AfterChange([=](PlanEntry* entry) {
      Plan plan = *entry->plans[0].plan;
      plan.status = PlanStatus::kProvenInfeasible;
      plan.schedule.clear();
      plan.budget = budget;
      plan.bounds.least_budget = least;
      entry->plans[0].plan = std::make_shared<const Plan>(plan);
    });
  };
  const Bytes fits = SmallEntry().store_all.peak;
  const Bytes one(1);
  EXPECT_TRUE(infeasible(fits - one, fits).ok());
  EXPECT_TRUE(infeasible(Bytes(0), one).ok());
  ExpectCorrupt(infeasible(fits - one, fits - one));
  ExpectCorrupt(infeasible(fits - one, Bytes(0)));
  ExpectCorrupt(infeasible(fits - one, fits + one));
  ExpectCorrupt(infeasible(fits, fits));
}

TEST(EntryCodec, WhatIsPredictedIsComputedAnew) {
  const Decoded decoded = AfterChange([](PlanEntry* entry) {
    entry->store_all.peak = Bytes(1);
    Plan plan = *entry->plans[0].plan;
    plan.prediction.makespan = Nanos(1);
    plan.bounds.store_all_peak = Bytes(1);
    entry->plans[0].plan = std::make_shared<const Plan>(plan);
  });
  ASSERT_TRUE(decoded.ok());
  ExpectEqualEntries(SmallEntry(), **decoded);
}

TEST(EntryCodec, SamplesOfAnotherSizeAndRatiosThatAreNoNumbersAreCorrupt) {
  ExpectCorrupt(AfterChange([](PlanEntry* entry) {
    entry->samples.push_back({1, EntryOf("longer")->reference});
  }));
  for (const double ratio :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ExpectCorrupt(AfterChange([ratio](PlanEntry* entry) {
      entry->reports.push_back({1, Bytes(1), 1, ratio, 1.0});
    }));
  }
}

// Bytes changed at random under a seal that matches: refused, or an entry that encodes to them.
TEST(EntryCodec, SealedNonsenseIsRefusedOrAnEntry) {
  std::mt19937_64 rng(20);
  int taken = 0;
  for (const PlanEntry& entry :
       {SmallEntry(), FullChainEntry(), FullGraphEntry(), FullDagEntry()}) {
    const std::string body = *Unseal(kEntryVersion, EncodeEntry(entry));
    for (int round = 0; round < 20000; ++round) {
      std::string changed = body;
      for (uint64_t changes = rng() % 3; changes < 3; ++changes) {
        const size_t at = entry.canonical.size() + 1 + rng() % (changed.size() - 40);
        if (at >= changed.size()) continue;
        switch (rng() % 4) {
          case 0:
            changed[at] = static_cast<char>(rng());
            break;
          case 1:
            changed[at] = static_cast<char>(changed[at] + 1);
            break;
          case 2:
            changed.erase(at, 1 + rng() % 3);
            break;
          default:
            changed.insert(at, 1, static_cast<char>(rng()));
        }
      }
      const std::string bytes = Seal(kEntryVersion, changed);
      const Decoded decoded = DecodeEntry(KeyOf(entry.canonical), bytes);
      if (!decoded.ok()) continue;
      ++taken;
      ASSERT_EQ(EncodeEntry(**decoded), bytes);
    }
  }
  EXPECT_GT(taken, 100);  // labels and costs may change
}

}  // namespace
}  // namespace stowage::testing
