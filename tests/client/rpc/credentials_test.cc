// TLS, tokens, replicas: connections that are more than a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_connection.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/client/rpc/test_certificates.h"

namespace stowage {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "s3cr3t-t0k3n";

std::string HeaderOf(const grpc::ServerContext& context, const std::string& name) {
  const auto found = context.client_metadata().find(name);
  return found == context.client_metadata().end()
             ? ""
             : std::string(found->second.data(), found->second.size());
}

class CredentialsTest : public testing::Test {
 protected:
  void Serve(std::shared_ptr<grpc::ServerCredentials> credentials) {
    server_ = std::make_unique<FakeServer>("localhost:0", 0, std::move(credentials));
    options_.address = absl::StrCat("localhost:", server_->port());
    server_->capabilities = [this](const grpc::ServerContext& context, auto*) {
      authorization_ = HeaderOf(context, "authorization");
      user_agent_ = HeaderOf(context, "user-agent");
      return answer_;
    };
  }

  void UseTls() {
    options_.tls.enabled = true;
    options_.tls.ca_file = folder_.Write("ca.pem", authority_.cert());
  }

  absl::Status Ask() { return Ask(MakeGrpcConnection(options_).get()); }
  static absl::Status Ask(PlanConnection* connection) {
    return connection->GetCapabilities(CallOptions::Within(seconds(5))).status();
  }

  TestAuthority authority_{"test authority"};
  CredentialFolder folder_;
  GrpcOptions options_;
  absl::Status answer_;
  std::string authorization_;
  std::string user_agent_;
  std::unique_ptr<FakeServer> server_;  // ends first: its threads write the others
};

TEST_F(CredentialsTest, TlsWithTheServersCertificateChecked) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls();
  EXPECT_TRUE(Ask().ok()) << Ask();
  const TestAuthority other("another authority");
  options_.tls.ca_file = folder_.Write("other.pem", other.cert());
  EXPECT_TRUE(absl::IsUnavailable(Ask())) << Ask();
  EXPECT_THAT(std::string(Ask().message()),
              AllOf(HasSubstr("tried with TLS"), HasSubstr("another CA")));
}

TEST_F(CredentialsTest, TheCertificateIsForTheAddressUnlessANameIsGiven) {
  Serve(TlsServer(authority_.Issue("DNS:planner.internal")));
  UseTls();
  EXPECT_TRUE(absl::IsUnavailable(Ask())) << Ask();
  options_.tls.server_name = "planner.internal";
  EXPECT_TRUE(Ask().ok()) << Ask();
}

TEST_F(CredentialsTest, ClientCertificatesAreShown) {
  Serve(TlsServer(authority_.Issue("DNS:localhost"), authority_.cert()));
  UseTls();
  EXPECT_TRUE(absl::IsUnavailable(Ask())) << Ask();
  const TestIdentity client = authority_.Issue("DNS:trainer");
  options_.tls.cert_file = folder_.Write("client.pem", client.cert);
  options_.tls.key_file = folder_.Write("client.key", client.key);
  EXPECT_TRUE(Ask().ok()) << Ask();
}

TEST_F(CredentialsTest, RotatedFilesAreReadAfterAFailure) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls();
  const TestAuthority other("another authority");
  folder_.Write("ca.pem", other.cert());
  const auto connection = MakeGrpcConnection(options_);
  EXPECT_TRUE(absl::IsUnavailable(Ask(connection.get())));
  folder_.Write("ca.pem", authority_.cert());
  EXPECT_TRUE(Ask(connection.get()).ok());
}

TEST_F(CredentialsTest, ATokenIsSentOverTls) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls();
  options_.token = kSecret;
  EXPECT_TRUE(Ask().ok()) << Ask();
  EXPECT_EQ(authorization_, absl::StrCat("Bearer ", kSecret));
}

TEST_F(CredentialsTest, ATokenFileIsReadAgainWhenItChanges) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls();
  options_.token_file = folder_.Write("token", "first\n");
  const auto connection = MakeGrpcConnection(options_);
  EXPECT_TRUE(Ask(connection.get()).ok());
  EXPECT_EQ(authorization_, "Bearer first");
  folder_.Write("token", "other\n");
  EXPECT_TRUE(Ask(connection.get()).ok());
  EXPECT_EQ(authorization_, "Bearer other");
}

