#include "client/rpc/health_probe.h"

#include <gmock/gmock.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/client/rpc/test_certificates.h"

namespace stowage {
namespace {

using testing::HasSubstr;

constexpr char kService[] = "stowage.v1.PlanService";
constexpr std::chrono::seconds kPatience(10);

class HealthProbeTest : public testing::Test {
 protected:
  void Serve(std::shared_ptr<grpc::ServerCredentials> credentials) {
    grpc::EnableDefaultHealthCheckService(true);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0", std::move(credentials), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    options_.address = absl::StrCat("localhost:", port);
  }
  void Serve() { Serve(grpc::InsecureServerCredentials()); }

  void Set(bool serving) { server_->GetHealthCheckService()->SetServingStatus(kService, serving); }

  absl::Status Probe(const std::string& service = kService) const {
    return ProbeHealth(options_, service, kPatience);
  }

  GrpcOptions options_;
  v1::PlanService::Service service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(HealthProbeTest, SaysWhatTheServerSays) {
  Serve();
  Set(true);
  EXPECT_TRUE(Probe().ok()) << Probe();
  Set(false);
  EXPECT_TRUE(absl::IsUnavailable(Probe()));
  EXPECT_THAT(std::string(Probe().message()), HasSubstr("stowage.v1.PlanService is not serving"));
  Set(true);
  EXPECT_TRUE(Probe().ok()) << Probe();
}

TEST_F(HealthProbeTest, AsksForTheWholeServerByAnEmptyName) {
  Serve();
  Set(false);
  EXPECT_TRUE(Probe("").ok()) << Probe("");
  server_->GetHealthCheckService()->SetServingStatus(false);
  EXPECT_TRUE(absl::IsUnavailable(Probe("")));
  EXPECT_THAT(std::string(Probe("").message()), HasSubstr("the server is not serving"));
}

TEST_F(HealthProbeTest, AServiceThatTheServerDoesNotKnowIsNotFound) {
  Serve();
  EXPECT_TRUE(absl::IsNotFound(Probe("nobody.Service"))) << Probe("nobody.Service");
  const std::string long_name(150, 'x');  // its length takes two bytes; over 200 gRPC refuses
  EXPECT_TRUE(absl::IsNotFound(Probe(long_name))) << Probe(long_name);
}

TEST_F(HealthProbeTest, AServerThatIsGoneIsUnavailable) {
  Serve();
  Set(true);
  server_->Shutdown();
  server_->Wait();
  EXPECT_TRUE(absl::IsUnavailable(Probe())) << Probe();
}

TEST_F(HealthProbeTest, SpeaksTls) {
  const TestAuthority authority("ca");
  CredentialFolder folder;
  Serve(TlsServer(authority.Issue("DNS:stowaged")));
  Set(true);
  options_.tls.enabled = true;
  options_.tls.ca_file = folder.Write("ca.pem", authority.cert());
  EXPECT_TRUE(absl::IsUnavailable(Probe())) << "the certificate is not for localhost: " << Probe();
  options_.tls.server_name = "stowaged";
  EXPECT_TRUE(Probe().ok()) << Probe();
  const TestAuthority stranger("stranger");
  options_.tls.ca_file = folder.Write("stranger.pem", stranger.cert());
  EXPECT_TRUE(absl::IsUnavailable(Probe())) << Probe();
}

TEST_F(HealthProbeTest, OptionsThatContradictAreRefused) {
  options_.address = "localhost:1";
  options_.token = "a-token-without-tls";
  EXPECT_TRUE(absl::IsInvalidArgument(Probe())) << Probe();
}

}  // namespace
}  // namespace stowage
