// The built binary and its configuration: what is checked, what is refused, and that nothing secret
// is ever said.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "proto/codec/codec.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/client/rpc/test_certificates.h"
#include "tests/server/process/child_process.h"
#include "tests/server/support/profiles.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "a-very-secret-token";

struct Outcome {
  int code = 0;
  std::string output;
};

// Of two equal flags the last one counts.
std::vector<std::string> Command(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {STOWAGED_BINARY, "--store=memory"};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

Outcome RunCommand(const std::vector<std::string>& command) {
  ChildProcess child(command);
  Outcome outcome;
  outcome.output = child.ReadUntil("no such text");
  outcome.code = child.Wait();
  return outcome;
}

Outcome RunWith(const std::vector<std::string>& flags) { return RunCommand(Command(flags)); }

Outcome Check(std::vector<std::string> flags) {
  flags.emplace_back("--check_config");
  return RunWith(flags);
}

// A variable of this process and its children, until it goes.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

class ConfigurationTest : public ::testing::Test {
 protected:
  CredentialFolder folder_;
  const TestAuthority authority_{"authority"};
  const TestIdentity server_ = authority_.Issue("DNS:localhost,IP:127.0.0.1");
  const std::string cert_ = "--tls_cert=" + folder_.Write("cert", server_.cert);
  const std::string key_ = "--tls_key=" + folder_.Write("key", server_.key);
  const std::string ca_ = "--tls_client_ca=" + folder_.Write("ca", authority_.cert());
  const std::string tokens_ =
      "--token_file=" + folder_.Write("tokens", std::string(kToken) + " vision planner jobs\n");
};

TEST_F(ConfigurationTest, ACheckedConfigurationIsPrintedAndNothingIsOpened) {
  const std::string socket = folder_.PathOf("socket");
  const Outcome outcome = Check({"--listen=unix:" + socket, "--queue_limit=7", tokens_});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("queue_limit = 7  # command line\n"));
  EXPECT_THAT(outcome.output, HasSubstr("max_stages = 10000  # default\n"));
  struct stat status = {};
  EXPECT_NE(stat(socket.c_str(), &status), 0);
  const std::string file = folder_.Write("stowaged.conf", outcome.output);
  EXPECT_EQ(Check({"--config=" + file}).code, 0);
}