TEST_F(CredentialsTest, ATokenIsSentOverAUnixSocket) {
  SocketAddress address;
  FakeServer server(address.uri());
  std::string seen;
  server.capabilities = [&seen](const grpc::ServerContext& context, auto*) {
    seen = HeaderOf(context, "authorization");
    return absl::OkStatus();
  };
  options_.address = address.uri();
  options_.token = kSecret;
  EXPECT_TRUE(Ask().ok()) << Ask();
  EXPECT_EQ(seen, absl::StrCat("Bearer ", kSecret));
}

// Anybody on the way could read it.
TEST_F(CredentialsTest, ATokenIsNeverSentInTheClear) {
  Serve(nullptr);
  options_.token = kSecret;
  const absl::Status status = Ask();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("TLS"), Not(HasSubstr(kSecret))));
  EXPECT_EQ(server_->calls, 0);
}

TEST_F(CredentialsTest, OptionsThatContradictEachOtherAreRefused) {
  std::vector<GrpcOptions> wrong(5);
  for (GrpcOptions& options : wrong) options.address = "localhost:1";
  wrong[0].address = "";
  wrong[1].tls.ca_file = "/ca.pem";
  wrong[2].tls.enabled = true;
  wrong[2].tls.cert_file = "/c.pem";
  wrong[3].token_file = "/token";
  wrong[4].tls.enabled = true;
  wrong[4].token_file = "/token";
  wrong[4].token = kSecret;
  for (const GrpcOptions& options : wrong) {
    EXPECT_TRUE(GetFieldViolation(CheckGrpcOptions(options)).has_value());
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(MakeGrpcConnection(options).get())));
  }
  wrong[4].token_file = "";
  EXPECT_TRUE(CheckGrpcOptions(wrong[4]).ok());
}

TEST_F(CredentialsTest, FilesThatCannotServeAreNamedAndNotShown) {
  Serve(nullptr);
  options_.tls.enabled = true;
  options_.tls.ca_file = folder_.PathOf("absent");
  EXPECT_THAT(std::string(Ask().message()), HasSubstr("absent"));
  options_.tls.ca_file = folder_.Write("text", kSecret);
  EXPECT_THAT(std::string(Ask().message()), AllOf(HasSubstr("PEM"), Not(HasSubstr(kSecret))));
  options_.tls.ca_file = "";
  for (const std::string& token : {std::string("\n"), std::string(kSecret) + "\nsecond line"}) {
    options_.token_file = folder_.Write("token", token);
    const absl::Status status = Ask();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("token_file"), Not(HasSubstr(kSecret))));
  }
}

TEST_F(CredentialsTest, RefusalsSayWhatWasSentAndNotItsSecret) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls();
  for (const absl::Status& refusal :
       {absl::UnauthenticatedError("who?"), absl::PermissionDeniedError("no")}) {
    answer_ = refusal;
    options_.token_file = "";
    EXPECT_EQ(Ask().code(), refusal.code());
    EXPECT_THAT(std::string(Ask().message()), HasSubstr("no credentials were sent"));
    options_.token_file = folder_.Write("token", kSecret);
    EXPECT_THAT(
        std::string(Ask().message()),
        AllOf(HasSubstr("the bearer token of " + options_.token_file), Not(HasSubstr(kSecret))));
  }
}

TEST_F(CredentialsTest, CallsNameTheirProgram) {
  Serve(nullptr);
  EXPECT_TRUE(Ask().ok());
  EXPECT_THAT(user_agent_, testing::StartsWith("stowage/"));
  options_.user_agent = "trainer/2.1";
  EXPECT_TRUE(Ask().ok());
  EXPECT_THAT(user_agent_, testing::StartsWith("trainer/2.1 stowage/"));
}

TEST_F(CredentialsTest, AnAddressThatStandsForManyStillAnswers) {
  Serve(nullptr);
  options_.address = absl::StrCat("dns:///", options_.address);
  EXPECT_TRUE(Ask().ok()) << Ask();
  const auto connection = MakeGrpcConnection(options_);
  EXPECT_TRUE(Ask(connection.get()).ok());
  answer_ = absl::UnavailableError("draining");
  EXPECT_TRUE(absl::IsUnavailable(Ask(connection.get())));
  answer_ = absl::OkStatus();
  EXPECT_TRUE(Ask(connection.get()).ok());
}

}  // namespace
}  // namespace stowage
