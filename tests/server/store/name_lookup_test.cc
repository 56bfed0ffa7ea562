// Hosts whose names are resolved at once, late, or never; and what calls to a Redis of such a name take.
#include "server/store/name_lookup.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/redis_address.h"
#include "server/store/redis_connection.h"
#include "server/store/redis_pool.h"

namespace stowage::testing {
namespace {

using Clock = NameLookup::Clock;
using Addresses = NameLookup::Addresses;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kHost[] = "redis.test";
// What a call may take beyond its time, on a busy machine.
constexpr milliseconds kLookupSlack{2000};
constexpr NameLookupOptions kForever{std::chrono::hours(1), std::chrono::hours(1)};
constexpr NameLookupOptions kAnew{seconds(0), std::chrono::hours(1)};

// Answers what it was told to last; hangs while that is nothing.
class ScriptedResolver {
 public:
  ScriptedResolver() = default;
  // Lets go of those who hang, which outlive it.
  ~ScriptedResolver() { Say(absl::UnavailableError("over")); }
  ScriptedResolver(const ScriptedResolver&) = delete;
  ScriptedResolver& operator=(const ScriptedResolver&) = delete;

  NameLookup::Resolver function() const {
    return [script = script_](const std::string&) {
      std::unique_lock<std::mutex> lock(script->mutex);
      ++script->asked;
      ++script->hanging;
      script->told.wait(lock, [&script] { return script->answer.has_value(); });
      --script->hanging;
      return *script->answer;
    };
  }
  void Say(absl::StatusOr<Addresses> answer) { Tell(std::move(answer)); }
  void Hang() { Tell(std::nullopt); }
  int asked() const { return Read(&Script::asked); }
  int hanging() const { return Read(&Script::hanging); }

 private:
  struct Script {
    std::mutex mutex;
    std::condition_variable told;
    std::optional<absl::StatusOr<Addresses>> answer;
    int asked = 0;
    int hanging = 0;
  };

  void Tell(std::optional<absl::StatusOr<Addresses>> answer) {
    std::lock_guard<std::mutex> lock(script_->mutex);
    script_->answer = std::move(answer);
    script_->told.notify_all();
  }
  int Read(int Script::*number) const {
    std::lock_guard<std::mutex> lock(script_->mutex);
    return (*script_).*number;
  }

  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
};

// Takes connections at a port of 127.0.0.1, and says nothing.
class SilentListener {
 public:
  SilentListener() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), size) != 0) std::abort();
    if (getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size) != 0) std::abort();
    if (listen(listener_, 4) != 0) std::abort();
    port_ = ntohs(name.sin_port);
  }
  ~SilentListener() { close(listener_); }
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;

  RedisAddress AddressBy(const std::string& host) const {
    RedisAddress address;
    address.host_or_path = host;
    address.port = port_;
    return address;
  }
  // What the first of those who have come has sent by now; "" where nobody has.
  std::string Heard() const {
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) return "";
    std::string bytes(4096, '\0');
    const ssize_t size = recv(client, bytes.data(), bytes.size(), MSG_DONTWAIT);
    close(client);
    return bytes.substr(0, size > 0 ? static_cast<size_t>(size) : 0);
  }

 private:
  const int listener_;
  int port_ = 0;
};

bool ComesToHold(const std::function<bool()>& holds) {
  const Clock::time_point patience = Clock::now() + seconds(30);
  while (!holds()) {
    if (Clock::now() > patience) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

Clock::time_point In(Clock::duration time) { return Clock::now() + time; }

int ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST(NameLookup, OneThatHangsCostsCallsTheirTimeAndOneThread) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  int threads = 0;
  for (int i = 0; i < 20; ++i) {
    const Clock::time_point start = Clock::now();
    const absl::Status status = names.Find(kHost, start + milliseconds(10)).status();
    const auto took = Clock::now() - start;
    EXPECT_GE(took, milliseconds(10));
    EXPECT_LT(took, kLookupSlack);
    EXPECT_EQ(status,
              absl::UnavailableError("the host name redis.test of Redis was not resolved in time"));
    if (i == 0) threads = ThreadsOfThisProcess();
  }
  // Those of other tests may have ended.
  EXPECT_LE(ThreadsOfThisProcess(), threads);
  EXPECT_TRUE(ComesToHold([&] { return resolver.hanging() == 1; }));
  EXPECT_EQ(resolver.asked(), 1);
}

TEST(NameLookup, AllWhoWaitForANameShareALookup) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function(), kForever);
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&names] {
      const auto found = names.Find(kHost, In(seconds(30)));
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(*found, (Addresses{"10.0.0.1", "10.0.0.2"}));
    });
  }
  EXPECT_TRUE(ComesToHold([&] { return resolver.hanging() == 1; }));
  resolver.Say(Addresses{"10.0.0.1", "10.0.0.2"});
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(resolver.asked(), 1);
}

