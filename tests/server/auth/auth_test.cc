// Who may call what, and whose plans they see: tokens on a unix socket.
#include <gmock/gmock.h>
#include <set>

#include "stowage/v1/plan_admin_service.pb.h"
#include "tests/server/auth/auth_fixture.h"

namespace stowage::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AuthTest : public ::testing::Test {
 protected:
  CredentialFolder folder_;
  const std::string tokens_ = folder_.Write("tokens", TokenLines());
  AuthFixture fixture_{AuthFixture::WithTokens(tokens_)};
};

v1::GetPlanRequest GetRequest(const v1::PlanKey& key) {
  v1::GetPlanRequest request;
  *request.add_keys() = key;
  request.mutable_budget()->set_bytes(kTightBytes);
  return request;
}

// The path of every method of the contract, as of this build.
std::vector<std::string> AllMethods() {
  std::vector<std::string> paths;
  for (const auto* service :
       {v1::PlanKey::descriptor()->file()->FindServiceByName("PlanService"),
        v1::PinPlanRequest::descriptor()->file()->FindServiceByName("PlanAdminService")}) {
    for (int i = 0; i < service->method_count(); ++i) {
      paths.push_back("/" + service->full_name() + "/" + service->method(i)->name());
    }
  }
  return paths;
}

constexpr char kGet[] = "/stowage.v1.PlanService/GetPlan";

grpc::Status Raw(const AuthFixture& fixture, const std::string& method, const std::string& header) {
  grpc::ByteBuffer empty;
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  AuthFixture::Prepare(&context, "");
  if (!header.empty()) context.AddMetadata("authorization", header);
  std::promise<grpc::Status> done;
  grpc::Slice slice("");
  empty = grpc::ByteBuffer(&slice, 1);
  grpc::GenericStub(fixture.channel)
      .UnaryCall(&context, method, grpc::StubOptions(), &empty, &response,
                 [&done](const grpc::Status& status) { done.set_value(status); });
  return done.get_future().get();
}

TEST_F(AuthTest, NoMethodAnswersANobody) {
  const std::vector<std::string> methods = AllMethods();
  ASSERT_EQ(methods.size(), kRpcCount);
  for (const std::string& method : methods) {
    const grpc::Status none = Raw(fixture_, method, "");
    EXPECT_EQ(none.error_code(), grpc::UNAUTHENTICATED) << method;
    EXPECT_THAT(none.error_message(), StartsWith("TOKEN_MISSING: ")) << method;
    const grpc::Status wrong = Raw(fixture_, method, "Bearer no-such-token-at-all");
    EXPECT_EQ(wrong.error_code(), grpc::UNAUTHENTICATED) << method;
    EXPECT_THAT(wrong.error_message(), StartsWith("TOKEN_UNKNOWN: ")) << method;
    EXPECT_EQ(GetReason(FromGrpcStatus(wrong)), "TOKEN_UNKNOWN") << method;
  }
  EXPECT_THAT(Raw(fixture_, kGet, std::string("Basic ") + kPlannerToken).error_message(),
              StartsWith("TOKEN_MALFORMED: "));
  EXPECT_EQ(fixture_.base.metrics.rpcs_handled[grpc::UNAUTHENTICATED], 2 * int64_t{kRpcCount} + 1);
}

TEST_F(AuthTest, ARoleMayCallWhatItMayAndNothingElse) {
  const std::set<std::string> reader = {"GetPlan", "ExplainPlan", "ListPlans", "GetCapabilities"};
  for (const std::string& path : AllMethods()) {
    const bool admin = path.find(".PlanAdminService/") != std::string::npos;
    const std::string method = path.substr(path.rfind('/') + 1);
    const auto code = [&](const char* token) {
      return Raw(fixture_, path, std::string("Bearer ") + token).error_code();
    };
    EXPECT_EQ(code(kReaderToken) == grpc::PERMISSION_DENIED, reader.count(method) == 0) << method;
    EXPECT_EQ(code(kPlannerToken) == grpc::PERMISSION_DENIED, admin) << method;
    const bool of_all = method == "ExportDecisions" || method == "ImportDecisions";
    EXPECT_EQ(code(kTenantAdminToken) == grpc::PERMISSION_DENIED, of_all) << method;
    EXPECT_NE(code(kAdminToken), grpc::PERMISSION_DENIED) << method;
  }
  v1::ComputePlanResponse response;
  const grpc::Status denied =
      fixture_.Compute(kReaderToken, ComputeRequestFor(ChainProfile({}), kTightBytes), &response);
  EXPECT_EQ(GetReason(FromGrpcStatus(denied)), "ROLE_TOO_LOW");
  const std::map<std::string, std::string> takes = {{"method", "ComputePlan"}, {"role", "planner"}};
  EXPECT_EQ(GetErrorMetadata(FromGrpcStatus(denied)), takes);
  EXPECT_THAT(denied.error_message(), HasSubstr("takes the role planner; the caller is a reader"));
}

