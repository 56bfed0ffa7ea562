// `stowage decisions` as an administrator meets it: against a server whose answers a test decides, and a stowaged that
// runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/support/stowaged_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHead[] = "stowage decisions 1\n";

std::string DecisionWith(int key, const std::string& record) {
  return absl::StrCat("1 ", std::string(62, '0'), 10 + key, " ", record);
}

class DecisionsTest : public ::testing::Test {
 protected:
  DecisionsTest() {
    server_.capabilities = [](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
      out->set_max_message_bytes(int64_t{16} << 20);
      out->set_identity("jobs");
      out->set_role("planner");
      return absl::OkStatus();
    };
    // Two pages, of two keys.
    server_.export_decisions = [this](const v1::ExportDecisionsRequest& request,
                                      v1::ExportDecisionsResponse* out) {
      if (request.page_token().empty()) {
        out->add_decisions(DecisionWith(1, "0a"));
        out->add_decisions(DecisionWith(1, "0b"));
        out->set_next_page_token("second");
        return absl::OkStatus();
      }
      out->add_decisions(DecisionWith(2, "0c"));
      return second_page_;
    };
  }

  Result Decisions(const std::string& arguments, bool with_errors = true) {
    return Stowage(absl::StrCat("decisions ", arguments, " --server=", address_.uri()),
                   with_errors);
  }
  std::string Write(const std::string& text) {
    EXPECT_TRUE(WriteFile(folder_ / "in", text).ok());
    return folder_ / "in";
  }
  std::ptrdiff_t Entries() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  }

  const TemporaryFolder folder_;
  const SocketAddress address_;
  absl::Status second_page_;
  FakeServer server_{address_.uri()};
  const std::string text_ = absl::StrCat(kHead, DecisionWith(1, "0a"), "\n", DecisionWith(1, "0b"),
                                         "\n", DecisionWith(2, "0c"), "\n");
};

TEST_F(DecisionsTest, ExportsAllPages) {
  const Result printed = Decisions("export", /*with_errors=*/false);
  EXPECT_EQ(printed.code, kExitOk);
  EXPECT_EQ(printed.out, text_);

  const std::string path = folder_ / "out";
  const Result written = Decisions("export --out=" + path);
  EXPECT_EQ(written.code, kExitOk);
  EXPECT_EQ(written.out, absl::StrCat("stowage: 3 decisions of 2 keys written to ", path, "\n"));
  EXPECT_EQ(ReadFile(path).value(), text_);
  EXPECT_EQ(Entries(), 1);
}

TEST_F(DecisionsTest, NoDecisionsAreAFileToo) {
  server_.export_decisions = [](auto&&...) { return absl::OkStatus(); };
  const Result none = Decisions("export --out=" + (folder_ / "out"));
  EXPECT_EQ(none.code, kExitOk);
  EXPECT_THAT(none.out, HasSubstr("0 decisions of 0 keys"));
  EXPECT_EQ(ReadFile(folder_ / "out").value(), kHead);
}

TEST_F(DecisionsTest, NothingIsLeftOfAFailedExport) {
  second_page_ = absl::InternalError("a store is ill");
  const std::string path = folder_ / "out";
  const Result failed = Decisions("export --out=" + path);
  EXPECT_EQ(failed.code, kExitFailure);
  EXPECT_THAT(failed.out, HasSubstr("a store is ill"));
  EXPECT_EQ(Entries(), 0);
  EXPECT_EQ(Decisions("export", /*with_errors=*/false).out, "");
  // The backup of yesterday is there still.
  ASSERT_TRUE(WriteFile(path, "yesterday's").ok());
  EXPECT_EQ(Decisions("export --out=" + path).code, kExitFailure);
  EXPECT_EQ(ReadFile(path).value(), "yesterday's");
}

// Before the server is asked.
TEST_F(DecisionsTest, AFileThatCannotBeWrittenIsSaidAtOnce) {
  EXPECT_EQ(Decisions("export --out=" + (folder_ / "none/out")).code, kExitUsage);
  EXPECT_EQ(server_.calls, 0);
}

