// `stowage cache` as an administrator meets it: against a stowaged that runs.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/plan_connection.h"
#include "solvers/model/chain.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Rows = google::protobuf::RepeatedPtrField<google::protobuf::Value>;

constexpr char kAdmin[] = "a-token-of-an-administrator";
constexpr int64_t kLess = 4000;  // for what plans recompute
constexpr char kPlanner[] = "a-token-of-a-training-job";

// A chain of four equal stages, unlike those of other sizes.
Profile NetworkOfSize(int64_t bytes) {
  ChainSpec spec;
  spec.name = absl::StrCat("net", bytes);
  Stage stage;
  stage.op_kind = "conv";
  stage.output = stage.output_gradient = stage.saved = Bytes(bytes);
  stage.forward_time = Nanos(100);
  stage.backward_time = Nanos(200);
  spec.stages.assign(4, stage);
  return {spec.name, {}, Chain::Create(spec).value(), CostSource::kMeasured};
}

std::string Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

// A server with administrators and jobs, and a plan of one network in its cache.
class CacheTest : public ::testing::Test {
 protected:
  CacheTest()
      : server_(
            {absl::StrCat("--listen=unix:", folder_ / "socket"),
             absl::StrCat("--token_file=", Write(folder_ / "tokens",
                                                 absl::StrCat(kAdmin, " - admin keeper\n", kPlanner,
                                                              " - planner jobs\n")))}) {
    Write(folder_ / "admin", kAdmin);
    Write(folder_ / "planner", kPlanner);
    key_ = Plan(1000, Bytes(6000));
  }

  // Has the server plan, and returns the hexadecimal key.
  std::string Plan(int64_t size, const Budget& budget) {
    GrpcOptions options;
    options.address = server_.address();
    options.token = kPlanner;
    const auto reply = MakeGrpcConnection(options)->ComputePlan(
        NetworkOfSize(size), budget, {}, CallOptions::Within(std::chrono::seconds(20)));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->key.digest.ToHex() : "";
  }

  Result Cache(const std::string& arguments, const std::string& role = "admin",
               bool with_errors = true) {
    return Stowage(absl::StrCat("cache ", arguments, " --server=", server_.address(),
                                " --token_file=", folder_ / role),
                   with_errors);
  }

  Rows Listed(const std::string& arguments) {
    const Result result = Cache(arguments + " --format=json", "admin", /*with_errors=*/false);
    EXPECT_EQ(result.code, kExitOk) << result.out;
    google::protobuf::Value json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &json).ok()) << result.out;
    return json.list_value().values();
  }

  TemporaryFolder folder_;
  StowagedProcess server_;
  std::string key_;
};

TEST_F(CacheTest, ListsPlansAsTableJsonAndCsv) {
  const std::string other = Plan(2000, Bytes(12000));
  const Result table = Cache("ls");
  EXPECT_EQ(table.code, kExitOk) << table.out;
  EXPECT_THAT(table.out, HasSubstr(key_.substr(0, 12)));
  EXPECT_THAT(table.out, HasSubstr("net2000"));
  const Rows rows = Listed("ls");
  ASSERT_EQ(rows.size(), 2);
  std::set<std::string> keys;
  for (const auto& row : rows) {
    const auto& fields = row.struct_value().fields();
    keys.insert(fields.at("key").string_value());
    EXPECT_EQ(fields.at("state").string_value(), "serving");
    EXPECT_EQ(fields.at("revision").number_value(), 1);
    EXPECT_GT(fields.at("makespan_ns").number_value(), 0);
    EXPECT_TRUE(fields.at("time_ratio").has_null_value());
    EXPECT_THAT(fields.at("update_time").string_value(), EndsWith("Z"));
    EXPECT_FALSE(fields.at("pinned").bool_value());
  }
  EXPECT_EQ(keys, (std::set<std::string>{key_, other}));
  const Result csv = Cache("ls --format=csv");
  EXPECT_THAT(csv.out, StartsWith("key,name,budget_bytes,revision,state,pinned,frozen,status,"));
  EXPECT_THAT(csv.out, HasSubstr(key_ + ",net1000,6000,1,serving,false,false,found,"));

  EXPECT_EQ(Listed("ls --name=net2").size(), 1);
  EXPECT_EQ(Listed("ls " + other.substr(0, 9)).size(), 1);
  EXPECT_THAT(Cache("ls --name=transformer").out, HasSubstr("keeps no such plan"));
}

