// TLS, certificates of clients, and new certificates in a running server.
#include <gmock/gmock.h>

#include <ctime>

#include "server/auth/certificate_check.h"
#include "tests/server/auth/auth_fixture.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kServerNames[] = "DNS:stowaged.test,IP:127.0.0.1";

class TlsTest : public ::testing::Test {
 protected:
  RpcServerOptions Options(bool client_certificates) {
    RpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls.cert = cert_;
    options.tls.key = key_;
    if (client_certificates) options.tls.client_ca = folder_.Write("ca", authority_.cert());
    options.tls.reload_interval = std::chrono::milliseconds(50);
    return options;
  }

  // A channel that trusts `authority` and shows `own`, if it has one.
  std::shared_ptr<grpc::Channel> Connect(const AuthFixture& fixture, const TestAuthority& authority,
                                         const TestIdentity& own) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority.cert();
    if (!own.cert.empty()) {
      options.pem_cert_chain = own.cert;
      options.pem_private_key = own.key;
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return grpc::CreateCustomChannel(fixture.server->address(), grpc::SslCredentials(options),
                                     arguments);
  }

  grpc::Status Ask(AuthFixture* fixture, const TestAuthority& authority, const TestIdentity& own,
                   const std::string& token, v1::GetCapabilitiesResponse* response) {
    fixture->channel = Connect(*fixture, authority, own);
    return fixture->Capabilities(token, response);
  }

