// To whom cached plans are there, and what the audit log says of who got and did what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "server/rpc/plan_page.h"
#include "solvers/planner.h"
#include "tests/server/auth/auth_fixture.h"
#include "tests/server/rpc/admin_calls.h"

namespace stowage::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct AuditFile {
  AuditFile() : log(*AuditLog::Open({folder.PathOf("audit")})) {}
  ~AuditFile() {
    for (const char* name : {"audit", "audit.changes"}) std::remove(folder.PathOf(name).c_str());
  }
  RpcServerOptions Options() const {
    RpcServerOptions options;
    options.audit = log.get();
    return options;
  }
  // Once all of it is written.
  std::string Text() {
    log.reset();
    std::ifstream file(folder.PathOf("audit"));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  CredentialFolder folder;
  std::unique_ptr<AuditLog> log;
};

class AdminTenantsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fixture_ = std::make_unique<AuthFixture>(AuthFixture::WithTokens(tokens_), audit_.Options());
    vision_ = std::make_unique<AdminCalls>(fixture_->channel, kPlannerToken);
    speech_ = std::make_unique<AdminCalls>(fixture_->channel, kOtherToken);
    leads_ = std::make_unique<AdminCalls>(fixture_->channel, kTenantAdminToken);
    admin_ = std::make_unique<AdminCalls>(fixture_->channel, kAdminToken);
    v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
    request.set_job("train-17");
    const auto ours = vision_->Compute(request);
    const auto theirs = speech_->Compute(request);
    ASSERT_TRUE(ours.ok() && theirs.ok());
    ours_ = *ours;
    theirs_ = *theirs;
  }

  CredentialFolder folder_;
  const std::string tokens_ = folder_.Write("tokens", TokenLines());
  AuditFile audit_;
  std::unique_ptr<AuthFixture> fixture_;
  std::unique_ptr<AdminCalls> vision_, speech_, leads_, admin_;
  v1::ComputePlanResponse ours_, theirs_;
};

void ExpectSame(const absl::Status& hidden, const absl::Status& unknown) {
  EXPECT_FALSE(hidden.ok());
  EXPECT_EQ(hidden, unknown);  // payloads included
}

TEST_F(AdminTenantsTest, AKeyOfAnotherTenantIsAsUnknown) {
  v1::PlanKey unknown = ours_.key();
  unknown.set_digest(std::string(32, 'u'));
  const v1::PlanKey& hidden = theirs_.key();

  EXPECT_EQ(vision_->List()->plans_size(), 1);
  EXPECT_EQ(vision_->List()->plans(0).key().digest(), ours_.key().digest());
  EXPECT_EQ(vision_->List(hidden)->plans_size(), 0);
  EXPECT_EQ(vision_->List(ours_.key())->plans_size(), 1);

  EXPECT_TRUE(vision_->Explain(ExplainRequest(ours_.key(), kTightBytes)).ok());
  ExpectSame(vision_->Explain(ExplainRequest(hidden, kTightBytes)).status(),
             vision_->Explain(ExplainRequest(unknown, kTightBytes)).status());

  EXPECT_TRUE(vision_->Report(ReportRequest(ours_.plan(), ours_.key(), "job")).ok());
  ExpectSame(vision_->Report(ReportRequest(theirs_.plan(), hidden, "job")).status(),
             vision_->Report(ReportRequest(theirs_.plan(), unknown, "job")).status());
  EXPECT_EQ(admin_->List(hidden)->plans(0).reports(), 0);
}

TEST_F(AdminTenantsTest, ReportsAreOfWhoCallsWhateverTheirJobsCallThemselves) {
  const auto reports = [this] { return admin_->List(ours_.key())->plans(0).reports(); };
  for (AdminCalls* calls : {vision_.get(), admin_.get()}) {
    EXPECT_TRUE(calls->Report(ReportRequest(ours_.plan(), ours_.key(), "job")).ok());
  }
  EXPECT_EQ(reports(), 2);
  for (int i = 0; i < 10; ++i) {
    const std::string job = "job " + std::to_string(i);
    EXPECT_TRUE(vision_->Report(ReportRequest(ours_.plan(), ours_.key(), job)).ok());
  }
  EXPECT_EQ(reports(), 3) << "two of the token, beside another identity";
}

