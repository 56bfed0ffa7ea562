// Calls by key to servers that are there: the real transport behind addresses that stand for several.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/rendezvous.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/client/rpc/test_certificates.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

using Clock = CallOptions::Clock;

// Takes connections over TCP and never says a word.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
  }
  ~SilentPort() { close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const int fd_;
  int port_ = 0;
};

PlanKey KeyNumber(int i) { return PlanKey{kEncodingVersion, Sha256(absl::StrCat("key ", i))}; }

absl::Status Get(PlanConnection* connection, const PlanKey& key,
                 Clock::duration timeout = seconds(10)) {
  return connection->GetPlan({key}, Budget(LeastBudget{}), CallOptions::Within(timeout)).status();
}

std::unique_ptr<FakeServer> Serve(const std::string& address = "127.0.0.1:0") {
  auto server = std::make_unique<FakeServer>(address);
  server->get_plan = [](const v1::GetPlanRequest&, v1::GetPlanResponse*) {
    return absl::NotFoundError("none");
  };
  server->compute_plan = SolveFor;
  return server;
}

std::string AddressOf(const FakeServer& server) {
  return absl::StrCat("127.0.0.1:", server.port());
}

class RoutedServersTest : public testing::Test {
 protected:
  RoutedServersTest() {
    for (int i = 0; i < 2; ++i) servers_.push_back(Serve());
    options_.address = absl::StrCat("ipv4:", AddressOf(*servers_[0]), ",", AddressOf(*servers_[1]));
    options_.connect_timeout = seconds(20);  // a machine with much to do is no server that is away
  }

  // A key whose first server is `address` and not `other`.
  static PlanKey KeyOf(const std::string& address, const std::string& other) {
    int i = 0;
    while (RendezvousScore(KeyNumber(i), address) < RendezvousScore(KeyNumber(i), other)) ++i;
    return KeyNumber(i);
  }

  std::vector<std::unique_ptr<FakeServer>> servers_;
  GrpcOptions options_;
};

TEST_F(RoutedServersTest, EveryAskOfAKeyReachesOneServerWhicheverClientAsks) {
  const auto first = MakeGrpcConnection(options_);
  options_.address = absl::StrCat("ipv4:", AddressOf(*servers_[1]), ",", AddressOf(*servers_[0]));
  const auto second = MakeGrpcConnection(options_);
  int on_first_server = 0;
  for (int i = 0; i < 40; ++i) {
    const int before[] = {servers_[0]->calls, servers_[1]->calls};
    for (int ask = 0; ask < 3; ++ask) {
      EXPECT_TRUE(absl::IsNotFound(Get(first.get(), KeyNumber(i))));
      EXPECT_TRUE(absl::IsNotFound(Get(second.get(), KeyNumber(i))));
    }
    const int asked[] = {servers_[0]->calls - before[0], servers_[1]->calls - before[1]};
    EXPECT_EQ(std::max(asked[0], asked[1]), 6);
    EXPECT_EQ(std::min(asked[0], asked[1]), 0);
    on_first_server += asked[0] > 0 ? 1 : 0;
  }
  EXPECT_GT(on_first_server, 8);
  EXPECT_LT(on_first_server, 32);
}

TEST_F(RoutedServersTest, WhenAServerDiesTheOtherAnswersAndItsOwnKeysGoBackToItLater) {
  const std::string dying = AddressOf(*servers_[0]);
  const PlanKey key = KeyOf(dying, AddressOf(*servers_[1]));
  const auto connection = MakeGrpcConnection(options_);
  EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), key)));
  EXPECT_EQ(servers_[0]->calls, 1);
  servers_[0].reset();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), key)));
  EXPECT_EQ(servers_[1]->calls, 20);

  servers_[0] = Serve(dying);
  const auto patience = Clock::now() + seconds(20);
  while (servers_[0]->calls == 0 && Clock::now() < patience) {
    EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), key)));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_GT(servers_[0]->calls, 0);
}

TEST_F(RoutedServersTest, ThePlanIsWhereItWasComputed) {
  const auto connection = MakeGrpcConnection(options_);
  const PlanKey key = MakePlanKey(SmallProfile(), {});
  const int before[] = {servers_[0]->calls, servers_[1]->calls};
  EXPECT_TRUE(
      connection
          ->ComputePlan(SmallProfile(), ShareOfStoreAll{0.8}, {}, CallOptions::Within(seconds(10)))
          .ok());
  EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), key)));
  const int asked[] = {servers_[0]->calls - before[0], servers_[1]->calls - before[1]};
  EXPECT_EQ(std::max(asked[0], asked[1]), 2);
}