TEST_F(ConfigurationTest, WhatWouldBeOpenOrAbortIsRefusedWithTheReason) {
  struct Case {
    std::vector<std::string> flags;
    std::string says;
  };
  const std::string open = "--listen=0.0.0.0:0";
  const std::string broken = "--token_file=" + folder_.Write("broken", std::string(kToken) + "\n");
  const Case cases[] = {
      {{"--decisions_file=/no/such/folder/decisions.db"}, "--decisions_file=/no/such/folder"},
      {{"--store=sqlite:/tmp/plans.db", "--decisions_file=/tmp/plans.db"},
       "must not be the file of plans"},
      {{open}, "set --tls_cert and --tls_key, and --token_file or --tls_client_ca"},
      {{open, cert_, key_}, "set --token_file or --tls_client_ca; or --insecure_network"},
      {{open, tokens_}, "without TLS tokens would be sent for all to read"},
      {{open, tokens_, "--insecure_network"}, "without TLS tokens would be sent"},
      {{cert_}, "needs --tls_key"},
      {{key_}, "needs --tls_cert"},
      {{ca_, "--allow_san=a"}, "needs --tls_cert"},
      {{cert_, key_, ca_}, "--allow_san=* lets in every certificate"},
      {{"--allow_san=a"}, "--allow_san=a: needs --tls_client_ca"},
      {{cert_, key_, ca_, "--allow_san=a,b/c"}, "b/c: must be a DNS name"},
      {{"--tls_cert=" + folder_.PathOf("key"), key_}, "holds no certificate in PEM"},
      {{cert_, "--tls_key=" + folder_.PathOf("none")}, "none: cannot be read"},
      {{broken}, "broken:1: must be CREDENTIAL TENANT ROLE [NAME]"},
      {{"--unix_socket_mode=9"}, "must be permissions in octal"},
      {{"--store=disk"}, "--store=disk: must be sqlite, sqlite:PATH or memory"},
      {{"--store=sqlite:"}, "--store=sqlite:: must be sqlite, sqlite:PATH or memory"},
      {{"--store=sqlite:" + folder_.PathOf("none/plans")}, "none is not there"},
      {{"--audit_log=" + folder_.PathOf("none/audit")}, "none is not there"},
      {{"--redis=nowhere"}, "--redis=nowhere: "},
      {{"--redis_password_file=" + folder_.PathOf("tokens")}, "needs --redis"},
      {{"--redis=h:1", "--redis_password_file=" + folder_.PathOf("none")}, "cannot be read"},
      {{"--redis=h:1", "--redis_user=u"}, "--redis_user=u: needs --redis_password_file"},
      {{"--redis=redis+sentinel://h/p", "--redis_sentinel_user=u"},
       "--redis_sentinel_user=u: needs --redis_sentinel_password_file"},
      {{"--redis=redis://h", "--redis_sentinel_password_file=" + folder_.PathOf("tokens")},
       "needs --redis=redis+sentinel://"},
      {{"--redis_sentinel_password_file=" + folder_.PathOf("tokens")},
       "needs --redis=redis+sentinel://"},
      {{"--redis=redis+sentinel://h/p", "--redis_sentinel_password_file=" + folder_.PathOf("none")},
       "none: cannot be read"},
      {{"--redis=redis+tls://u:" + std::string(kToken) + "@h"}, "u:***@h: the scheme of the URL"},
      {{"--redis=redis://h", "--redis_ca=" + folder_.PathOf("tokens")},
       "--redis_ca=" + folder_.PathOf("tokens") + ": needs --redis=rediss://"},
      {{"--redis_cert=" + folder_.PathOf("tokens")}, "needs --redis=rediss://"},
      {{"--redis=redis://h", "--redis_server_name=h"},
       "--redis_server_name=h: needs --redis=rediss://"},
      {{"--redis=rediss://h", "--redis_ca=" + folder_.PathOf("none")}, "none: cannot be read"},
      {{"--redis=rediss://h", "--redis_ca=" + folder_.PathOf("tokens")}, "tokens cannot be used"},
      {{"--redis=rediss://h", "--redis_key=" + folder_.PathOf("tokens")}, "need each other"},
      {{"--redis=redis://u:" + std::string(kToken) + "@h:0"},
       "--redis=redis://u:***@h:0: the port of the URL must be in [1, 65535]"},
      {{"--redis=redis://u:" + std::string(kToken) + "@h #"},
       "--redis=redis://u:***@h #: must have no blank"},
      {{"--redis=redis://u@h"}, "has a user without a password"},
      {{"--redis=redis+sentinel://u:" + std::string(kToken) + "@h,i"},
       "u:***@h,i: the URL must name a primary"},
      {{"--redis=redis://:" + std::string(kToken) + "@h",
        "--redis_password_file=" + folder_.PathOf("tokens")},
       "has a password, and --redis_password_file another one"},
      {{"--redis=redis://u@h", "--redis_user=v",
        "--redis_password_file=" + folder_.PathOf("tokens")},
       "has a user, and --redis_user another one"},
      {{"--entry_key_file=" + folder_.PathOf("tokens")}, "needs --redis"},
      {{"--redis=h:1", "--entry_key_file=" + folder_.PathOf("none")}, "none: cannot be read"},
      {{"--redis=h:1", "--entry_key_file=" + folder_.PathOf("tokens")},
       "tokens:1: must be 64 hexadecimal digits"},
      {{"--redis_timeout=0"}, "--redis_timeout=0: must be in [1ms, 10s]"},
      {{"--redis_ttl=1s"}, "--redis_ttl=1s: must be in [1m, 8760h]"},
      {{"--redis_prefix=a*"}, "must be 1 to 64 letters"},
      {{"--decisions_redis=h:1"}, "--decisions_redis=h:1: needs --redis"},
      {{"--redis=h:1", "--decisions_redis=nowhere"}, "--decisions_redis=nowhere: must be HOST"},
      {{"--redis=h:1", "--decisions_redis=redis://u:" + std::string(kToken) + "@h:0"},
       "--decisions_redis=redis://u:***@h:0: the port of the URL"},
      {{"--redis=rediss://h", "--decisions_redis=h:1",
        "--decisions_redis_ca=" + folder_.PathOf("tokens")},
       "needs --decisions_redis=rediss://"},
      {{"--redis=h:1", "--decisions_redis_password_file=" + folder_.PathOf("tokens")},
       "needs --decisions_redis"},
      {{"--redis=h:1", "--decisions_redis=h:2", "--decisions_redis_user=u"},
       "--decisions_redis_user=u: needs --decisions_redis_password_file"},
      {{"--decisions_redis_timeout=0"}, "--decisions_redis_timeout=0: must be in [1ms, 10s]"},
      {{"--tenant_share=0"}, "--tenant_share=0: must be in (0, 1]"},
      {{"--request_reserve_bytes=1"}, "--request_reserve_bytes=1: must be in [65536, "},
      {{"--lookup_threads=0"}, "--lookup_threads=0: must be in [1, 1024]"},
      {{"--conversion_threads=0"}, "--conversion_threads=0: must be in [1, 1024]"},
      {{"--admin_threads=1025"}, "--admin_threads=1025: must be in [1, 1024]"},
      {{"--request_bytes=20000", "--max_message_bytes=30000"},
       "--request_bytes=20000: must be in [30000, "},
      {{"--max_deadline=0"}, "--max_deadline=0: must be in [1ms, 24h]"},
      {{"--log_level=loud"}, "must be debug, info, warning or error"},
      {{"--reload_interval=1ms"}, "must be in [1s, 24h]"},
      {{"--max_connection_age=1ms"}, "must be in [1s, 24h]"},
  };
  for (const Case& c : cases) {
    const Outcome checked = Check(c.flags);
    EXPECT_EQ(checked.code, 2) << checked.output;
    EXPECT_THAT(checked.output, HasSubstr(c.says));
    EXPECT_THAT(checked.output, Not(HasSubstr(kToken)));
    EXPECT_THAT(checked.output, Not(HasSubstr("PRIVATE KEY")));
  }
  // A start refuses what a check does.
  EXPECT_EQ(RunWith({open}).code, 2);
}