// More entries than a page has, so that pages are turned, and two keys that begin alike.
TEST_F(CacheTest, FindsAKeyByAsManyDigitsAsTellItApart) {
  std::set<std::string> keys = {key_};
  for (int64_t size = 1; size <= 20; ++size) keys.insert(Plan(size, ShareOfStoreAll{1.0}));
  ASSERT_EQ(keys.size(), 21u);
  std::string shared;  // 21 keys have 16 first digits
  for (auto at = keys.begin(); std::next(at) != keys.end() && shared.empty(); ++at) {
    if ((*at)[0] == (*std::next(at))[0]) shared = at->substr(0, 1);
  }
  const Result unclear = Cache("get " + shared);
  EXPECT_EQ(unclear.code, kExitUsage);
  EXPECT_THAT(unclear.out, HasSubstr("give more digits"));
  const Rows rows = Listed("get " + key_.substr(0, 16));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].struct_value().fields().at("key").string_value(), key_);
  EXPECT_EQ(Cache("get " + key_).code, kExitOk);
}

TEST_F(CacheTest, ShowsThePlanForABudget) {
  const Result text = Cache("get " + key_.substr(0, 10) + " --budget=6000");
  EXPECT_EQ(text.code, kExitOk) << text.out;
  for (const char* part : {"plan: found", "net1000", "Revision 1 (serves)", "backward"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const Result json = Cache("get " + key_ + " --budget=6000 --format=json");
  const google::protobuf::Struct fields = Json(json.out);
  const auto& plan = fields.fields().at("plan").struct_value().fields();
  EXPECT_EQ(plan.at("status").string_value(), "PLAN_STATUS_FOUND");
  EXPECT_THAT(fields.fields().at("explanation").string_value(), HasSubstr("net1000"));
  const Result none = Cache("get " + key_ + " --budget=1");
  EXPECT_EQ(none.code, kExitFailure);
}

TEST_F(CacheTest, PinsAndUnpinsFreezesAndUnfreezes) {
  const auto flag = [this](const char* name) {
    return Listed("get " + key_)[0].struct_value().fields().at(name).bool_value();
  };
  const std::string key = key_.substr(0, 8);
  const Result pinned = Cache("pin " + key);
  EXPECT_EQ(pinned.code, kExitOk) << pinned.out;
  EXPECT_THAT(pinned.out, HasSubstr("--budget=6000 --revision=1"));
  EXPECT_TRUE(flag("pinned"));
  EXPECT_THAT(Cache("get " + key).out, HasSubstr("serving, pinned"));
  const Result again = Cache("pin " + key);
  EXPECT_EQ(again.code, kExitUsage);
  EXPECT_THAT(again.out, HasSubstr("there are --budget=6000 --revision=1 (serving, pinned)"));
  EXPECT_EQ(Cache("pin " + key + " --action=unpin").code, kExitOk);
  EXPECT_FALSE(flag("pinned"));
  EXPECT_EQ(Cache("pin " + key + " --action=freeze").code, kExitOk);
  EXPECT_TRUE(flag("frozen"));
  EXPECT_EQ(Cache("pin " + key + " --action=unfreeze").code, kExitOk);
  EXPECT_FALSE(flag("frozen"));
}

// What the server refuses it says itself.
TEST_F(CacheTest, ActionsThatDoNotFitARevisionAreRefused) {
  const std::string exact = "pin " + key_ + " --budget=6000 --revision=1";
  const Result only = Cache(exact + " --action=rollback");
  EXPECT_EQ(only.code, kExitFailure);
  EXPECT_THAT(only.out, HasSubstr("is the first"));
  EXPECT_EQ(Cache(exact + " --action=promote").code, kExitFailure);
  EXPECT_EQ(Cache("pin " + key_ + " --action=promote").code, kExitUsage);
  Plan(1000, Bytes(kLess));
  const Result which = Cache("pin " + key_);
  EXPECT_EQ(which.code, kExitUsage);
  EXPECT_THAT(which.out, HasSubstr("does not say which"));
  for (const int64_t budget : {int64_t{6000}, kLess}) {
    EXPECT_THAT(which.out, HasSubstr(absl::StrCat("--budget=", budget, " --revision=1")));
  }
  EXPECT_EQ(Cache(absl::StrCat("pin ", key_, " --budget=", kLess)).code, kExitOk);
}

TEST_F(CacheTest, Deletes) {
  const Result removed = Cache("rm " + key_.substr(0, 12));
  EXPECT_EQ(removed.code, kExitOk) << removed.out;
  EXPECT_EQ(removed.out, "deleted " + key_ + "\n");
  EXPECT_EQ(Listed("ls").size(), 0);
  EXPECT_EQ(Cache("rm " + key_).code, kExitFailure);
  const Result unknown = Cache("rm " + key_.substr(0, 12));
  EXPECT_EQ(unknown.code, kExitFailure);
  EXPECT_THAT(unknown.out, HasSubstr("no key of stowaged at"));
}

TEST_F(CacheTest, ARoleThatIsTooLowIsToldSo) {
  EXPECT_EQ(Cache("ls", "planner").code, kExitOk);
  for (const std::string action : {"pin ", "rm "}) {
    const Result refused = Cache(action + key_, "planner");
    EXPECT_EQ(refused.code, kExitFailure);
    EXPECT_THAT(refused.out, HasSubstr("takes you for 'jobs', role planner"));
    EXPECT_THAT(refused.out, HasSubstr("admin"));
  }
  EXPECT_EQ(Listed("ls").size(), 1);
}

TEST(Cache, WithoutAServerThereIsNothing) {
  for (const char* action : {"ls", "get 3f", "pin 3f", "rm 3f"}) {
    const Result result = Stowage(absl::StrCat("cache ", action), true);
    EXPECT_EQ(result.code, kExitUsage);
    EXPECT_THAT(result.out, HasSubstr("--server")) << action;
    EXPECT_THAT(result.out, HasSubstr("keeps neither plans nor decisions"));
  }
  const Result away = Stowage("cache ls --timeout=60s --server=unix:/tmp/no_stowaged_here", true);
  EXPECT_EQ(away.code, kExitUnavailable);
}

TEST(Cache, WrongUsageIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "usage: stowage cache ACTION"},
      {"dance", "unknown action dance"},
      {"ls 12 34", "unknown argument 34"},
      {"ls xyz --server=unix:/tmp/none", "must be hexadecimal"},
      {"rm --server=unix:/tmp/none", "must name a key"},
      {"ls --format=xml --server=unix:/tmp/none", "must be text or json or csv"},
      {"get 3f --format=csv --budget=1 --server=unix:/tmp/none", "must be text or json"},
      {"pin 3f --action=dance --server=unix:/tmp/none", "must be one of pin, unpin, rollback"},
      {"ls --timeout=0s --server=unix:/tmp/none", "--timeout"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(absl::StrCat("cache ", arguments), true);
    EXPECT_EQ(result.code, kExitUsage) << arguments;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
  EXPECT_EQ(Stowage("cache --help").code, kExitOk);
  const Result help = Stowage("cache get --help");
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_THAT(help.out, HasSubstr("usage: stowage cache get [KEY] [--flag=value ...]"));
}

}  // namespace
}  // namespace stowage
