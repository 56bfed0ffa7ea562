// What was decided, out of one real server and into another: pages, sizes, what is refused, and what the audit log says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/decisions/decided_plan_store.h"
#include "server/decisions/decision_transfer.h"
#include "server/rpc/plan_page.h"
#include "tests/server/decisions/shared_tier.h"
#include "tests/server/rpc/admin_calls.h"
#include "tests/server/store/entries.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Lines = std::vector<std::string>;

v1::ImportDecisionsRequest ImportRequest(const Lines& lines) {
  v1::ImportDecisionsRequest request;
  for (const std::string& line : lines) request.add_decisions(line);
  return request;
}

Decision DeletedAt(int64_t stamp) { return {DecisionKind::kDeletion, Bytes(0), stamp, 1, nullptr}; }

// Of a budget, with a plan: some hundred bytes.
Decision PinnedAt(int64_t stamp, int64_t budget) {
  return {DecisionKind::kBudget, Bytes(budget), stamp, 7, EntryOf("a", 10, 7)};
}

// A server and its book.
class DecidedServer {
 public:
  explicit DecidedServer(std::unique_ptr<SharedDecisions> shared = nullptr,
                         const RequestLimits& limits = RequestLimits(), AuditLog* audit = nullptr) {
    auto opened =
        DecisionBook::Open(std::make_unique<MemoryDecisionStore>(), std::move(shared), &no_metrics);
    EXPECT_TRUE(opened.ok()) << opened.status();
    book = *std::move(opened);
    book->Upkeep();
    RpcServerOptions options;
    options.decisions = book.get();
    options.audit = audit;
    auto plans = std::make_unique<DecidedPlanStore>(
        std::make_unique<MemoryPlanStore>(Bytes(64 << 20)), book);
    fixture =
        std::make_unique<RpcFixture>(false, limits, PlanningOptions(), std::move(plans), options);
    calls = std::make_unique<AdminCalls>(fixture->channel);
  }

  // All pages; of how many they were, too.
  Lines Exported(int page_size = 0, int* pages = nullptr) {
    Lines lines;
    v1::ExportDecisionsRequest request;
    request.set_page_size(page_size);
    do {
      const auto page = calls->Export(request);
      if (!page.ok()) {
        ADD_FAILURE() << page.status();
        break;
      }
      if (pages != nullptr) ++*pages;
      lines.insert(lines.end(), page->decisions().begin(), page->decisions().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return lines;
  }

  NoMetrics no_metrics;
  std::shared_ptr<DecisionBook> book;
  std::unique_ptr<RpcFixture> fixture;
  std::unique_ptr<AdminCalls> calls;
};

TEST(DecisionAdmin, AnotherServerServesWhatWasDecidedOnTheFirst) {
  DecidedServer first, second;
  v1::ComputePlanResponse plan, same;
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  ASSERT_TRUE(first.fixture->Compute(request, &plan).ok());
  ASSERT_TRUE(second.fixture->Compute(request, &same).ok());
  EXPECT_THAT(first.Exported(), IsEmpty());
  v1::FreezePlanRequest freeze;
  *freeze.mutable_key() = plan.key();
  ASSERT_TRUE(first.calls->Freeze(freeze).ok());
  const Lines frozen = first.Exported();
  ASSERT_EQ(frozen.size(), 1u);
  const auto taken = second.calls->Import(ImportRequest(frozen));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->taken(), 1);
  EXPECT_EQ(taken->known(), 0);
  EXPECT_TRUE(second.calls->List(plan.key())->plans(0).frozen());
  EXPECT_EQ(second.Exported(), frozen) << "a copy of it";
  const auto again = second.calls->Import(ImportRequest(frozen));
  EXPECT_EQ(again->taken(), 0);
  EXPECT_EQ(again->known(), 1);
  // What comes later counts, also against the file.
  v1::UnfreezePlanRequest unfreeze;
  *unfreeze.mutable_key() = plan.key();
  ASSERT_TRUE(second.calls->Unfreeze(unfreeze).ok());
  EXPECT_EQ(second.calls->Import(ImportRequest(frozen))->known(), 1);
  EXPECT_FALSE(second.calls->List(plan.key())->plans(0).frozen());
}

TEST(DecisionAdmin, PagesHaveAllOfEachKeyInOrder) {
  RequestLimits small;
  small.max_message_bytes = 4096;
  DecidedServer whole, cut(nullptr, small);
  std::vector<KeyedDecision> decisions;
  for (int i = 0; i < 25; ++i) {
    const PlanKey key = KeyOf(std::to_string(i));
    decisions.emplace_back(key, DeletedAt(3));
    for (int budget = 1; budget <= i % 4; ++budget) {
      decisions.emplace_back(KeyOf("a"), PinnedAt(9, 100 * i + budget));
    }
  }
  const std::string text = DecisionsToText(decisions);
  Lines expected = absl::StrSplit(text, '\n', absl::SkipEmpty());
  expected.erase(expected.begin());
  for (DecidedServer* const server : {&whole, &cut}) {
    for (const auto& [key, decision] : decisions) {
      ASSERT_TRUE(server->book->Take(key, {decision}).ok());
    }
    for (const int page_size : {1, 3, 26, 0, 1000}) {
      int pages = 0;
      EXPECT_EQ(server->Exported(page_size, &pages), expected) << page_size;
      // The pins of one key alone are more than a small message has.
      if (server == &whole) {
        // 26 keys; a page that is full does not know whether it is the last.
        EXPECT_EQ(pages, page_size == 0 ? 1 : 26 / page_size + 1) << page_size;
      } else {
        EXPECT_GT(pages, 2);
      }
    }
  }
}

// Deleted between two pages that have the key's pins: a backup of both must not have the pins alone.
TEST(DecisionAdmin, ADeletionBetweenPagesIsOnTheNextOne) {
  RequestLimits small;
  small.max_message_bytes = 4096;
  DecidedServer server(nullptr, small);
  const PlanKey key = KeyOf("a");
  for (int budget = 1; budget <= 12; ++budget) {
    ASSERT_TRUE(server.book->Take(key, {PinnedAt(9, budget)}).ok());
  }
  const auto first = server.calls->Export();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_FALSE(first->next_page_token().empty());
  Decision deletion = DeletedAt(20);
  deletion.generation = 7;
  ASSERT_TRUE(server.book->Take(key, {deletion}).ok());
  v1::ExportDecisionsRequest next;
  next.set_page_token(first->next_page_token());
  const auto second = server.calls->Export(next);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->decisions(), ElementsAre(DecisionToLine({key, deletion})));
  EXPECT_EQ(second->next_page_token(), "");
}