TEST_F(ConfigurationTest, WhatIsGuardedOrSaidToBeTrustedIsTaken) {
  const std::string open = "--listen=0.0.0.0:7070";
  const std::vector<std::vector<std::string>> taken = {
      {open, cert_, key_, tokens_},
      {open, cert_, key_, ca_, "--allow_san=*.train.example"},
      {open, "--insecure_network"},
      {"--listen=127.0.0.1:0", tokens_},
      {"--listen=[::1]:0"},
      {"--store=sqlite:" + folder_.PathOf("plans"), "--redis=127.0.0.1:1", "--redis_user=stowage",
       "--redis_timeout=200ms", "--redis_ttl=72h",
       "--redis_password_file=" + folder_.Write("password", kToken)},
      {"--redis=redis://stowage:" + std::string(kToken) + "@127.0.0.1:1/3",
       "--entry_key_file=" + folder_.Write("keys", std::string(64, 'a') + "\n")},
      {"--redis=redis+sentinel://127.0.0.1:1,[::1]:2/plans/3"},
      {"--redis=redis+sentinel://127.0.0.1:1/plans", "--redis_sentinel_user=watcher",
       "--redis_sentinel_password_file=" + folder_.Write("password", kToken)},
      {"--redis=rediss://127.0.0.1:1"},
      {"--redis=redis+cluster://127.0.0.1:1,127.0.0.1:2"},
      {"--redis=redis://stowage@127.0.0.1:1",
       "--redis_password_file=" + folder_.Write("password", kToken)},
      {"--redis=127.0.0.1:1", "--decisions_redis=rediss://stowage@127.0.0.1:2",
       "--decisions_redis_password_file=" + folder_.Write("password", kToken)},
      {"--redis=127.0.0.1:1", "--decisions_redis=redis://:" + std::string(kToken) + "@127.0.0.1:2"},
  };
  for (const auto& flags : taken) {
    const Outcome outcome = Check(flags);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, Not(HasSubstr(kToken)));
  }
}