TEST_F(AuthTest, ATenantSeesItsOwnPlansAloneAndAnAdminAll) {
  const v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  v1::ComputePlanResponse vision;
  v1::ComputePlanResponse speech;
  ASSERT_TRUE(fixture_.Compute(kPlannerToken, request, &vision).ok());
  ASSERT_TRUE(fixture_.Compute(kOtherToken, request, &speech).ok());
  // Equal problems of two tenants are two problems.
  EXPECT_NE(vision.key().digest(), speech.key().digest());
  EXPECT_EQ(speech.source(), v1::PLAN_SOURCE_SOLVED);
  KeyOptions options;
  options.tenant = "vision";
  EXPECT_EQ(vision.key().digest(), MakePlanKey(ChainProfile({}), options).digest.ToBinary());

  v1::PlanKey unknown = vision.key();
  unknown.set_digest(std::string(32, 'u'));
  const grpc::Status nothing = fixture_.Get(kPlannerToken, GetRequest(unknown));
  ASSERT_EQ(nothing.error_code(), grpc::NOT_FOUND);
  struct Case {
    const char* token;
    const v1::PlanKey* theirs;
    const v1::PlanKey* others;
  };
  for (const Case& c : {Case{kPlannerToken, &vision.key(), &speech.key()},
                        Case{kReaderToken, &vision.key(), &speech.key()},
                        Case{kTenantAdminToken, &vision.key(), &speech.key()},
                        Case{kOtherToken, &speech.key(), &vision.key()}}) {
    EXPECT_TRUE(fixture_.Get(c.token, GetRequest(*c.theirs)).ok());
    const grpc::Status hidden = fixture_.Get(c.token, GetRequest(*c.others));
    EXPECT_EQ(hidden.error_code(), nothing.error_code());
    EXPECT_EQ(hidden.error_message(), nothing.error_message());
    EXPECT_EQ(hidden.error_details(), nothing.error_details());
    // An own key after a hidden one answers as after an unknown one.
    v1::GetPlanRequest both = GetRequest(*c.others);
    *both.add_keys() = *c.theirs;
    EXPECT_TRUE(fixture_.Get(c.token, both).ok());
  }
  EXPECT_TRUE(fixture_.Get(kAdminToken, GetRequest(vision.key())).ok());
  EXPECT_TRUE(fixture_.Get(kAdminToken, GetRequest(speech.key())).ok());
}