TEST(DecisionAdmin, WhatNoMessageCanHaveIsSaidWithItsKey) {
  RequestLimits small;
  small.max_message_bytes = 500;
  DecidedServer server(nullptr, small);
  ASSERT_TRUE(server.book->Take(KeyOf("a"), {PinnedAt(9, 1)}).ok());
  const absl::Status status = server.calls->Export().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(GetReason(status), "RESPONSE_TOO_LARGE");
  EXPECT_THAT(std::string(status.message()), HasSubstr(KeyOf("a").digest.ToHex()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--max_message_bytes"));
}

// The deletion that comes again takes nothing of the place that a message has for the next one.
TEST(DecisionAdmin, ADeletionThatComesAgainKeepsNoneOut) {
  const PlanKey key = KeyOf("a");
  const Decision first = PinnedAt(9, 1), second = PinnedAt(9, 2);
  RequestLimits exact;
  exact.max_message_bytes = static_cast<int64_t>(DecisionToLine({key, first}).size()) + 6 + 512;
  DecidedServer server(nullptr, exact);
  ASSERT_TRUE(server.book->Take(key, {DeletedAt(3), first, second}).ok());
  const std::string deletion = DecisionToLine({key, DeletedAt(3)});
  EXPECT_EQ(server.Exported(), (Lines{deletion, deletion, DecisionToLine({key, first}), deletion,
                                      DecisionToLine({key, second})}));
}

TEST(DecisionAdmin, WhatIsNoDecisionIsNamedAndNoneIsTaken) {
  DecidedServer server;
  const std::string good = DecisionToLine({KeyOf("a"), DeletedAt(3)});
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto stamp_in = [&now](std::chrono::hours ahead) {
    return std::chrono::duration_cast<std::chrono::microseconds>(now + ahead).count() * 1024;
  };
  Decision other_generation = PinnedAt(9, 1);
  other_generation.generation = 8;
  const std::pair<std::string, std::string> cases[] = {
      {"", "must be VERSION DIGEST RECORD"},
      {"stowage decisions 1", "must begin with a version"},
      {good + "00", "the record cannot be used"},
      {DecisionToLine({KeyOf("a"), DeletedAt(stamp_in(std::chrono::hours(24 * 31)))}),
       "at most 30 days ahead"},
      {DecisionToLine({KeyOf("a"), other_generation}), "an entry of its own generation"}};
  for (const auto& [line, rule] : cases) {
    SCOPED_TRACE(rule);
    const absl::Status status = server.calls->Import(ImportRequest({good, line})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const auto violation = GetFieldViolation(status);
    ASSERT_TRUE(violation.has_value()) << status;
    EXPECT_EQ(violation->field, "decisions[1]");
    EXPECT_THAT(violation->rule, HasSubstr(rule));
    EXPECT_EQ(server.book->Find(KeyOf("a")), nullptr);
  }
  const std::string soon =
      DecisionToLine({KeyOf("a"), DeletedAt(stamp_in(std::chrono::hours(24 * 29)))});
  // Of one request, too, the later one counts.
  EXPECT_EQ(server.calls->Import(ImportRequest({soon, good}))->taken(), 1);
  EXPECT_EQ(server.calls->Import({})->taken(), 0);
}

TEST(DecisionAdmin, APageThatIsNoneIsRefused) {
  DecidedServer server;
  v1::ExportDecisionsRequest request;
  for (const int size : {-1, 1001}) {
    request.set_page_size(size);
    EXPECT_EQ(GetFieldViolation(server.calls->Export(request).status())->field, "page_size");
  }
  request.set_page_size(1);
  // The token of another list.
  const std::string other = ToPageToken(PagePosition{KeyOf("a"), std::nullopt}, "all\n\n");
  for (const std::string& token : {std::string("x"), std::string("AAAA"), other}) {
    request.set_page_token(token);
    EXPECT_EQ(GetFieldViolation(server.calls->Export(request).status())->field, "page_token");
  }
}

TEST(DecisionAdmin, WhereServersShareAllIsExportedOrNothing) {
  DecisionsInProcess shared;
  DecidedServer server(shared.Reach());
  ASSERT_TRUE(shared.Reach()->Tell(KeyOf("a"), {DeletedAt(5)}).ok());
  EXPECT_EQ(server.Exported(), Lines{DecisionToLine({KeyOf("a"), DeletedAt(5)})})
      << "nobody has asked it about the key before";
  ASSERT_TRUE(shared.Reach()->Tell(KeyOf("b"), {DeletedAt(5)}).ok());
  shared.SetDamaged(true);
  const absl::Status lacking = server.calls->Export().status();
  EXPECT_EQ(GetReason(lacking), "STORE_UNAVAILABLE");
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("the export would lack decisions: "));
  shared.SetDamaged(false);
  shared.SetOut(true);
  EXPECT_EQ(GetReason(server.calls->Export().status()), "STORE_UNAVAILABLE");
  const auto request = ImportRequest({DecisionToLine({KeyOf("c"), DeletedAt(5)})});
  EXPECT_EQ(GetReason(server.calls->Import(request).status()), "STORE_UNAVAILABLE");
  shared.SetOut(false);
  EXPECT_EQ(server.calls->Import(request)->taken(), 1);
  EXPECT_EQ(server.Exported().size(), 3u);
}

// Nothing of another server's is left of the key when its turn comes.
TEST(DecisionAdmin, WhatIsLostInTheMiddleOfAPageIsNotLeftOut) {
  DecisionsInProcess shared;
  DecidedServer server(shared.Reach());
  ASSERT_TRUE(shared.Reach()->Tell(KeyOf("a"), {DeletedAt(5)}).ok());
  shared.FlushAtRead();
  EXPECT_EQ(GetReason(server.calls->Export().status()), "STORE_UNAVAILABLE");
}

TEST(DecisionAdmin, TheAuditLogSaysWhichKeysAnImportHasChanged) {
  const TemporaryFolder folder;
  const std::string path = folder / "audit";
  std::unique_ptr<AuditLog> audit = *AuditLog::Open({path});
  {
    DecisionsInProcess shared;
    DecidedServer server(shared.Reach(), RequestLimits(), audit.get());
    ASSERT_TRUE(server.book->Take(KeyOf("a"), {DeletedAt(3)}).ok());
    const auto request = ImportRequest(
        {DecisionToLine({KeyOf("a"), DeletedAt(3)}), DecisionToLine({KeyOf("b"), DeletedAt(3)})});
    const auto imported = server.calls->Import(request);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->taken(), 1);
    EXPECT_EQ(imported->known(), 1);
    shared.SetFull(true);
    const auto refused = ImportRequest({DecisionToLine({KeyOf("c"), DeletedAt(3)})});
    EXPECT_TRUE(absl::IsUnavailable(server.calls->Import(refused).status()));
  }
  audit.reset();
  std::stringstream text;
  text << std::ifstream(path + ".changes").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"event\":\"import_deletion\""));
  EXPECT_THAT(text.str(), HasSubstr(KeyOf("b").digest.ToHex()));
  EXPECT_THAT(text.str(), Not(HasSubstr(KeyOf("a").digest.ToHex()))) << "nothing came of it";
  EXPECT_THAT(text.str(), HasSubstr("\"outcome\":\"UNAVAILABLE: ")) << "nor of this";
}

}  // namespace
}  // namespace stowage::testing
