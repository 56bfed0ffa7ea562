// The doctor before real listeners, each with one thing wrong.
#include "client/rpc/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client/rpc/doctor_fixture.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Answers whatever it is sent with the same words, and hangs up; without words it says nothing.
class WordyListener {
 public:
  explicit WordyListener(std::string words)
      : words_(std::move(words)), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~WordyListener() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    for (const int fd : held_) close(fd);
    close(fd_);
  }

  int port() const { return port_; }

 private:
  void Serve() {
    for (;;) {
      const int fd = accept(fd_, nullptr, nullptr);
      if (fd < 0) return;
      char heard[4096];
      if (words_.empty() || recv(fd, heard, sizeof(heard), 0) <= 0) {
        held_.push_back(fd);
        continue;
      }
      send(fd, words_.data(), words_.size(), MSG_NOSIGNAL);
      close(fd);
    }
  }

  const std::string words_;
  const int fd_;
  int port_ = 0;
  std::thread thread_;
  std::vector<int> held_;
};

TEST_F(DoctorTest, NothingIsWrongWithoutTls) {
  Serve();
  const Diagnosis diagnosis = Look();
  EXPECT_TRUE(diagnosis.healthy()) << DiagnosisText(diagnosis);
  EXPECT_THAT(DiagnosisText(diagnosis), AllOf(HasSubstr("good   stowaged at localhost"),
                                              HasSubstr("answers"), HasSubstr(" ms")));
}

TEST_F(DoctorTest, NothingIsWrongOverAUnixSocket) {
  SocketAddress address;
  FakeServer server(address.uri());
  server.capabilities = [](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
    out->set_server_version(kVersion);
    out->set_key_encoding_version(kEncodingVersion);
    out->add_implemented_rpcs("ComputePlan");
    return absl::OkStatus();
  };
  options_.address = address.uri();
  options_.token = kSecret;
  EXPECT_TRUE(Look().healthy()) << DiagnosisText(Look());
}

TEST_F(DoctorTest, NothingIsWrongWithTlsOnBothSides) {
  Serve(TlsServer(authority_.Issue("DNS:localhost"), authority_.cert()));
  UseTls(authority_);
  const TestIdentity client = authority_.Issue("DNS:trainer");
  options_.tls.cert_file = folder_.Write("client.pem", client.cert);
  options_.tls.key_file = folder_.Write("client.key", client.key);
  spoil_ = [](v1::GetCapabilitiesResponse* out) {
    out->set_identity("trainer");
    out->set_role("planner");
    out->set_tenant("vision");
  };
  const Diagnosis diagnosis = Look();
  EXPECT_TRUE(diagnosis.healthy()) << DiagnosisText(diagnosis);
  EXPECT_THAT(DiagnosisText(diagnosis), AllOf(HasSubstr("is for localhost and trusted"),
                                              HasSubstr("trainer, planner of tenant \"vision\"")));
}

TEST_F(DoctorTest, NothingListens) {
  { Serve(); }
  const std::string address = options_.address;
  server_.reset();
  ExpectWrong(AllOf(HasSubstr("nothing listens at"), HasSubstr(address)));
  options_.address = "unix:/tmp/there is no such socket";
  ExpectWrong(HasSubstr("there is no socket"));
}

TEST_F(DoctorTest, TheNameIsUnknown) {
  // Longer than any name can be: known without asking anybody.
  options_.address = std::string(300, 'x') + ":50051";
  ExpectWrong(AllOf(HasSubstr("the name in xxx"), HasSubstr("is unknown")));
}

TEST_F(DoctorTest, TheAddressHasNoPort) {
  for (const char* address :
       {"localhost", "localhost:", ":50051", "[]:50051", "::1", "dns:///name"}) {
    options_.address = address;
    ExpectWrong(HasSubstr("port"));
  }
}

TEST_F(DoctorTest, ThePortIsAWebServers) {
  WordyListener web("HTTP/1.1 400 Bad Request\r\n\r\n<html>");
  options_.address = Here(web.port());
  ExpectWrong(HasSubstr("is a web server"));
}

TEST_F(DoctorTest, ThePortIsTheOneForMetrics) {
  WordyListener metrics("HTTP/1.1 200 OK\r\n\r\n# HELP x y\n# TYPE x counter\nx 1\n");
  options_.address = Here(metrics.port());
  ExpectWrong(HasSubstr("is a port for metrics"));
}