TEST(NameLookup, WhatWasFoundServesWhileTheResolverHangs) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function(), kAnew);
  resolver.Say(Addresses{"10.0.0.1"});
  ASSERT_TRUE(names.Find(kHost, In(seconds(30))).ok());
  resolver.Hang();
  // The first call waits for a quarter of its time, those after it for nothing.
  for (const seconds most : {seconds(6), seconds(1), seconds(1)}) {
    const Clock::time_point start = Clock::now();
    const auto found = names.Find(kHost, start + seconds(8));
    EXPECT_LT(Clock::now() - start, most);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, Addresses{"10.0.0.1"});
  }
  EXPECT_EQ(resolver.asked(), 2);
  // Nothing is known of another name.
  EXPECT_FALSE(names.Find("other.test", In(milliseconds(10))).ok());
}

TEST(NameLookup, WhatWasFoundServesAfterAFailureUntilItIsTooOld) {
  constexpr NameLookupOptions kNoOld{seconds(0), seconds(0)};
  for (const bool serves : {true, false}) {
    ScriptedResolver resolver;
    NameLookup names(resolver.function(), serves ? kAnew : kNoOld);
    resolver.Say(Addresses{"10.0.0.1"});
    ASSERT_TRUE(names.Find(kHost, In(seconds(30))).ok());
    resolver.Say(absl::UnavailableError("Name or service not known"));
    const auto found = names.Find(kHost, In(seconds(30)));
    EXPECT_EQ(resolver.asked(), 2);
    if (serves) {
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(*found, Addresses{"10.0.0.1"});
    } else {
      EXPECT_EQ(found.status(),
                absl::UnavailableError("the host name redis.test of Redis was not resolved: Name "
                                       "or service not known"));
    }
  }
}

TEST(NameLookup, ANewAddressHoldsAfterTheTimeToLive) {
  ScriptedResolver resolver;
  NameLookup keeping(resolver.function(), kForever);
  NameLookup names(resolver.function(), {milliseconds(50), std::chrono::hours(1)});
  resolver.Say(Addresses{"10.0.0.1"});
  for (NameLookup* each : {&keeping, &names}) ASSERT_TRUE(each->Find(kHost, In(seconds(30))).ok());
  resolver.Say(Addresses{"10.0.0.2"});
  EXPECT_TRUE(ComesToHold([&names] {
    const auto found = names.Find(kHost, In(seconds(30)));
    return found.ok() && *found == Addresses{"10.0.0.2"};
  }));
  const auto kept = keeping.Find(kHost, In(seconds(30)));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, Addresses{"10.0.0.1"});
}

TEST(NameLookup, AFailureIsNotRemembered) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function(), kForever);
  resolver.Say(absl::UnavailableError("Temporary failure in name resolution"));
  EXPECT_FALSE(names.Find(kHost, In(seconds(30))).ok());
  resolver.Say(Addresses{"10.0.0.1"});
  EXPECT_TRUE(names.Find(kHost, In(seconds(30))).ok());
}

TEST(NameLookup, OnlySoManyHangAtOnceAndTheNextHaveTheirTurn) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  for (int i = 0; i < 2 * NameLookup::kMostAtOnce; ++i) {
    EXPECT_FALSE(names.Find(std::to_string(i) + ".test", Clock::now()).ok());
  }
  EXPECT_TRUE(ComesToHold([&] { return resolver.hanging() == NameLookup::kMostAtOnce; }));
  std::thread late([&names] { EXPECT_TRUE(names.Find("late.test", In(seconds(30))).ok()); });
  resolver.Say(Addresses{"10.0.0.1"});
  late.join();
  EXPECT_EQ(resolver.asked(), NameLookup::kMostAtOnce + 1);
}