TEST_F(AdminTenantsTest, OnlyAnAdminPinsAndDeletesAndSeesEveryTenant) {
  const auto all = admin_->List();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->plans_size(), 2);
  for (const v1::PlanSummary& plan : all->plans()) {
    const v1::PinPlanRequest pin = PinRequest(plan);
    for (AdminCalls* calls : {vision_.get(), speech_.get()}) {
      EXPECT_EQ(GetReason(calls->Pin(pin)), "ROLE_TOO_LOW");
      EXPECT_EQ(GetReason(calls->Delete(plan.key()).status()), "ROLE_TOO_LOW");
    }
    EXPECT_TRUE(admin_->Explain(ExplainRequest(plan.key(), kTightBytes)).ok());
    EXPECT_TRUE(admin_->Pin(pin).ok());
    EXPECT_TRUE(admin_->List(plan.key())->plans(0).pinned());
    EXPECT_TRUE(admin_->Delete(plan.key())->deleted());
  }
  EXPECT_TRUE(admin_->Report(ReportRequest(ours_.plan(), ours_.key(), "job")).status().code() ==
              absl::StatusCode::kNotFound);
  EXPECT_EQ(vision_->List()->plans_size(), 0);
}

TEST_F(AdminTenantsTest, AnAdminOfATenantChangesItsPlansAlone) {
  v1::PlanKey unknown = ours_.key();
  unknown.set_digest(std::string(32, 'u'));
  const auto listed = leads_->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->plans_size(), 1);
  EXPECT_EQ(listed->plans(0).key().digest(), ours_.key().digest());

  const v1::PinPlanRequest of_others = PinRequest(admin_->List(theirs_.key())->plans(0));
  v1::PinPlanRequest of_nobody = of_others;
  *of_nobody.mutable_key() = unknown;
  ExpectSame(leads_->Pin(of_others), leads_->Pin(of_nobody));
  EXPECT_FALSE(leads_->Delete(theirs_.key())->deleted());
  EXPECT_EQ(speech_->List()->plans_size(), 1);

  EXPECT_TRUE(leads_->Pin(PinRequest(listed->plans(0))).ok());
  EXPECT_TRUE(vision_->List()->plans(0).pinned());
  EXPECT_TRUE(leads_->Delete(ours_.key())->deleted());
  EXPECT_EQ(vision_->List()->plans_size(), 0);
}

