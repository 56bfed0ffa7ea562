// What an operator sees: request ids, a line per call, readiness, the age of connections.
#include <gmock/gmock.h>

#include "tests/server/auth/auth_fixture.h"

namespace stowage::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TrailingId(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  EXPECT_LE(trailers.count("x-request-id"), 1u);
  const auto found = trailers.find("x-request-id");
  return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
}

// The id that comes back for the one sent, with a call that goes well or with one that fails; "" sends none.
std::string IdFor(RpcFixture* fixture, const std::string& sent, bool fails = false) {
  grpc::ClientContext context;
  if (!sent.empty()) context.AddMetadata("x-request-id", sent);
  if (fails) {
    v1::GetPlanResponse response;
    EXPECT_FALSE(fixture->stub->GetPlan(&context, {}, &response).ok());
  } else {
    v1::GetCapabilitiesResponse response;
    EXPECT_TRUE(fixture->stub->GetCapabilities(&context, {}, &response).ok());
  }
  return TrailingId(context);
}

TEST(RequestId, OneThatIsWellFormedComesBackOthersAreReplaced) {
  RpcFixture fixture;
  for (const bool fails : {false, true}) {
    EXPECT_EQ(IdFor(&fixture, "job-7.rank_0", fails), "job-7.rank_0");
    EXPECT_EQ(IdFor(&fixture, std::string(64, 'x'), fails), std::string(64, 'x'));
  }
  const std::string first = IdFor(&fixture, "", true);
  EXPECT_THAT(first, ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(first.size(), 16u);
  EXPECT_NE(IdFor(&fixture, "", true), first);
  EXPECT_EQ(IdFor(&fixture, ""), "") << "nobody needs it";
  for (const std::string& bad : {std::string(65, 'x'), std::string("a b"), std::string("a\"b")}) {
    EXPECT_NE(IdFor(&fixture, bad, true), bad);
    EXPECT_EQ(IdFor(&fixture, bad, true).size(), 16u);
    EXPECT_EQ(IdFor(&fixture, bad), "");
  }
}

TEST(CallLog, ACallIsOneLineWithoutSecrets) {
  CredentialFolder folder;
  AuthFixture fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())));
  v1::ComputePlanResponse response;
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  ASSERT_TRUE(fixture.Compute(kPlannerToken, request, &response).ok());
  EXPECT_EQ(fixture.Compute(kReaderToken, request, &response).error_code(),
            grpc::PERMISSION_DENIED);
  EXPECT_EQ(fixture.Compute("a-token-of-nobody", request, &response).error_code(),
            grpc::UNAUTHENTICATED);
  const std::string text = fixture.kept.Wait("TOKEN_UNKNOWN");
  EXPECT_THAT(text, ContainsRegex("\"level\":\"info\",\"event\":\"rpc\",\"id\":\"[0-9a-f]{16}\","
                                  "\"method\":\"ComputePlan\",\"code\":0,\"ms\":[0-9.e-]+,"
                                  "\"peer\":\"unix:[^\"]*\","
                                  "\"caller\":\"vision-jobs\",\"tenant\":\"vision\","
                                  "\"key\":\"[0-9a-f]{12}\",\"source\":\"solved\"\\}"));
  EXPECT_THAT(text, ContainsRegex("\"level\":\"warning\",\"event\":\"rpc\",.*\"code\":7,.*"
                                  "\"reason\":\"ROLE_TOO_LOW\",\"peer\":\"unix:"));
  EXPECT_THAT(text, HasSubstr("\"event\":\"refused\",\"method\":\"ComputePlan\","
                              "\"reason\":\"TOKEN_UNKNOWN\""));
  for (const char* secret : {kPlannerToken, kReaderToken, "a-token-of-nobody", "Bearer"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

TEST(CallLog, AFloodOfCallsThatGoWellHidesNoneThatFails) {
  CredentialFolder folder;
  AuthFixture fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())));
  v1::GetCapabilitiesResponse response;
  for (int i = 0; i < 3 * Log::kLinesPerSecond; ++i) {
    ASSERT_TRUE(fixture.Capabilities(kReaderToken, &response).ok());
  }
  // At the same level, "info".
  EXPECT_EQ(fixture.Get(kReaderToken, v1::GetPlanRequest()).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(fixture.kept.Wait("\"code\":3,"), HasSubstr("\"method\":\"GetPlan\",\"code\":3,"));
}

// An address that is gone is one where nobody gets a cached plan, either.
TEST(Readiness, AFullQueueTakesNoReplicaOut) {
  PlanningOptions planning;
  planning.solver_threads = 1;
  planning.limits.queue_limit = 1;
  RpcFixture fixture(false, RequestLimits(), planning);
  v1::ComputePlanResponse cached;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &cached).ok());
  fixture.solver.Hold();
  const auto open = [&fixture](int64_t budget) {
    return std::async(std::launch::async, [&fixture, budget] {
      v1::ComputePlanResponse response;
      return fixture.Compute(ComputeRequestFor(ChainProfile({}), budget), &response);
    });
  };
  auto runs = open(kTightBytes + 1);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(2));
  auto waits = open(kTightBytes + 2);
  while (fixture.metrics.queue_depth < 1) std::this_thread::yield();
  v1::ComputePlanResponse response;
  const absl::Status shed =
      fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes + 3), &response);
  EXPECT_EQ(GetReason(shed), "QUEUE_FULL") << shed;
  EXPECT_EQ(HealthOf(fixture.channel, kReadyService), "SERVING");
  EXPECT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &cached).ok());
  EXPECT_EQ(cached.source(), v1::PLAN_SOURCE_CACHE);
  fixture.solver.Release();
  for (auto* const call : {&runs, &waits}) {
    const absl::Status status = call->get();
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(ConnectionAge, AnOldConnectionTakesNoNewCallsButFinishesWhatIsOpen) {
  CredentialFolder folder;
  RpcServerOptions options;
  options.max_connection_age = std::chrono::milliseconds(300);
  AuthFixture fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())), options);
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(fixture.Capabilities(kReaderToken, &response).ok());
  // It was ready for that call, and may no longer be so.
  const auto patience = std::chrono::system_clock::now() + std::chrono::seconds(20);
  EXPECT_TRUE(fixture.channel->WaitForStateChange(GRPC_CHANNEL_READY, patience));
  EXPECT_TRUE(fixture.Capabilities(kReaderToken, &response).ok());
}

}  // namespace
}  // namespace stowage::testing
