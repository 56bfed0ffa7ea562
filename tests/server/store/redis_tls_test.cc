// A Redis that is talked to by TLS alone: the right one, and all that are not.
#include "server/store/redis_tls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/store/name_lookup.h"
#include "server/store/redis_cluster.h"
#include "server/store/redis_plan_store.h"
#include "tests/client/rpc/test_certificates.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;

const PlanKey kKey = KeyOf("a");

const bool kSkips = (SkipWithoutRedis(), true);

constexpr char kLocal[] = "DNS:localhost,IP:127.0.0.1";

class RedisTlsTest : public ::testing::Test {
 protected:
  // Lets in those alone that show a certificate of the authority if it `wants_clients`.
  std::unique_ptr<RedisServer> Server(const std::string& names, bool wants_clients = false,
                                      const std::vector<std::string>& more = {}) {
    const TestIdentity identity = authority_.Issue(names);
    std::vector<std::string> arguments = {"--bind",
                                          "127.0.0.1",
                                          "--tls-port",
                                          std::to_string(port_),
                                          "--tls-ca-cert-file",
                                          files_.ca,
                                          "--tls-cert-file",
                                          folder_.Write("server.pem", identity.cert),
                                          "--tls-key-file",
                                          folder_.Write("server.key", identity.key),
                                          "--tls-auth-clients",
                                          wants_clients ? "yes" : "no"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<RedisServer>(arguments);
  }
  RedisOptions Options(const std::string& host = "127.0.0.1") const {
    RedisOptions options;
    options.address.host_or_path = host;
    options.address.port = port_;
    options.address.tls = files_;
    options.timeout = std::chrono::seconds(10);
    return options;
  }
  // Refused, and says so.
  static void ExpectRefused(const RedisOptions& options, const std::string& says) {
    const absl::Status refused = RedisPool(options).Ping();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_NE(refused.ToString().find(says), std::string::npos) << refused;
  }

  const int port_ = FreePort();
  CredentialFolder folder_;
  const TestAuthority authority_{"plans"};
  RedisTlsFiles files_{folder_.Write("ca.pem", authority_.cert()), "", ""};
};

TEST_F(RedisTlsTest, CarriesEntriesOfAnySize) {
  const auto server = Server(kLocal);
  for (const char* host : {"127.0.0.1", "localhost"}) {
    CountingMetrics metrics;
    RedisPlanStore store({}, std::make_shared<RedisPool>(Options(host)), &metrics);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (const int64_t size : {0, 16'000, 70'000, 4'000'000}) {
          const std::string name = host + std::to_string(t) + "/" + std::to_string(size);
          ASSERT_TRUE(store.Put(KeyOf(name), EntryOf(name, size)).ok());
          // Not from what is known to be the same.
          CountingMetrics others;
          RedisPlanStore other({}, std::make_shared<RedisPool>(Options(host)), &others);
          const auto found = other.Get(KeyOf(name), Access::kLookup);
          ASSERT_NE(found, nullptr);
          EXPECT_EQ(found->plans[0].plan->explanation.size(), static_cast<size_t>(size));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(RedisTlsTest, IsOfNobodyElse) {
  const auto server = Server(kLocal);
  ASSERT_TRUE(RedisPool(Options()).Ping().ok());
  RedisOptions other = Options();
  const TestAuthority stranger("stranger");
  other.address.tls->ca = folder_.Write("stranger.pem", stranger.cert());
  ExpectRefused(other, "its certificate: ");
  other.address.tls->ca = folder_.PathOf("none.pem");
  ExpectRefused(other, "none.pem cannot be used");
}

TEST_F(RedisTlsTest, IsForTheNameThatWasAskedFor) {
  const auto server = Server("DNS:elsewhere,DNS:localhost");
  EXPECT_TRUE(RedisPool(Options("localhost")).Ping().ok());
  ExpectRefused(Options("127.0.0.1"), "its certificate: IP address mismatch");
}

TEST_F(RedisTlsTest, AServerForAnotherNameIsRefused) {
  const auto server = Server("DNS:elsewhere,IP:127.0.0.1");
  EXPECT_TRUE(RedisPool(Options("127.0.0.1")).Ping().ok());
  ExpectRefused(Options("localhost"), "its certificate: hostname mismatch");
}

// Though it is its address that is connected to.
TEST_F(RedisTlsTest, IsForTheNameThatWasLookedUp) {
  const auto server = Server("DNS:plans.test");
  NameLookup names([](const std::string&) { return NameLookup::Addresses{"127.0.0.1"}; });
  RedisOptions options = Options("plans.test");
  options.names = &names;
  const absl::Status found = RedisPool(options).Ping();
  EXPECT_TRUE(found.ok()) << found;
  options.address.host_or_path = "other.test";
  ExpectRefused(options, "its certificate: hostname mismatch");
}

TEST_F(RedisTlsTest, AnotherNameThanTheHostMayBeWanted) {
  const auto server = Server("DNS:elsewhere");
  RedisOptions options = Options("127.0.0.1");
  ExpectRefused(options, "its certificate: ");
  options.address.tls->server_name = "elsewhere";
  EXPECT_TRUE(RedisPool(options).Ping().ok());
  options.address.tls->server_name = "localhost";
  ExpectRefused(options, "its certificate: hostname mismatch");
}

TEST_F(RedisTlsTest, ShowsItsOwnCertificateWhereThatIsWanted) {
  const auto server = Server(kLocal, true);
  // It may hang up before what it says is read.
  EXPECT_TRUE(absl::IsUnavailable(RedisPool(Options()).Ping()));
  const TestIdentity client = authority_.Issue("DNS:stowaged");
  files_.cert = folder_.Write("client.pem", client.cert);
  files_.key = folder_.Write("client.key", client.key);
  RedisPool pool(Options());
  EXPECT_TRUE(pool.Ping().ok());
  // What is rotated holds for the connections that come after it.
  const TestIdentity strange = TestAuthority("stranger").Issue("DNS:stowaged");
  folder_.Write("client.pem", strange.cert);
  folder_.Write("client.key", strange.key);
  EXPECT_TRUE(pool.Ping().ok()) << "it is connected";
  EXPECT_FALSE(RedisPool(Options()).Ping().ok());
  folder_.Write("client.key", client.key);
  ExpectRefused(Options(), "client.key cannot be used");
}

// Neither waits for longer than it may, and nothing goes there in the open.
TEST_F(RedisTlsTest, APlainPortIsNone) {
  const int plain_port = FreePort();
  const RedisServer plain({"--bind", "127.0.0.1", "--port", std::to_string(plain_port)});
  RedisOptions options = Options();
  options.address.port = plain_port;
  options.address.password = "secret";
  options.timeout = std::chrono::milliseconds(300);
  EXPECT_TRUE(absl::IsUnavailable(RedisPool(options).Ping()));
  const auto server = Server(kLocal);
  options = Options();
  options.address.tls.reset();
  options.timeout = std::chrono::milliseconds(300);
  EXPECT_TRUE(absl::IsUnavailable(RedisPool(options).Ping()));
}

TEST_F(RedisTlsTest, IsThatOfAClusterToo) {
  const auto server = Server(kLocal, false,
                             {"--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port",
                              std::to_string(FreePort())});
  ASSERT_EQ(server->Ask({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text, "OK");
  RedisOptions options = Options();
  options.address.host_or_path.clear();
  options.address.nodes = {{"127.0.0.1", port_}};
  RedisCluster cluster(options);
  const auto patience = Clock::now() + std::chrono::seconds(20);
  absl::Status written = absl::UnavailableError("not tried");
  while (!written.ok() && Clock::now() < patience) {
    const auto replies = cluster.Run({{"SET", "a", "1"}});
    written = replies.ok() ? StatusOf(replies->front()) : replies.status();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(written.ok()) << written;
  options.address.tls->ca = "";
  EXPECT_TRUE(absl::IsUnavailable(RedisCluster(options).Ping())) << "the system knows no such one";
}

TEST_F(RedisTlsTest, IsThatOfSentinelsToo) {
  const auto server = Server(kLocal);
  const RedisSentinel sentinel(port_, 1,
                               "tls-replication yes\ntls-auth-clients no\ntls-ca-cert-file " +
                                   files_.ca + "\ntls-cert-file " + folder_.PathOf("server.pem") +
                                   "\ntls-key-file " + folder_.PathOf("server.key") + "\n");
  RedisOptions options = Options();
  options.address.host_or_path.clear();
  options.address.primary = "plans";
  options.address.sentinels = {sentinel.host()};
  const absl::Status found = RedisPool(options).Ping();
  EXPECT_TRUE(found.ok()) << found;
  options.address.tls->ca = "";
  EXPECT_TRUE(absl::IsUnavailable(RedisPool(options).Ping())) << "the system knows no such one";
}

TEST_F(RedisTlsTest, ARestartIsNotNoticed) {
  const auto server = Server(kLocal);
  RedisPool pool(Options());
  ASSERT_TRUE(pool.Ping().ok());
  server->Kill();
  server->Start();
  EXPECT_TRUE(pool.Ping().ok());
}

}  // namespace
}  // namespace stowage::testing