TEST_F(AuthTest, CapabilitiesSayWhoTheCallerIsForEachCallOfOneConnection) {
  struct Case {
    const char* token;
    const char* identity;
    const char* tenant;
    const char* role;
  };
  for (const Case& c : {Case{kReaderToken, "vision-reader", "vision", "reader"},
                        Case{kTenantAdminToken, "vision-leads", "vision", "tenant_admin"},
                        Case{kAdminToken, "operations", "", "admin"},
                        Case{kOtherToken, "speech-jobs", "speech", "planner"}}) {
    v1::GetCapabilitiesResponse response;
    ASSERT_TRUE(fixture_.Capabilities(c.token, &response).ok());
    EXPECT_EQ(response.identity(), c.identity);
    EXPECT_EQ(response.tenant(), c.tenant);
    EXPECT_EQ(response.role(), c.role);
    EXPECT_THAT(response.build(), HasSubstr("gRPC 1."));
  }
  v1::GetCapabilitiesResponse response;
  EXPECT_EQ(fixture_.Capabilities("", &response).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(AuthTest, HealthNeedsNoToken) {
  // HealthCheckRequest{}: no bytes at all.
  grpc::ByteBuffer response;
  EXPECT_TRUE(RawCall(fixture_.channel, "/grpc.health.v1.Health/Check", "", &response).ok());
}

TEST_F(AuthTest, ANewFileHoldsAndABrokenOneChangesNothing) {
  v1::GetCapabilitiesResponse response;
  folder_.Write("tokens", std::string("a-token-out-of-place\n") + TokenLines());
  EXPECT_THAT(fixture_.kept.Wait("file_refused"), HasSubstr("tokens:1: must be CREDENTIAL"));
  EXPECT_EQ(fixture_.base.metrics.file_reloads[0], 1);
  EXPECT_TRUE(fixture_.Capabilities(kReaderToken, &response).ok());
  std::remove(tokens_.c_str());
  EXPECT_THAT(fixture_.kept.Wait("cannot be read"), HasSubstr("cannot be read"));
  EXPECT_TRUE(fixture_.Capabilities(kReaderToken, &response).ok());
  folder_.Write("tokens", "a-new-token-of-vision vision reader\n");
  EXPECT_THAT(fixture_.kept.Wait("file_reloaded"), HasSubstr("file_reloaded"));
  EXPECT_EQ(fixture_.base.metrics.file_reloads[1], 1);
  EXPECT_TRUE(fixture_.Capabilities("a-new-token-of-vision", &response).ok());
  EXPECT_EQ(fixture_.Capabilities(kReaderToken, &response).error_code(), grpc::UNAUTHENTICATED);
  for (const char* secret : {"a-token-out-of-place", kReaderToken, kPlannerToken, "a-new-token"}) {
    EXPECT_THAT(fixture_.kept.Text(), Not(HasSubstr(secret)));
  }
}

TEST(AuthStart, AnAddressWhereGrpcWouldAbortIsRefused) {
  CredentialFolder folder;
  AuthFixture fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())));
  RpcServerOptions options;
  options.listen = "0.0.0.0:0";
  options.log = &fixture.kept.log;
  options.authenticator = fixture.authenticator.get();
  const auto started =
      RpcServer::Start(options, &fixture.base.service, &fixture.base.store, &fixture.base.metrics);
  EXPECT_TRUE(absl::IsFailedPrecondition(started.status())) << started.status();
}

TEST(AuthStart, TheMetricsKnowTheTenantsOfBothFilesAlsoOfNewOnes) {
  CredentialFolder folder;
  AuthOptions options;
  options.token_file = folder.Write("tokens", TokenLines());
  options.client_certificates = true;
  options.identities_file = folder.Write("names", "*.text.example text planner\n");
  options.reload_interval = std::chrono::milliseconds(20);
  CountingMetrics metrics;
  KeptLog kept;
  const auto authenticator = Authenticator::Make(options, &metrics, &kept.log);
  ASSERT_TRUE(authenticator.ok()) << authenticator.status();
  EXPECT_EQ(metrics.Tenants(), (std::set<std::string>{"speech", "text", "vision"}));
  folder.Write("tokens", "a-token-of-a-new-team robots reader\n");
  EXPECT_THAT(kept.Wait("file_reloaded"), HasSubstr("file_reloaded"));
  EXPECT_EQ(metrics.Tenants(), (std::set<std::string>{"robots", "speech", "text", "vision"}));
}

// Clients that know nothing of gRPC's local credentials, over TCP of this machine.
TEST(AuthStart, TokensWorkOnALoopbackPort) {
  CredentialFolder folder;
  AuthFixture fixture(AuthFixture::WithTokens(folder.Write("tokens", TokenLines())));
  RpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.log = &fixture.kept.log;
  options.authenticator = fixture.authenticator.get();
  const auto started =
      RpcServer::Start(options, &fixture.base.service, &fixture.base.store, &fixture.base.metrics);
  ASSERT_TRUE(started.ok()) << started.status();
  fixture.channel = grpc::CreateChannel((*started)->address(), grpc::InsecureChannelCredentials());
  v1::GetCapabilitiesResponse response;
  const grpc::Status status = fixture.Capabilities(kReaderToken, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(fixture.Capabilities("", &response).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(fixture.kept.Wait("\"peer\""),
              ContainsRegex("\"event\":\"rpc\",.*\"peer\":\"ipv4:127\\.0\\.0\\.1:[0-9]+\""));
}

}  // namespace
}  // namespace stowage::testing