TEST_F(ConfigurationTest, AServerWithTlsAndTokensSaysNothingSecret) {
  ChildProcess child(Command({"--listen=127.0.0.1:0", "--metrics_listen=", cert_, key_, tokens_,
                              "--log_level=debug", "--reload_interval=1s"}));
  std::string said = child.ReadUntil("metrics on none\n");
  std::smatch parts;
  ASSERT_TRUE(std::regex_search(said, parts, std::regex("listening on (\\S+),"))) << said;
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = authority_.cert();
  const auto stub =
      v1::PlanService::NewStub(grpc::CreateChannel(parts[1], grpc::SslCredentials(trust)));
  const auto ask = [&stub](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::GetCapabilitiesResponse response;
    return stub->GetCapabilities(&context, {}, &response).error_code();
  };
  EXPECT_EQ(ask(kToken), grpc::OK);
  EXPECT_EQ(ask("a-wrong-secret-token"), grpc::UNAUTHENTICATED);
  folder_.Write("tokens", std::string(kToken) + " misplaced\n");
  said += child.ReadUntil("file_refused");
  EXPECT_EQ(ask(kToken), grpc::OK);
  child.Signal(SIGTERM);
  said += child.ReadUntil("no such text");
  EXPECT_EQ(child.Wait(), 0);
  for (const char* event : {"started", "rpc", "refused", "file_refused", "draining", "drained"}) {
    EXPECT_THAT(said, HasSubstr(std::string("\"event\":\"") + event + "\""));
  }
  for (const char* secret : {kToken, "secret", "PRIVATE KEY"}) {
    EXPECT_THAT(said, Not(HasSubstr(secret)));
  }
}

TEST_F(ConfigurationTest, ALevelInTheFileHoldsWithoutARestart) {
  const std::string file = folder_.Write("live.conf", "log_level = error\nreload_interval = 1s\n");
  ChildProcess child(Command({"--listen=127.0.0.1:0", "--metrics_listen=", "--config=" + file}));
  std::string said = child.ReadUntil("metrics on none\n");
  folder_.Write("live.conf", "log_level = info\nreload_interval = 1s\nmax_stages = 5\n");
  said += child.ReadUntil("restart_needed");
  child.Signal(SIGTERM);
  said += child.ReadUntil("no such text");
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_THAT(said, Not(HasSubstr("\"event\":\"started\"")));
  for (const char* event : {"restart_needed", "file_reloaded", "drained"}) {
    EXPECT_THAT(said, HasSubstr(std::string("\"event\":\"") + event + "\""));
  }
}