TEST_F(DecisionsTest, ImportsAndCounts) {
  std::vector<std::string> sent;
  server_.import_decisions = [&sent](const v1::ImportDecisionsRequest& request,
                                     v1::ImportDecisionsResponse* out) {
    sent.assign(request.decisions().begin(), request.decisions().end());
    out->set_taken(2);
    out->set_known(1);
    return absl::OkStatus();
  };
  const std::string path = Write(text_);
  const Result text = Decisions("import " + path);
  EXPECT_EQ(text.code, kExitOk);
  EXPECT_EQ(text.out, "2 taken, 1 known\n");
  EXPECT_THAT(sent,
              ElementsAre(DecisionWith(1, "0a"), DecisionWith(1, "0b"), DecisionWith(2, "0c")));
  const google::protobuf::Struct json =
      Json(Decisions("import --format=json --in=" + path, /*with_errors=*/false).out);
  EXPECT_EQ(json.fields().at("taken").number_value(), 2);
  EXPECT_EQ(json.fields().at("known").number_value(), 1);
  const Result piped =
      Shell(absl::StrCat("cat ", path,
                         " | stowage decisions import /dev/stdin --server=", address_.uri()),
            folder_.path());
  EXPECT_EQ(piped.out, "2 taken, 1 known\n");
}

// As they are counted here, and as they are on the wire.
TEST_F(DecisionsTest, BatchesAreAMebibyteAtMost) {
  std::vector<size_t> bytes;
  server_.import_decisions = [&bytes](const v1::ImportDecisionsRequest& request,
                                      v1::ImportDecisionsResponse* out) {
    bytes.push_back(request.ByteSizeLong());
    out->set_taken(request.decisions_size());
    return absl::OkStatus();
  };
  std::string text = kHead;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&text, DecisionWith(i, std::string(100000, '0')), "\n");
  }
  const Result imported = Decisions("import " + Write(text));
  EXPECT_EQ(imported.out, "30 taken, 0 known\n");
  ASSERT_EQ(bytes.size(), 3u);
  for (const size_t size : bytes) EXPECT_LE(size, size_t{1} << 20);
}

TEST_F(DecisionsTest, ARefusedDecisionIsToldByFileAndLine) {
  server_.import_decisions = [](const v1::ImportDecisionsRequest& request,
                                v1::ImportDecisionsResponse*) {
    return FieldError("decisions[1]", request.decisions(1), "must be a decision");
  };
  const std::string path = Write(absl::StrCat(kHead, DecisionWith(1, "0a"), "\n\n", "2 ab cd\n"));
  const Result refused = Decisions("import " + path);
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_EQ(refused.out,
            absl::StrCat("stowage: ", path, ": line 4 = 2 ab cd: must be a decision\n"));
}

TEST_F(DecisionsTest, WhatNoMessageHoldsIsNotSent) {
  server_.capabilities = [](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
    out->set_max_message_bytes(1024);
    return absl::OkStatus();
  };
  const std::string large = DecisionWith(2, std::string(1024, '0'));
  const Result refused =
      Decisions("import " + Write(absl::StrCat(kHead, DecisionWith(1, "0a"), "\n", large, "\n")));
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.out, HasSubstr("line 3, key 0000"));
  EXPECT_THAT(refused.out, HasSubstr("--max_message_bytes"));
  EXPECT_EQ(server_.calls, 1);  // for the limit
}

TEST_F(DecisionsTest, ARoleThatIsTooLowIsToldSo) {
  const auto refuse = [](auto&&...) { return absl::PermissionDeniedError("takes the role admin"); };
  server_.export_decisions = refuse;
  server_.import_decisions = refuse;
  for (const std::string& arguments : {std::string("export"), "import " + Write(text_)}) {
    const Result refused = Decisions(arguments);
    EXPECT_EQ(refused.code, kExitFailure);
    EXPECT_THAT(refused.out, HasSubstr("takes the role admin"));
    EXPECT_THAT(refused.out, HasSubstr("takes you for 'jobs', role planner"));
  }
}

