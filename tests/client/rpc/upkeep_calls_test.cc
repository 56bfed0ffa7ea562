// The calls for what a server keeps: what goes over the wire, what comes back, and what becomes
// of an answer that breaks the contract.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/local_connection.h"
#include "client/rpc/plan_pager.h"
#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/expect_internal.h"
#include "tests/client/rpc/served_connection.h"

namespace stowage {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class UpkeepCallsTest : public ServedConnectionTest {};

TEST_F(UpkeepCallsTest, ReportExecution) {
  std::function<void(v1::ReportExecutionResponse*)> spoil;
  ExecutionMeasurement measured;
  measured.key = key_;
  measured.plan_digest = Sha256("a schedule");
  measured.revision = 3;
  measured.budget = Bytes(77);
  measured.steps = 20;
  measured.step_time = Nanos(5);
  measured.peak = Bytes(66);
  measured.reserved_peak = Bytes(88);
  measured.offloaded = Bytes(9);
  measured.prefetched = Bytes(7);
  server_.report_execution = [&](const v1::ReportExecutionRequest& request,
                                 v1::ReportExecutionResponse* out) {
    EXPECT_EQ(*FromProto(request.key()), key_);
    EXPECT_EQ(request.plan_digest(), Sha256("a schedule").ToBinary());
    EXPECT_EQ(request.revision(), 3);
    EXPECT_EQ(request.budget_bytes(), 77);
    EXPECT_EQ(request.steps(), 20);
    EXPECT_EQ(request.measured_step_time_ns(), 5);
    EXPECT_EQ(request.measured_peak_bytes(), 66);
    EXPECT_EQ(request.measured_reserved_peak_bytes(), 88);
    EXPECT_EQ(request.offloaded_bytes(), 9);
    EXPECT_EQ(request.prefetched_bytes(), 7);
    EXPECT_EQ(request.job(), "j?");
    out->set_verdict(v1::REPORT_VERDICT_OUTLIER);
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  CallOptions call = call_;
  call.job = "j\xff";  // not UTF-8: a message cannot hold it
  const auto verdict = connection_->ReportExecution(measured, call);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(*verdict, ExecutionVerdict::kOutlier);
  EXPECT_STREQ(ToString(*verdict), "outlier");
  using Out = v1::ReportExecutionResponse;
  ExpectInternal<Out>([&] { return connection_->ReportExecution(measured, call).status(); }, &spoil,
                      {[](Out* out) { out->set_verdict(v1::REPORT_VERDICT_UNSPECIFIED); },
                       [](Out* out) { out->set_verdict(static_cast<v1::ReportVerdict>(99)); }});
}

void FillPage(const PlanKey& key, v1::ListPlansResponse* response) {
  v1::PlanSummary* plan = response->add_plans();
  *plan->mutable_key() = ToProto(key);
  plan->set_name("net");
  plan->set_budget_bytes(100);
  plan->set_makespan_ns(10);
  plan->set_revision(2);
  plan->set_pinned(true);
  plan->set_state(v1::REVISION_STATE_SHADOW);
  plan->set_frozen(true);
  plan->set_status(v1::PLAN_STATUS_FOUND);
  plan->set_peak_bytes(99);
  plan->set_solver("s");
  plan->set_solver_version("v");
  plan->set_reports(4);
  plan->set_measured_time_ratio(1.5);
  plan->set_measured_peak_ratio(0.5);
  plan->set_tenant("vision");
  plan->mutable_create_time()->set_seconds(1000);
  plan->mutable_update_time()->set_seconds(2000);
  plan->set_etag("\"e\"");
}

TEST_F(UpkeepCallsTest, ListPlansTurnsPages) {
  std::function<void(v1::ListPlansResponse*)> spoil;
  server_.list_plans = [&](const v1::ListPlansRequest& request, v1::ListPlansResponse* out) {
    EXPECT_EQ(request.page_size(), 1);
    EXPECT_TRUE(request.has_key());
    EXPECT_EQ(request.filter(), "pinned = true");
    EXPECT_TRUE(request.return_partial_success());
    FillPage(key_, out);
    out->add_unreachable("redis");
    if (request.page_token().empty()) out->set_next_page_token("second");
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  ListQuery query;
  query.page_size = 1;
  query.key = key_;
  query.filter = "pinned = true";
  query.partial = true;
  EXPECT_EQ(connection_->ListPlans(query, call_)->unreachable, std::vector<std::string>{"redis"});
  PlanPager pager(connection_.get(), query);
  int pages = 0;
  for (; !pager.done() && pages < 9; ++pages) {
    const auto plans = pager.Next(call_);
    ASSERT_TRUE(plans.ok()) << plans.status();
    ASSERT_EQ(plans->size(), 1u);
    const ListedPlan& plan = plans->front();
    EXPECT_EQ(plan.revision.key, key_);
    EXPECT_EQ(plan.revision.budget, Bytes(100));
    EXPECT_EQ(plan.revision.revision, 2);
    EXPECT_EQ(plan.name, "net");
    EXPECT_EQ(plan.status, PlanStatus::kFound);
    EXPECT_EQ(plan.state, ListedPlan::State::kShadow);
    EXPECT_STREQ(ToString(plan.state), "shadow");
    EXPECT_TRUE(plan.pinned);
    EXPECT_TRUE(plan.frozen);
    EXPECT_EQ(plan.makespan, Nanos(10));
    EXPECT_EQ(plan.peak, Bytes(99));
    EXPECT_EQ(plan.solver + plan.solver_version, "sv");
    EXPECT_EQ(plan.reports, 4);
    EXPECT_EQ(plan.time_ratio, 1.5);
    EXPECT_EQ(plan.peak_ratio, 0.5);
    EXPECT_EQ(plan.tenant, "vision");
    EXPECT_EQ(plan.created->time_since_epoch(), std::chrono::seconds(1000));
    EXPECT_EQ(plan.updated->time_since_epoch(), std::chrono::seconds(2000));
    EXPECT_EQ(plan.etag, "\"e\"");
  }
  EXPECT_EQ(pages, 2);
  EXPECT_TRUE(pager.Next(call_)->empty());

  using Out = v1::ListPlansResponse;
  ExpectInternal<Out>(
      [&] { return connection_->ListPlans(query, call_).status(); }, &spoil,
      {[](Out* out) { out->mutable_plans(0)->clear_key(); },
       [](Out* out) { out->mutable_plans(0)->set_state(v1::REVISION_STATE_UNSPECIFIED); },
       [](Out* out) { out->mutable_plans(0)->set_status(static_cast<v1::PlanStatus>(77)); },
       [](Out* out) { out->mutable_plans(0)->set_budget_bytes(-1); },
       [](Out* out) { out->mutable_plans(0)->set_reports(-1); },
       [](Out* out) { out->mutable_plans(0)->mutable_create_time()->set_seconds(-1); },
       [](Out* out) { out->mutable_plans(0)->mutable_update_time()->set_seconds(-1); },
       [](Out* out) {
         out->mutable_plans(0)->mutable_update_time()->set_seconds((int64_t{1} << 33) + 1);
       },
       [](Out* out) { out->mutable_plans(0)->set_measured_time_ratio(kNotANumber); }});
  // As older servers list plans.
  spoil = [](Out* out) {
    out->mutable_plans(0)->clear_create_time();
    out->mutable_plans(0)->clear_update_time();
  };
  const auto page = connection_->ListPlans(query, call_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->plans.front().created, std::nullopt);
  EXPECT_EQ(page->plans.front().updated, std::nullopt);
}

// A server that always names the page it has just sent would be read for ever.
TEST_F(UpkeepCallsTest, PagesThatLeadToThemselvesEnd) {
  server_.list_plans = [](const v1::ListPlansRequest&, v1::ListPlansResponse* out) {
    out->set_next_page_token("again");
    return absl::OkStatus();
  };
  PlanPager pager(connection_.get(), {});
  EXPECT_TRUE(pager.Next(call_).ok());
  EXPECT_TRUE(absl::IsInternal(pager.Next(call_).status()));
}

TEST_F(UpkeepCallsTest, ChangePlan) {
  AskedChange asked;
  server_.change = [&](const AskedChange& change, bool*) {
    asked = change;
    return change.method == "PromotePlan" ? absl::FailedPreconditionError("not in shadow")
                                          : absl::OkStatus();
  };
  const PlanRevision revision{key_, Bytes(5), 6};
  const ChangeTerms terms{"\"an etag\"", "an-id"};
  for (const auto& [action, method] :
       {std::pair<RevisionAction, std::string>(RevisionAction::kPin, "PinPlan"),
        {RevisionAction::kUnpin, "UnpinPlan"},
        {RevisionAction::kRollBack, "RollBackPlan"},
        {RevisionAction::kFreeze, "FreezePlan"},
        {RevisionAction::kUnfreeze, "UnfreezePlan"}}) {
    EXPECT_TRUE(connection_->ChangePlan(revision, action, terms, call_).ok());
    EXPECT_EQ(asked.method, method);
    EXPECT_EQ(*FromProto(asked.key), key_);
    EXPECT_EQ(asked.etag, terms.etag);
    EXPECT_EQ(asked.request_id, terms.request_id);
    const bool whole = method == "FreezePlan" || method == "UnfreezePlan";
    EXPECT_EQ(asked.budget_bytes, whole ? 0 : 5);
    EXPECT_EQ(asked.revision, whole ? 0 : 6);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      connection_->ChangePlan(revision, RevisionAction::kPromote, terms, call_)));
}

TEST_F(UpkeepCallsTest, DeleteAndExplain) {
  server_.change = [&](const AskedChange& change, bool* deleted) {
    EXPECT_EQ(change.method, "DeletePlan");
    *deleted = *FromProto(change.key) == key_;
    return change.etag == "old" ? absl::AbortedError("another etag") : absl::OkStatus();
  };
  server_.explain_plan = [&](const v1::ExplainPlanRequest& request, v1::ExplainPlanResponse* out) {
    EXPECT_TRUE(request.budget().least());
    EXPECT_EQ(*FromProto(request.key()), key_);
    out->set_explanation("because");
    return absl::OkStatus();
  };
  EXPECT_TRUE(*connection_->DeletePlan(key_, {}, call_));
  EXPECT_FALSE(*connection_->DeletePlan(PlanKey(), {}, call_));
  EXPECT_TRUE(absl::IsAborted(connection_->DeletePlan(key_, {"old", ""}, call_).status()));
  EXPECT_EQ(*connection_->ExplainPlan(key_, LeastBudget{}, call_), "because");
}

std::string DecisionOf(const std::string& name, const std::string& record = "0a") {
  return absl::StrCat("1 ", Sha256(name).ToHex(), " ", record);
}

TEST_F(UpkeepCallsTest, ExportDecisions) {
  std::function<void(v1::ExportDecisionsResponse*)> spoil;
  std::vector<std::string> rising = {DecisionOf("a"), DecisionOf("b")};
  std::sort(rising.begin(), rising.end());
  rising.push_back(rising.back() + "ff");  // another one of the same key
  server_.export_decisions = [&](const v1::ExportDecisionsRequest& request,
                                 v1::ExportDecisionsResponse* out) {
    EXPECT_EQ(request.page_token(), "second");
    EXPECT_EQ(request.page_size(), 7);
    for (const std::string& decision : rising) out->add_decisions(decision);
    out->set_next_page_token("third");
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  const auto page = connection_->ExportDecisions("second", 7, call_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->decisions, rising);
  EXPECT_EQ(page->next_page_token, "third");

  // Each would go into a file that no server takes.
  const std::string hex = Sha256("a").ToHex();
  std::vector<std::function<void(v1::ExportDecisionsResponse*)>> ways = {
      [](v1::ExportDecisionsResponse* out) { out->mutable_decisions()->SwapElements(0, 1); }};
  for (const std::string& line :
       {std::string(), "1 " + hex, "1  " + hex + " 0a", "1 " + hex.substr(1) + " 0a",
        "x " + hex + " 0a", "\n1 " + hex + " 0a", "1 " + hex + " 0a 0b", "1 " + hex + " ",
        "1 " + hex + " 0", "1 " + hex + " 0g", "1 " + hex + " 0a\n"}) {
    ways.push_back([line](v1::ExportDecisionsResponse* out) { out->set_decisions(0, line); });
  }
  ExpectInternal<v1::ExportDecisionsResponse>(
      [&] { return connection_->ExportDecisions("second", 7, call_).status(); }, &spoil, ways);
}

TEST_F(UpkeepCallsTest, ImportDecisions) {
  std::function<void(v1::ImportDecisionsResponse*)> spoil;
  const std::vector<std::string> decisions = {DecisionOf("b"), DecisionOf("a"), "no decision"};
  server_.import_decisions = [&](const v1::ImportDecisionsRequest& request,
                                 v1::ImportDecisionsResponse* out) {
    EXPECT_THAT(request.decisions(), testing::ElementsAreArray(decisions));
    out->set_taken(1);
    out->set_known(2);
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  const auto imported = connection_->ImportDecisions(decisions, call_);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->taken, 1);
  EXPECT_EQ(imported->known, 2);
  using Out = v1::ImportDecisionsResponse;
  ExpectInternal<Out>([&] { return connection_->ImportDecisions(decisions, call_).status(); },
                      &spoil,
                      {[](Out* out) { out->set_taken(-1); }, [](Out* out) { out->set_known(-1); }});

  server_.import_decisions = [](const v1::ImportDecisionsRequest& request,
                                v1::ImportDecisionsResponse*) {
    return FieldError("decisions[0]", request.decisions(0), "must be a decision");
  };
  const absl::Status refused = connection_->ImportDecisions({"\xff"}, call_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  ASSERT_TRUE(GetFieldViolation(refused).has_value()) << refused;
  EXPECT_EQ(GetFieldViolation(refused)->field, "decisions[0]");
  EXPECT_EQ(GetFieldViolation(refused)->value, "?");  // not UTF-8: a message cannot hold it
}

TEST_F(UpkeepCallsTest, CapabilitiesSayWhoTheCallerIs) {
  std::function<void(v1::GetCapabilitiesResponse*)> spoil;
  server_.capabilities = [&](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
    out->set_build("b");
    out->set_identity("i");
    out->set_tenant("t");
    out->set_role("r");
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  const auto reply = connection_->GetCapabilities(call_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->build + reply->identity + reply->tenant + reply->role, "bitr");
  using Out = v1::GetCapabilitiesResponse;
  ExpectInternal<Out>([&] { return connection_->GetCapabilities(call_).status(); }, &spoil,
                      {[](Out* out) { out->set_key_encoding_version(0); },
                       [](Out* out) { out->set_max_message_bytes(-1); },
                       [](Out* out) { out->set_max_vertices(-1); }});
}

// An older server does not know the newer calls.
TEST_F(UpkeepCallsTest, WhatTheServerLacksIsUnimplemented) {
  EXPECT_TRUE(absl::IsUnimplemented(connection_->FitBatch({}, call_).status()));
  EXPECT_TRUE(absl::IsUnimplemented(connection_->ListPlans({}, call_).status()));
  EXPECT_TRUE(absl::IsUnimplemented(connection_->ExportDecisions("", 0, call_).status()));
  EXPECT_TRUE(absl::IsUnimplemented(connection_->ImportDecisions({}, call_).status()));
  const absl::Status changed = connection_->ChangePlan({}, RevisionAction::kPin, {}, call_);
  EXPECT_TRUE(absl::IsUnimplemented(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()), testing::HasSubstr("may be older than this program"));
  EXPECT_TRUE(absl::IsUnimplemented(
      connection_->WatchPlan(SmallProfile(), LeastBudget{}, {}, {}, call_).status()));
}

TEST(LocalUpkeep, KeepsNothing) {
  const auto local = MakeLocalConnection();
  EXPECT_TRUE(absl::IsNotFound(local->ExplainPlan({}, LeastBudget{}, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(local->ChangePlan({}, RevisionAction::kPin, {}, {})));
  EXPECT_FALSE(*local->DeletePlan({}, {}, {}));
  EXPECT_TRUE(local->ListPlans({}, {})->plans.empty());
  for (const absl::Status& status :
       {local->ReportExecution({}, {}).status(), local->ExportDecisions("", 0, {}).status(),
        local->ImportDecisions({}, {}).status()}) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_EQ(GetReason(status), kReasonNotImplemented);
  }
}

}  // namespace
}  // namespace stowage