// The first server's plans, after it has ended; and no second one meanwhile.
TEST_F(ConfigurationTest, PlansInAFileOutliveTheServer) {
  const std::vector<std::string> command = {STOWAGED_BINARY, "--listen=127.0.0.1:0",
                                            "--metrics_listen=", "--log_level=error",
                                            "--store=sqlite:" + folder_.PathOf("plans")};
  for (const v1::PlanSource expected : {v1::PLAN_SOURCE_SOLVED, v1::PLAN_SOURCE_CACHE}) {
    ChildProcess child(command);
    const std::string said = child.ReadUntil("metrics on none\n");
    std::smatch parts;
    ASSERT_TRUE(std::regex_search(said, parts, std::regex("listening on (\\S+),"))) << said;
    v1::ComputePlanRequest request;
    *request.mutable_profile() = ToProto(ChainProfile({}));
    request.mutable_budget()->set_bytes(1500);
    v1::ComputePlanResponse response;
    grpc::ClientContext context;
    const auto stub =
        v1::PlanService::NewStub(grpc::CreateChannel(parts[1], grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(stub->ComputePlan(&context, request, &response).ok());
    EXPECT_EQ(response.source(), expected);
    EXPECT_EQ(RunCommand(command).code, 1);
    child.Signal(SIGTERM);
    EXPECT_EQ(child.Wait(), 0);
  }
}

// What a server does that nobody has told where.
TEST_F(ConfigurationTest, PlansAreInTheStateFolderUnlessAFlagSaysOtherwise) {
  const TemporaryFolder home;
  const std::vector<std::string> command = {STOWAGED_BINARY, "--listen=127.0.0.1:0",
                                            "--metrics_listen=", "--log_level=error"};
  const ScopedVariable state("STATE_DIRECTORY", home / "state");
  EXPECT_EQ(RunCommand({STOWAGED_BINARY, "--check_config"}).code, 0);
  struct stat status = {};
  EXPECT_NE(stat((home / "state").c_str(), &status), 0) << "a check makes nothing";
  ChildProcess child(command);
  const std::string said = child.ReadUntil("metrics on none\n");
  EXPECT_THAT(said, HasSubstr("listening on"));
  ASSERT_EQ(stat((home / "state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode_t{0700});
  EXPECT_EQ(stat((home / "state/plans.db").c_str(), &status), 0);
  EXPECT_EQ(stat((home / "state/decisions.db").c_str(), &status), 0);
  const Outcome second = RunCommand(command);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.output, HasSubstr("is locked by process " + std::to_string(child.pid())));
  EXPECT_THAT(second.output, HasSubstr("set --store=sqlite:PATH or --store=memory"));
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(ConfigurationTest, AStateFolderThatCannotBeIsRefusedWithTheReason) {
  const std::vector<std::string> command = {STOWAGED_BINARY, "--listen=127.0.0.1:0",
                                            "--metrics_listen="};
  {
    const ScopedVariable state("STATE_DIRECTORY", folder_.Write("file", "") + "/state");
    const Outcome outcome = RunCommand(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.output, HasSubstr("cannot make the folder"));
    EXPECT_THAT(outcome.output, HasSubstr("--store=memory"));
  }
  const ScopedVariable state("STATE_DIRECTORY", ""), xdg("XDG_STATE_HOME", ""), home("HOME", "");
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("set --store=sqlite:PATH or --store=memory"));
}

TEST_F(ConfigurationTest, ARedisOfAnotherMachineWithoutAPasswordIsWarnedOf) {
  const std::string password = "--redis_password_file=" + folder_.Write("password", kToken);
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{"--redis=192.0.2.1:6379"}, true},
      {{"--redis=192.0.2.1:6379", password}, false},
      {{"--redis=127.0.0.1:1"}, false},
      {{"--redis=[::1]:1"}, false},
      {{"--redis=[2001:db8::1]:1"}, true},
      {{"--redis=/run/none"}, false},
      {{"--redis=redis+sentinel://127.0.0.1:1/plans"}, false},
      {{"--redis=redis+sentinel://127.0.0.1:1,192.0.2.1:1/plans"}, true},
      {{"--redis=127.0.0.1:1", "--decisions_redis=/run/none"}, false},
      {{"--redis=127.0.0.1:1", "--decisions_redis=192.0.2.1:6379"}, true},
  };
  for (const auto& [flags, warned] : cases) {
    std::vector<std::string> all = Command({"--listen=127.0.0.1:0", "--metrics_listen="});
    all.insert(all.end(), flags.begin(), flags.end());
    ChildProcess child(all);
    const std::string said = child.ReadUntil("\"event\":\"started\"");
    EXPECT_EQ(said.find("redis_open") != std::string::npos, warned) << said;
    child.Signal(SIGTERM);
    EXPECT_EQ(child.Wait(), 0);
  }
}

TEST_F(ConfigurationTest, DecisionsThatMayBeLostAreSaidAtStart) {
  const TemporaryFolder folder;
  const std::string redis = "--redis=" + folder / "socket";
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{redis}, true},
      {{}, false},
      {{redis, "--decisions_file=" + folder / "decisions.db"}, false},
      {{redis, "--store=sqlite:" + folder / "plans.db"}, false},
      {{redis, "--decisions_redis=" + folder / "away"}, false},
  };
  for (const auto& [flags, said] : cases) {
    std::vector<std::string> all = Command({"--listen=127.0.0.1:0", "--metrics_listen="});
    all.insert(all.end(), flags.begin(), flags.end());
    ChildProcess child(all);
    const std::string log = child.ReadUntil("\"event\":\"started\"");
    EXPECT_EQ(log.find("decisions_not_kept") != std::string::npos, said) << log;
    EXPECT_EQ(log.find("deleted plans may come back") != std::string::npos, said) << log;
    child.Signal(SIGTERM);
    EXPECT_EQ(child.Wait(), 0);
  }
  struct stat status = {};
  EXPECT_EQ(stat((folder / "decisions.db").c_str(), &status), 0);
  EXPECT_EQ(stat((folder / "plans.db.decisions").c_str(), &status), 0);
}