// Where a page of all tenants ended is nothing that a tenant's list goes on from.
TEST_F(AdminTenantsTest, APageTokenIsOfOneCallersList) {
  v1::ListPlansRequest request;
  request.set_page_size(1);
  const auto page = admin_->List(request);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_NE(page->next_page_token(), "");
  request.set_page_token(page->next_page_token());
  EXPECT_TRUE(admin_->List(request).ok());
  const absl::Status status = vision_->List(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

// A token has no secret key. A tenant that makes one for its own list, at a place in another tenant's key or before all keys,
// is given its own plans.
TEST_F(AdminTenantsTest, AForgedPageTokenShowsNothingOfAnotherTenant) {
  const std::string list = "tenant vision\n\n";
  const PlanKey own = *FromProto(ours_.key());
  const PlanKey of_others = *FromProto(theirs_.key());
  const PlanKey before_all{kEncodingVersion, Digest()};
  const std::pair<int64_t, int64_t> before_revisions{0, 0};
  const PagePosition places[] = {{before_all, std::nullopt},
                                 {of_others, before_revisions},
                                 {of_others, std::nullopt},
                                 {own, before_revisions}};
  int shown = 0;
  for (const PagePosition& place : places) {
    v1::ListPlansRequest request;
    request.set_page_token(ToPageToken(place, list));
    const auto page = vision_->List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::PlanSummary& plan : page->plans()) {
      EXPECT_EQ(plan.tenant(), "vision");
      EXPECT_EQ(plan.key().digest(), ours_.key().digest());
    }
    shown += page->plans_size();
  }
  EXPECT_GE(shown, 2) << "the tokens are taken, and lead to plans";
  // The other tenant's plan is at that place, in its own list.
  v1::ListPlansRequest theirs;
  theirs.set_page_token(
      ToPageToken(PagePosition{of_others, before_revisions}, "tenant speech\n\n"));
  EXPECT_EQ(speech_->List(theirs)->plans_size(), 1);
}

TEST_F(AdminTenantsTest, WhoGotAndDidWhatIsAudited) {
  v1::GetPlanRequest get;
  *get.add_keys() = ours_.key();
  get.mutable_budget()->set_bytes(kTightBytes);
  get.set_job("eval-3");
  ASSERT_TRUE(vision_->Get(get).ok());
  v1::WatchPlanRequest watch;
  *watch.mutable_profile() = ToProto(ChainProfile({}));
  *watch.mutable_budget() = get.budget();
  watch.set_job("watch-4");
  grpc::ClientContext context;
  AuthFixture::Prepare(&context, kPlannerToken);
  const auto stream = fixture_->Stub()->WatchPlan(&context, watch);
  for (v1::WatchPlanResponse message; stream->Read(&message);) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  ASSERT_TRUE(vision_->Report(ReportRequest(ours_.plan(), ours_.key(), "train-17")).ok());
  ASSERT_TRUE(admin_->Pin(PinRequest(admin_->List(ours_.key())->plans(0))).ok());
  ASSERT_TRUE(admin_->Delete(theirs_.key()).ok());
  fixture_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));

  const std::string text = audit_.Text();
  const std::string key = FromProto(ours_.key())->digest.ToHex();
  const std::string digest = DigestOf(ours_.plan()).ToHex();
  const std::string who = "\"identity\":\"vision-jobs\",\"tenant\":\"vision\",";
  const std::string plan = "\"key\":\"" + key +
                           "\",\"budget_bytes\":1500,\"revision\":1,\"plan_digest\":\"" + digest +
                           "\"";
  EXPECT_THAT(text, HasSubstr(who + "\"job\":\"train-17\"," + plan + ",\"source\":\"solved\"}"));
  EXPECT_THAT(text, HasSubstr(who + "\"job\":\"eval-3\"," + plan + ",\"source\":\"key\"}"));
  EXPECT_THAT(text, HasSubstr(who + "\"job\":\"watch-4\"," + plan + ",\"source\":\"cache\"}"));
  EXPECT_THAT(text, HasSubstr(who + "\"job\":\"train-17\"," + plan + ",\"outcome\":\"accepted\"}"));
  EXPECT_THAT(text, ContainsRegex("\"event\":\"pin\".*\"identity\":\"operations\".*" + key));
  EXPECT_THAT(text, ContainsRegex("\"event\":\"delete\".*\"identity\":\"operations\""));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  for (const char* secret : {kPlannerToken, kOtherToken, kAdminToken}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

TEST_F(AdminTenantsTest, WhatWasShownOnTheWayIsAudited) {
  ProfileShape longer;
  longer.stages = 7;
  const Profile profile = ChainProfile(longer);
  const Bytes budget(StoreAllPeak(profile).value() * 4 / 5);
  fixture_->base.solver.TellOf(MakePlan(profile, budget, PlanOptions())->schedule);
  fixture_->base.solver.Hold();
  v1::WatchPlanRequest watch;
  *watch.mutable_profile() = ToProto(profile);
  watch.mutable_budget()->set_bytes(budget.value());
  watch.set_job("watch-5");
  grpc::ClientContext context;
  AuthFixture::Prepare(&context, kPlannerToken);
  const auto stream = fixture_->Stub()->WatchPlan(&context, watch);
  v1::WatchPlanResponse shown;
  while (stream->Read(&shown) && !shown.has_plan()) {
  }
  ASSERT_TRUE(shown.has_plan() && !shown.done());
  fixture_->base.solver.Release();
  for (v1::WatchPlanResponse message; stream->Read(&message);) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  fixture_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  const std::string text = audit_.Text();
  const std::string plan =
      "\"plan_digest\":\"" + DigestOf(shown.plan()).ToHex() + "\",\"source\":\"so_far\"}";
  EXPECT_THAT(text,
              ContainsRegex("\"event\":\"hand_out\".*\"tenant\":\"vision\",\"job\":\"watch-5\"," +
                            std::string("\"key\":\"[0-9a-f]*\",\"budget_bytes\":[0-9]*,") + plan));
}

}  // namespace
}  // namespace stowage::testing