TEST_F(DoctorTest, WhoListensSaysNothing) {
  how_.patience = milliseconds(200);
  WordyListener silent("");
  options_.address = Here(silent.port());
  const auto start = std::chrono::steady_clock::now();
  ExpectWrong(HasSubstr("says nothing"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(DoctorTest, TheServerWantsTls) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  ExpectWrong(HasSubstr("does not speak without TLS"));
}

TEST_F(DoctorTest, TheServerSpeaksWithoutTls) {
  Serve();
  UseTls(authority_);
  ExpectWrong(HasSubstr("speaks without TLS"));
}

TEST_F(DoctorTest, TheCertificateIsForAnotherName) {
  Serve(TlsServer(authority_.Issue("DNS:planner.internal")));
  UseTls(authority_);
  ExpectWrong(AllOf(HasSubstr("is not for localhost"), HasSubstr("planner.internal")));
  options_.tls.server_name = "planner.internal";
  EXPECT_TRUE(Look().healthy()) << DiagnosisText(Look());
}

TEST_F(DoctorTest, TheCertificateIsForTheIpAddress) {
  Serve(TlsServer(authority_.Issue("IP:127.0.0.1")));
  options_.address = absl::StrCat("127.0.0.1:", server_->port());
  UseTls(authority_);
  EXPECT_TRUE(Look().healthy()) << DiagnosisText(Look());
}

TEST_F(DoctorTest, TheCaIsUnknown) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  const TestAuthority other("another authority");
  UseTls(other);
  ExpectWrong(AllOf(HasSubstr("signed by nobody"), HasSubstr(options_.tls.ca_file)));
}

TEST_F(DoctorTest, TheCertificateHasExpired) {
  Serve(TlsServer(authority_.Issue("DNS:localhost", {-3000, -1000})));
  UseTls(authority_);
  ExpectWrong(AllOf(HasSubstr("has expired"), HasSubstr("valid from")));
}

TEST_F(DoctorTest, TheCertificateIsNotValidYet) {
  Serve(TlsServer(authority_.Issue("DNS:localhost", {1000, 3000})));
  UseTls(authority_);
  ExpectWrong(HasSubstr("is not valid yet"));
}

TEST_F(DoctorTest, TheClientCertificateIsMissingOrNotGood) {
  Serve(TlsServer(authority_.Issue("DNS:localhost"), authority_.cert()));
  UseTls(authority_);
  ExpectWrong(HasSubstr("wants a client certificate"));

  const TestAuthority other("another authority");
  const TestIdentity foreign = other.Issue("DNS:trainer");
  options_.tls.cert_file = folder_.Write("client.pem", foreign.cert);
  options_.tls.key_file = folder_.Write("client.key", foreign.key);
  ExpectWrong(AllOf(HasSubstr("refuses the client certificate"), HasSubstr("client.pem")));

  folder_.Write("client.pem", authority_.Issue("DNS:trainer").cert);
  ExpectWrong(HasSubstr("are not a certificate and its key"));
}

TEST_F(DoctorTest, TheTokenIsWrongOrMissing) {
  Serve(TlsServer(authority_.Issue("DNS:localhost")));
  UseTls(authority_);
  answer_ = absl::UnauthenticatedError("unknown token");
  ExpectWrong(HasSubstr("does not know the caller"));
  EXPECT_THAT(Look().findings.back().remedy, HasSubstr("give a token (token_file)"));
  options_.token_file = folder_.Write("token", kSecret);
  ExpectWrong(HasSubstr("does not know the caller"));
  EXPECT_THAT(Look().findings.back().remedy, HasSubstr("file of tokens"));
}

TEST_F(DoctorTest, TheTokenWouldBeSeen) {
  Serve();
  options_.token = kSecret;
  ExpectWrong(HasSubstr("TLS"));
  EXPECT_EQ(server_->calls, 0);
}

TEST_F(DoctorTest, TheRoleIsTooLow) {
  Serve();
  spoil_ = [](v1::GetCapabilitiesResponse* out) {
    out->set_identity("trainer");
    out->set_role("reader");
  };
  ExpectWrong(HasSubstr("trainer is a reader"));
  answer_ = absl::PermissionDeniedError("no role");
  ExpectWrong(HasSubstr("may not even ask"));
}

TEST_F(DoctorTest, TheKeysAreOfAnotherVersion) {
  Serve();
  spoil_ = [](v1::GetCapabilitiesResponse* out) {
    out->set_key_encoding_version(kEncodingVersion + 1);
  };
  ExpectWrong(HasSubstr("no plan will be found"));
  EXPECT_EQ(Look().findings.back().remedy, "upgrade this client");
}

TEST_F(DoctorTest, AnotherVersionOfTheServerIsWorthANote) {
  Serve();
  spoil_ = [](v1::GetCapabilitiesResponse* out) { out->set_server_version("0.0.1\x1b[31m"); };
  const Diagnosis diagnosis = Look();
  EXPECT_TRUE(diagnosis.healthy());
  EXPECT_THAT(DiagnosisText(diagnosis),
              AllOf(HasSubstr("note   the server is of version 0.0.1"), Not(HasSubstr("\x1b"))));
}

TEST_F(DoctorTest, TheServerIsOfGrpcAndNotStowaged) {
  Serve();
  answer_ = absl::UnimplementedError("unknown service");
  ExpectWrong(HasSubstr("a server of gRPC, not stowaged"));
}

TEST_F(DoctorTest, ProxiesAndSlowLinksAreWorthANote) {
  Serve();
  spoil_ = [](auto*) { std::this_thread::sleep_for(milliseconds(30)); };
  how_.slow_link = milliseconds(20);
  setenv("https_proxy", "http://proxy:3128", 1);
  const Diagnosis diagnosis = Look();
  unsetenv("https_proxy");
  EXPECT_TRUE(diagnosis.healthy());
  EXPECT_THAT(DiagnosisText(diagnosis), AllOf(HasSubstr("https_proxy name a proxy"),
                                              HasSubstr("link to the server is slow")));
}

TEST_F(DoctorTest, AFileIsMissing) {
  Serve();
  options_.tls.enabled = true;
  options_.tls.ca_file = folder_.PathOf("absent.pem");
  ExpectWrong(HasSubstr("absent.pem"));
}

}  // namespace
}  // namespace stowage