  // Whether a server of `authority` is there within 5 s.
  bool Sees(AuthFixture* fixture, const TestAuthority& authority) {
    for (int i = 0; i < 50; ++i) {
      if (Ask(fixture, authority, {}, kReaderToken, &response_).ok()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  CredentialFolder folder_;
  const TestAuthority authority_{"authority"};
  const TestIdentity server_ = authority_.Issue(kServerNames);
  const std::string cert_ = folder_.Write("cert", server_.cert);
  const std::string key_ = folder_.Write("key", server_.key);
  v1::GetCapabilitiesResponse response_;
};

TEST_F(TlsTest, TokensOverTls) {
  AuthFixture fixture(AuthFixture::WithTokens(folder_.Write("tokens", TokenLines())),
                      Options(false));
  EXPECT_TRUE(Ask(&fixture, authority_, {}, kReaderToken, &response_).ok());
  EXPECT_EQ(response_.tenant(), "vision");
  EXPECT_EQ(Ask(&fixture, authority_, {}, "", &response_).error_code(), grpc::UNAUTHENTICATED);
  // A client without TLS, and one that trusts somebody else.
  fixture.channel =
      grpc::CreateChannel(fixture.server->address(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(fixture.Capabilities(kReaderToken, &response_).error_code(), grpc::UNAVAILABLE);
  const TestAuthority other("other");
  EXPECT_EQ(Ask(&fixture, other, {}, kReaderToken, &response_).error_code(), grpc::UNAVAILABLE);
}

TEST_F(TlsTest, CertificatesOfClientsSayWhoTheyAre) {
  AuthOptions auth;
  auth.client_certificates = true;
  auth.allow_san = {"*.train.test"};
  auth.identities_file =
      folder_.Write("identities", "spiffe://cluster/vision vision reader\n10.1.2.3 - admin ops\n");
  AuthFixture fixture(auth, Options(true));
  struct Case {
    const char* names;
    const char* identity;
    const char* tenant;
    const char* role;
  };
  const Case cases[] = {
      {"DNS:job.train.test", "job.train.test", "", "planner"},
      {"URI:spiffe://cluster/vision", "spiffe://cluster/vision", "vision", "reader"},
      {"IP:10.1.2.3", "ops", "", "admin"},
      {"DNS:unknown.test,URI:spiffe://cluster/vision", "spiffe://cluster/vision", "vision",
       "reader"},
  };
  for (const Case& c : cases) {
    const TestIdentity own = authority_.Issue(c.names);
    const grpc::Status status = Ask(&fixture, authority_, own, "", &response_);
    ASSERT_TRUE(status.ok()) << c.names << ": " << status.error_message();
    EXPECT_EQ(response_.identity(), c.identity);
    EXPECT_EQ(response_.tenant(), c.tenant);
    EXPECT_EQ(response_.role(), c.role);
  }
  for (const char* names : {"DNS:train.test", "DNS:a.b.train.test", "DNS:10.1.2.3",
                            "email:job@train.test", "URI:spiffe://cluster/vision2"}) {
    const TestIdentity own = authority_.Issue(names);
    const grpc::Status status = Ask(&fixture, authority_, own, "", &response_);
    EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED) << names;
    EXPECT_THAT(status.error_message(), StartsWith("CERTIFICATE_NOT_ALLOWED: "));
    EXPECT_THAT(status.error_message(), Not(HasSubstr("train")));
  }
}

TEST_F(TlsTest, AClientWithoutACertificateOfTheAuthorityEndsAtTheHandshake) {
  AuthOptions auth;
  auth.client_certificates = true;
  auth.allow_san = {"*"};
  AuthFixture fixture(auth, Options(true));
  EXPECT_EQ(Ask(&fixture, authority_, {}, "", &response_).error_code(), grpc::UNAVAILABLE);
  const TestAuthority other("other");
  const TestIdentity foreign = other.Issue("DNS:job.train.test");
  EXPECT_EQ(Ask(&fixture, authority_, foreign, "", &response_).error_code(), grpc::UNAVAILABLE);
}

TEST_F(TlsTest, ATokenMayStandForACertificate) {
  AuthOptions auth = AuthFixture::WithTokens(folder_.Write("tokens", TokenLines()));
  auth.client_certificates = true;
  auth.allow_san = {"*.train.test"};
  RpcServerOptions options = Options(true);
  options.tls.require_client_certificate = false;
  AuthFixture fixture(auth, options);
  EXPECT_TRUE(Ask(&fixture, authority_, {}, kReaderToken, &response_).ok());
  EXPECT_EQ(response_.identity(), "vision-reader");
  const TestIdentity own = authority_.Issue("DNS:job.train.test");
  EXPECT_TRUE(Ask(&fixture, authority_, own, "", &response_).ok());
  EXPECT_EQ(response_.identity(), "job.train.test");
  // A wrong token is not made good by a certificate.
  EXPECT_EQ(Ask(&fixture, authority_, own, "a-wrong-token-here", &response_).error_code(),
            grpc::UNAUTHENTICATED);
  EXPECT_EQ(Ask(&fixture, authority_, {}, "", &response_).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(TlsTest, NewConnectionsSeeANewCertificate) {
  AuthFixture fixture(AuthFixture::WithTokens(folder_.Write("tokens", TokenLines())),
                      Options(false));
  const TestAuthority next("next");
  ASSERT_TRUE(Ask(&fixture, authority_, {}, kReaderToken, &response_).ok());
  const auto before = fixture.channel;
  TestLifetime longer;
  longer.until *= 2;
  const double ends_before = fixture.base.metrics.certificate_expiry;
  const TestIdentity replacement = next.Issue(kServerNames, longer);
  folder_.Write("key", replacement.key);
  folder_.Write("cert", replacement.cert);
  EXPECT_TRUE(Sees(&fixture, next));
  // Half an hour is more than the test takes.
  const double ends = fixture.base.metrics.certificate_expiry;
  EXPECT_GT(ends_before, static_cast<double>(std::time(nullptr)) + 1800);
  EXPECT_GT(ends, ends_before + 1800);
  EXPECT_EQ(Ask(&fixture, authority_, {}, kReaderToken, &response_).error_code(),
            grpc::UNAVAILABLE);
  // What is connected stays so.
  fixture.channel = before;
  EXPECT_TRUE(fixture.Capabilities(kReaderToken, &response_).ok());
}

// As where one of the two is replaced before the other.
TEST_F(TlsTest, ACertificateBesideTheKeyOfAnotherIsRefusedAndTheOldPairStays) {
  AuthFixture fixture(AuthFixture::WithTokens(folder_.Write("tokens", TokenLines())),
                      Options(false));
  const TestAuthority next("next");
  const TestIdentity replacement = next.Issue(kServerNames);
  folder_.Write("cert", replacement.cert);
  const std::string refused = fixture.kept.Wait("file_refused");
  EXPECT_THAT(refused, HasSubstr("is not the key of"));
  EXPECT_EQ(fixture.base.metrics.file_reloads[0], 1);
  // Longer than gRPC takes to see what it is given.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const grpc::Status still = Ask(&fixture, authority_, {}, kReaderToken, &response_);
  EXPECT_TRUE(still.ok()) << still.error_message();
  folder_.Write("key", replacement.key);
  EXPECT_THAT(fixture.kept.Wait("file_reloaded"), HasSubstr("file_reloaded"));
  EXPECT_EQ(fixture.base.metrics.file_reloads[1], 1);
  EXPECT_TRUE(Sees(&fixture, next));
  EXPECT_THAT(fixture.kept.Text(), Not(HasSubstr("PRIVATE KEY")));
}

TEST_F(TlsTest, AuthoritiesThatAreNoneAreRefusedAndTheOldOnesStay) {
  AuthOptions auth;
  auth.client_certificates = true;
  auth.allow_san = {"*"};
  AuthFixture fixture(auth, Options(true));
  folder_.Write("ca", "no certificate at all");
  EXPECT_THAT(fixture.kept.Wait("file_refused"), HasSubstr("holds no certificate in PEM"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const TestIdentity own = authority_.Issue("DNS:job.train.test");
  EXPECT_TRUE(Ask(&fixture, authority_, own, "", &response_).ok());
  const TestAuthority other("other");
  folder_.Write("ca", other.cert());
  EXPECT_THAT(fixture.kept.Wait("file_reloaded"), HasSubstr("file_reloaded"));
  bool seen = false;
  for (int i = 0; i < 50 && !seen; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    seen = Ask(&fixture, authority_, other.Issue("DNS:job.train.test"), "", &response_).ok();
  }
  EXPECT_TRUE(seen);
}

// Each file holds what the other one is for as well.
TEST_F(TlsTest, FilesThatHoldBothCertificateAndKey) {
  const TestIdentity other = authority_.Issue("DNS:another.test");
  folder_.Write("cert", other.key + server_.cert);
  folder_.Write("key", other.cert + server_.key);
  AuthFixture fixture(AuthFixture::WithTokens(folder_.Write("tokens", TokenLines())),
                      Options(false));
  const grpc::Status status = Ask(&fixture, authority_, {}, kReaderToken, &response_);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(TlsTest, AServerWhoseCertificateIsNoneDoesNotStart) {
  AuthFixture fixture(AuthFixture::WithTokens(folder_.Write("tokens", TokenLines())));
  RpcServerOptions options = Options(false);
  options.tls.key = folder_.Write("other.key", authority_.Issue(kServerNames).key);
  options.log = &fixture.kept.log;
  options.authenticator = fixture.authenticator.get();
  const auto started =
      RpcServer::Start(options, &fixture.base.service, &fixture.base.store, &fixture.base.metrics);
  EXPECT_TRUE(absl::IsInvalidArgument(started.status())) << started.status();
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamed) {
  const std::string other = folder_.Write("other.key", authority_.Issue(kServerNames).key);
  TestLifetime past;
  past.until = -60;
  const TestIdentity expired = authority_.Issue(kServerNames, past);
  const std::string old = folder_.Write("old", expired.cert);
  EXPECT_TRUE(ReadServerCertificate(cert_, key_).ok());
  EXPECT_TRUE(ReadAuthorities(folder_.Write("ca", authority_.cert())).ok());
  const auto says = [](const absl::StatusOr<std::string>& read) {
    return read.status().ToString();
  };
  EXPECT_THAT(says(ReadServerCertificate(cert_, other)),
              HasSubstr(other + ": is not the key of " + cert_));
  EXPECT_THAT(says(ReadServerCertificate(folder_.PathOf("none"), key_)),
              HasSubstr("none: cannot be read"));
  EXPECT_THAT(says(ReadServerCertificate(key_, key_)), HasSubstr("holds no certificate in PEM"));
  EXPECT_THAT(says(ReadServerCertificate(cert_, cert_)), HasSubstr("holds no private key in PEM"));
  EXPECT_THAT(says(ReadServerCertificate(old, folder_.Write("old.key", expired.key))),
              HasSubstr(old + ": the certificate has expired"));
  EXPECT_THAT(says(ReadAuthorities(key_)), HasSubstr("holds no certificate"));
}

}  // namespace
}  // namespace stowage::testing