TEST_F(RoutedServersTest, AServerThatIsSilentCostsOneConnectTimeoutAndNotEachCall) {
  const SilentPort silent;
  const std::string living = AddressOf(*servers_[0]);
  options_.address = absl::StrCat("ipv4:", silent.address(), ",", living);
  options_.connect_timeout = milliseconds(400);
  const auto connection = MakeGrpcConnection(options_);
  const PlanKey key = KeyOf(silent.address(), living);
  const auto start = Clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), key)));
  EXPECT_GE(Clock::now() - start, milliseconds(400));
  EXPECT_LT(Clock::now() - start, milliseconds(4000));  // ten timeouts
  EXPECT_EQ(servers_[0]->calls, 10);
}

TEST_F(RoutedServersTest, AllAwayIsUnavailableWithAHint) {
  servers_.clear();
  const absl::Status status = Get(MakeGrpcConnection(options_).get(), KeyNumber(0));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("`stowage doctor` tells"));
}

TEST_F(RoutedServersTest, ANameThatIsUnknownIsUnavailableWithTheReason) {
  options_.address = "dns:///no-such-host.invalid:7070";
  const absl::Status status = Get(MakeGrpcConnection(options_).get(), KeyNumber(0));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-host.invalid"));
}

TEST_F(RoutedServersTest, AddressesWithoutAPortAreRefused) {
  for (const char* address : {"ipv4:127.0.0.1", "ipv4:127.0.0.1:1,127.0.0.1", "dns:///localhost"}) {
    options_.address = address;
    const absl::Status status = Get(MakeGrpcConnection(options_).get(), KeyNumber(0));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address << ": " << status;
  }
}

TEST_F(RoutedServersTest, OptionsThatContradictEachOtherAreRefusedBeforeANameIsLookedUp) {
  options_.address = "dns:///no-such-host.invalid:7070";
  options_.token = "a-token";
  const absl::Status status = Get(MakeGrpcConnection(options_).get(), KeyNumber(0));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_F(RoutedServersTest, ACertificateIsForTheNameAndNotForItsAddresses) {
  const TestAuthority authority("test authority");
  CredentialFolder folder;
  FakeServer server("localhost:0", 0, TlsServer(authority.Issue("DNS:localhost")));
  options_.address = absl::StrCat("dns:///localhost:", server.port());
  options_.tls.enabled = true;
  options_.tls.ca_file = folder.Write("ca.pem", authority.cert());
  const auto connection = MakeGrpcConnection(options_);
  const auto capabilities = connection->GetCapabilities(CallOptions::Within(seconds(10)));
  EXPECT_TRUE(capabilities.ok()) << capabilities.status();
  EXPECT_EQ(connection->name(), absl::StrCat("stowaged at ", options_.address));

  FakeServer other("localhost:0", 0, TlsServer(authority.Issue("DNS:planner.internal")));
  options_.address = absl::StrCat("dns:///localhost:", other.port());
  EXPECT_TRUE(absl::IsUnavailable(
      MakeGrpcConnection(options_)->GetCapabilities(CallOptions::Within(seconds(10))).status()));
  options_.tls.server_name = "planner.internal";
  const auto named =
      MakeGrpcConnection(options_)->GetCapabilities(CallOptions::Within(seconds(10)));
  EXPECT_TRUE(named.ok()) << named.status();
}

TEST_F(RoutedServersTest, ForkedChildIsRefusedAtOnce) {
  options_.address = absl::StrCat("dns:///localhost:", servers_[0]->port());
  auto connection = MakeGrpcConnection(options_);
  ASSERT_TRUE(absl::IsNotFound(Get(connection.get(), KeyNumber(0))));
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const absl::Status status = Get(connection.get(), KeyNumber(0));
    auto fresh = MakeGrpcConnection(options_);
    const absl::Status of_fresh = Get(fresh.get(), KeyNumber(0));
    connection.reset();
    fresh.reset();
    _exit(absl::IsFailedPrecondition(status) && absl::IsFailedPrecondition(of_fresh) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), KeyNumber(0))));
}

TEST_F(RoutedServersTest, ManyThreadsShareAConnection) {
  const auto connection = MakeGrpcConnection(options_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&connection, t] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(absl::IsNotFound(Get(connection.get(), KeyNumber(10 * t + i))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(servers_[0]->calls + servers_[1]->calls, 80);
  EXPECT_GT(servers_[0]->calls, 10);
  EXPECT_GT(servers_[1]->calls, 10);
}

}  // namespace
}  // namespace stowage
