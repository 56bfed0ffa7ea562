// A server that asks who calls, and callers with tokens.
#ifndef STOWAGE_TESTS_SERVER_AUTH_AUTH_FIXTURE_H_
#define STOWAGE_TESTS_SERVER_AUTH_AUTH_FIXTURE_H_

#include <mutex>

#include "server/auth/authenticator.h"
#include "tests/client/rpc/test_certificates.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {

inline constexpr char kReaderToken[] = "reader-token-of-vision";
inline constexpr char kPlannerToken[] = "planner-token-of-vision";
inline constexpr char kOtherToken[] = "planner-token-of-speech";
inline constexpr char kTenantAdminToken[] = "admin-token-of-vision";
inline constexpr char kAdminToken[] = "admin-token-of-operations";

inline std::string TokenLines() {
  return std::string(kReaderToken) + " vision reader vision-reader\n" + kPlannerToken +
         " vision planner vision-jobs\n" + kOtherToken + " speech planner speech-jobs\n" +
         kTenantAdminToken + " vision tenant_admin vision-leads\n" + kAdminToken +
         " - admin operations\n";
}

// What is logged, kept.
class KeptLog {
 public:
  std::string Text() {
    std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }
  // Once `text` is in it, or all there is after 5 s.
  std::string Wait(const std::string& text) {
    for (int i = 0; i < 500 && Text().find(text) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return Text();
  }

 private:
  std::mutex mutex_;
  std::string text_;

 public:
  Log log{LogLevel::kDebug, [this](const std::string& text) {
            std::lock_guard<std::mutex> lock(mutex_);
            text_ += text;
          }};
};

class AuthFixture {
 public:
  explicit AuthFixture(AuthOptions auth, RpcServerOptions options = {}, bool held = false,
                       const PlanningOptions& planning = PlanningOptions())
      : base(held, options.limits, planning) {
    auth.reload_interval = std::chrono::milliseconds(50);
    auto made = Authenticator::Make(auth, &base.metrics, &kept.log);
    if (!made.ok()) {
      ADD_FAILURE() << made.status();
      return;
    }
    authenticator = *std::move(made);
    if (!options.tls.enabled()) options.listen = "unix:" + folder.PathOf("socket");
    options.log = &kept.log;
    options.authenticator = authenticator.get();
    auto started = RpcServer::Start(options, &base.service, &base.store, &base.metrics);
    if (!started.ok()) {
      ADD_FAILURE() << started.status();
      return;
    }
    server = *std::move(started);
    channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
  }

  // `path` holds TokenLines, or what the test put there.
  static AuthOptions WithTokens(const std::string& path) {
    AuthOptions auth;
    auth.token_file = path;
    return auth;
  }

  std::unique_ptr<v1::PlanService::Stub> Stub() { return v1::PlanService::NewStub(channel); }

  static void Prepare(grpc::ClientContext* context, const std::string& token) {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  }

  grpc::Status Compute(const std::string& token, const v1::ComputePlanRequest& request,
                       v1::ComputePlanResponse* response) {
    grpc::ClientContext context;
    Prepare(&context, token);
    return Stub()->ComputePlan(&context, request, response);
  }

  grpc::Status Get(const std::string& token, const v1::GetPlanRequest& request) {
    grpc::ClientContext context;
    Prepare(&context, token);
    v1::GetPlanResponse response;
    return Stub()->GetPlan(&context, request, &response);
  }

  grpc::Status Capabilities(const std::string& token, v1::GetCapabilitiesResponse* response) {
    grpc::ClientContext context;
    Prepare(&context, token);
    return Stub()->GetCapabilities(&context, {}, response);
  }

  CredentialFolder folder;
  RpcFixture base;  // its own server is not called
  KeptLog kept;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_AUTH_AUTH_FIXTURE_H_