TEST_F(ConfigurationTest, TheLogSaysWhenTheFlagsAllowMoreMemoryThanThereIs) {
  const std::string more = std::to_string(int64_t{1} << 50);
  for (const bool over : {false, true}) {
    ChildProcess child(Command(
        {"--listen=127.0.0.1:0", "--metrics_listen=", "--cache_bytes=1048576",
         "--solver_memory_bytes=" + (over ? more : "1048576"), "--request_bytes=67108864"}));
    const std::string log = child.ReadUntil("\"event\":\"started\"");
    EXPECT_EQ(log.find("memory_over_limit") != std::string::npos, over) << log;
    child.Signal(SIGTERM);
    EXPECT_EQ(child.Wait(), 0);
  }
}

// Nothing else knows what was decided: the server does not go on without it.
TEST_F(ConfigurationTest, ADamagedFileOfDecisionsEndsTheStart) {
  const std::string file = folder_.Write("decisions", std::string(5000, 'x'));
  const Outcome outcome =
      RunWith({"--listen=127.0.0.1:0", "--metrics_listen=", "--decisions_file=" + file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr(file));
}

TEST_F(ConfigurationTest, AUnixSocketHasTheModeOfItsFlag) {
  const std::string path = folder_.PathOf("socket");
  ChildProcess child(
      Command({"--listen=unix:" + path, "--metrics_listen=", "--unix_socket_mode=0660"}));
  child.ReadUntil("metrics on none\n");
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode_t{0660});
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Version, SaysVersionAndBuild) {
  const Outcome outcome = RunWith({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, ::testing::MatchesRegex("stowaged [0-9.]+ \\(.*gRPC 1\\..*\\)\n"));
}

TEST(OperatingPage, NamesEveryFlagThatHelpLists) {
  std::ifstream file(std::string(STOWAGE_SOURCE_DIR) + "/server/operating.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string help = RunWith({"--help"}).output;
  const std::regex flag("--([a-z_]+)=");
  int flags = 0;
  for (auto it = std::sregex_iterator(help.begin(), help.end(), flag); it != std::sregex_iterator();
       ++it) {
    ++flags;
    EXPECT_THAT(page.str(), HasSubstr("`--" + it->str(1) + "`")) << "operating.md lacks it";
  }
  EXPECT_GE(flags, 20);
}

}  // namespace
}  // namespace stowage::testing