TEST_F(DecisionsTest, WrongUsageIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "usage: stowage decisions ACTION"},
      {"dance", "unknown action dance"},
      {"export file --server=unix:/tmp/none", "unknown argument file"},
      {"export", "--server"},
      {"export --format=json --server=unix:/tmp/none", "--format"},
      {"import --server=unix:/tmp/none", "--in"},
      {"import /nonexistent/x --server=unix:/tmp/none", "cannot read /nonexistent/x"},
      {"import " + Write(text_), "--server"},
      {"import " + Write(text_) + " --format=csv --server=unix:/tmp/none", "must be text or json"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(absl::StrCat("decisions ", arguments), true);
    EXPECT_EQ(result.code, kExitUsage) << arguments;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
  const Result headless = Decisions("import " + Write(DecisionWith(1, "0a") + "\n"));
  EXPECT_EQ(headless.code, kExitUsage);
  EXPECT_THAT(headless.out, HasSubstr("line 1: must be: stowage decisions 1"));
  EXPECT_EQ(server_.calls, 0);
}

// From a server to another: the second knows all that the first does.
TEST(Decisions, GoFromServerToServer) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder / "tokens", "an-administrators-token - admin keeper\n").ok());
  ASSERT_TRUE(WriteFile(folder / "admin", "an-administrators-token").ok());
  const auto flags = [&folder](const std::string& name) -> std::vector<std::string> {
    return {absl::StrCat("--listen=unix:", folder / name),
            absl::StrCat("--token_file=", folder / "tokens"),
            absl::StrCat("--decisions_file=", folder / name, ".db")};
  };
  const StowagedProcess first(flags("first"));
  const StowagedProcess second(flags("second"));
  const auto at = [&folder](const StowagedProcess& server, const std::string& arguments,
                            bool with_errors = true) {
    return Stowage(
        absl::StrCat(arguments, " --server=", server.address(), " --token_file=", folder / "admin"),
        with_errors);
  };
  const std::string of = " --profile=" + Data("chain_resnet50.json") + " --no_local";
  ASSERT_EQ(at(first, "plan --budget=60%" + of).code, kExitOk);
  const std::string listed = at(first, "cache ls --format=csv", false).out;
  const std::vector<CsvRow> rows = Csv(listed);
  ASSERT_EQ(rows.size(), 1u) << listed;
  const Result pinned = at(first, "cache pin " + rows[0].at("key"));
  ASSERT_EQ(pinned.code, kExitOk) << pinned.out;

  const Result exported = at(first, "decisions export --out=" + (folder / "backup"));
  ASSERT_EQ(exported.code, kExitOk) << exported.out;
  EXPECT_THAT(exported.out, HasSubstr(" of 1 key written"));
  const std::string backup = ReadFile(folder / "backup").value();
  EXPECT_THAT(backup, HasSubstr(absl::StrCat(kHead, "1 ", rows[0].at("key"), " ")));
  EXPECT_EQ(at(second, "decisions export", false).out, kHead);

  const Result taken = at(second, "decisions import " + (folder / "backup"));
  EXPECT_EQ(taken.code, kExitOk) << taken.out;
  EXPECT_THAT(taken.out, EndsWith(" taken, 0 known\n"));
  EXPECT_THAT(taken.out, Not(HasSubstr("0 taken")));
  EXPECT_EQ(at(second, "decisions export", false).out, backup);
  EXPECT_THAT(at(second, "decisions import " + (folder / "backup")).out, HasSubstr("0 taken, "));

  std::string spoilt = backup;
  spoilt[spoilt.size() - 2] = spoilt[spoilt.size() - 2] == '0' ? '1' : '0';
  ASSERT_TRUE(WriteFile(folder / "backup", spoilt).ok());
  const Result refused = at(second, "decisions import " + (folder / "backup"));
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.out,
              HasSubstr(absl::StrCat("backup: line ",
                                     std::count(backup.begin(), backup.end(), '\n'), " = ")));
}

}  // namespace
}  // namespace stowage