TEST(NameLookup, ANumberIsNoName) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  for (const char* host : {"127.0.0.1", "::1", "2001:db8::7"}) {
    const auto found = names.Find(host, Clock::now());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, Addresses{host});
  }
  EXPECT_EQ(resolver.asked(), 0);
}

TEST(NameLookup, EndsWhileALookupHangs) {
  ScriptedResolver resolver;
  {
    NameLookup names(resolver.function());
    EXPECT_FALSE(names.Find(kHost, Clock::now()).ok());
    EXPECT_TRUE(ComesToHold([&] { return resolver.hanging() == 1; }));
  }
  EXPECT_EQ(resolver.hanging(), 1);
  resolver.Say(Addresses{"10.0.0.1"});
  EXPECT_TRUE(ComesToHold([&] { return resolver.hanging() == 0; }));
}

TEST(NameLookup, TheSystemsResolverFindsThisMachine) {
  const auto found = SystemNames()->Find("localhost", In(seconds(30)));
  ASSERT_TRUE(found.ok()) << found.status();
  for (const std::string& address : *found) EXPECT_TRUE(IsIpAddress(address)) << address;
  // No name may have two dots in a row: nobody is asked.
  const absl::Status none = SystemNames()->Find("no..where", In(seconds(30))).status();
  EXPECT_TRUE(absl::IsUnavailable(none)) << none;
  EXPECT_NE(none.message().find("no..where"), absl::string_view::npos) << none;
}

TEST(RedisByName, ACallEndsAtItsTimeOutWhileTheResolverHangs) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  const SilentListener redis;
  RedisOptions options;
  options.address = redis.AddressBy(kHost);
  options.names = &names;
  RedisPool pool(options);
  for (int i = 0; i < options.breaker.failures; ++i) {
    const Clock::time_point start = Clock::now();
    const absl::Status status = pool.Ping();
    EXPECT_LT(Clock::now() - start, options.timeout + kLookupSlack);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find(kHost), absl::string_view::npos) << status;
  }
  EXPECT_TRUE(pool.resting());
}

TEST(RedisByName, ItsAddressesAreTriedInTurn) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  // Nobody listens at the first one.
  resolver.Say(Addresses{"127.0.0.2", "127.0.0.1"});
  const SilentListener redis;
  const auto connection = RedisConnection::Open(redis.AddressBy(kHost), In(seconds(30)), &names);
  EXPECT_TRUE(connection.ok()) << connection.status();
  resolver.Say(Addresses{"127.0.0.2"});
  NameLookup others(resolver.function());
  const auto refused = RedisConnection::Open(redis.AddressBy(kHost), In(seconds(30)), &others);
  EXPECT_EQ(refused.status(), absl::UnavailableError("cannot connect to Redis"));
}

TEST(RedisByName, TlsSaysTheNameAndNotItsAddress) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  resolver.Say(Addresses{"127.0.0.1"});
  const SilentListener redis;
  RedisAddress address = redis.AddressBy(kHost);
  address.tls.emplace();
  EXPECT_FALSE(RedisConnection::Open(address, In(seconds(1)), &names).ok());
  EXPECT_NE(redis.Heard().find(kHost), std::string::npos) << "the server's name is in the clear";
}

TEST(RedisByName, AnAddressOrASocketHasNone) {
  ScriptedResolver resolver;
  NameLookup names(resolver.function());
  const SilentListener redis;
  EXPECT_TRUE(RedisConnection::Open(redis.AddressBy("127.0.0.1"), In(seconds(30)), &names).ok());
  RedisAddress path;
  path.host_or_path = "/no/such/socket";
  EXPECT_EQ(RedisConnection::Open(path, In(seconds(30)), &names).status(),
            absl::UnavailableError("cannot connect to Redis"));
  EXPECT_EQ(resolver.asked(), 0);
}

}  // namespace
}  // namespace stowage::testing
