#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "client/cli/progress_line.h"
#include "client/cli/table.h"
#include "client/cli/torch_version.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using testing::HasSubstr;

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(PlanStatus::kProvenInfeasible), 3);
  EXPECT_EQ(ExitCodeOf(PlanStatus::kNotFound), 3);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
}

TEST(Table, AlignsItsColumns) {
  Table table({{"a", ""}, {"long", "head"}});
  table.AddRow({"row", "1"});
  EXPECT_EQ(table.ToString(),
            "a    long\n"
            "     head\n"
            "---------\n"
            "row     1\n");
}

TEST(Listing, IsTableJsonAndCsv) {
  Listing listing({{"name", "", "name"}, {"", "", "hidden"}, {"size", "MiB", "bytes"}});
  listing.AddRow(
      {Listing::Text("a \"b\", c"), Listing::YesNo(true), Listing::Number("1.00", 1048576.0)});
  listing.AddRow({Listing::Text("d", "long d"), Listing::YesNo(false), Listing::Nothing()});
  EXPECT_EQ(listing.As(Format::kText),
            "name      size\n"
            "           MiB\n"
            "--------------\n"
            "a \"b\", c  1.00\n"
            "d\n");
  EXPECT_EQ(listing.As(Format::kJson),
            "[{\"name\": \"a \\\"b\\\", c\", \"hidden\": true, \"bytes\": 1.04858e+06}, "
            "{\"name\": \"long d\", \"hidden\": false, \"bytes\": null}]\n");
  EXPECT_EQ(listing.As(Format::kCsv),
            "name,hidden,bytes\n"
            "\"a \"\"b\"\", c\",true,1.04858e+06\n"
            "long d,false,\n");
}

TEST(ProgressLine, WritesOverItselfAndIsGoneAtTheEnd) {
  std::ostringstream out;
  {
    ProgressLine line(&out, "working");
    line.Show(0.101);
    line.Show(0.109);  // nothing new
    line.Show(1);
    EXPECT_EQ(out.str(), "\r\033[Kworking 10%\r\033[Kworking 100%");
  }
  EXPECT_EQ(out.str(), "\r\033[Kworking 10%\r\033[Kworking 100%\r\033[K");
  ProgressLine(nullptr, "silent").Show(0.5);
  out.str("");
  ProgressLine(&out, "asking").Show(std::nullopt, "3 s gone");
  EXPECT_EQ(out.str(), "\r\033[Kasking: 3 s gone\r\033[K");
}

TEST(CheckWritable, SaysItBeforeTheWorkAndLeavesNothing) {
  const std::string path = ::testing::TempDir() + "/to_be_written";
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_FALSE(ReadFile(path).ok());
  ASSERT_TRUE(WriteFile(path, "kept").ok());
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_EQ(ReadFile(path).value(), "kept");
  EXPECT_TRUE(CheckWritable("").ok());
  EXPECT_EQ(CheckWritable("/nonexistent/x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

std::ptrdiff_t EntriesOf(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(ReplaceFile, WritesAllOrLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(ReplaceFile(path, "first").ok());
  EXPECT_EQ(ReadFile(path).value(), "first");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  ASSERT_TRUE(ReplaceFile(path, "second").ok());
  EXPECT_EQ(ReadFile(path).value(), "second");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read);

  // What leads to a file goes on leading there.
  std::filesystem::create_symlink(path, folder / "link");
  ASSERT_TRUE(ReplaceFile(folder / "link", "third").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(ReadFile(path).value(), "third");

  const absl::Status full = ReplaceFile("/dev/full", std::string(1 << 20, 'x'));
  EXPECT_EQ(full.code(), absl::StatusCode::kInvalidArgument) << full;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  const absl::Status nowhere = ReplaceFile(folder / "none/file", "x");
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kInvalidArgument) << nowhere;
  std::filesystem::create_directory(folder / "folder");
  EXPECT_FALSE(ReplaceFile(folder / "folder", "x").ok());
  std::filesystem::create_symlink(folder / "gone", folder / "dangling");
  EXPECT_FALSE(ReplaceFile(folder / "dangling", "x").ok());
  EXPECT_FALSE(CheckWritable(folder / "dangling").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling"));
  EXPECT_EQ(EntriesOf(folder), 4);  // and nothing beside them
}

// Half of it was written beside the file: the limit of a file's size is a disk that is full.
TEST(ReplaceFile, ADiskThatIsFullLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(WriteFile(path, "kept").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = ReplaceFile(path, std::string(100000, 'x'));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(full.code(), absl::StatusCode::kInvalidArgument) << full;
  EXPECT_EQ(ReadFile(path).value(), "kept");
  EXPECT_EQ(EntriesOf(folder), 1);
}

TEST(Format, IsOneThatTheCommandHas) {
  absl::SetFlag(&FLAGS_format, "csv");
  EXPECT_EQ(FormatFromFlag({Format::kText, Format::kCsv}).value(), Format::kCsv);
  const auto refused = FormatFromFlag({Format::kText, Format::kJson});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("must be text or json"));
  absl::SetFlag(&FLAGS_format, "text");
}

// Output and exit code of a command line over two commands, the second one's run by stowage-torch, which is not beside this test.
struct Ran {
  int code;
  std::string out, errors;
};
Ran RunLine(const std::vector<std::string>& arguments) {
  const Command elsewhere{"train", "trains", {"slots"}, nullptr};
  const std::vector<Command> commands = {
      {"count",
       "counts",
       {"slots"},
       [] { return static_cast<int>(absl::GetFlag(FLAGS_slots)); },
       {"count --slots=7"}},
      elsewhere};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = RunCommandLine(commands, arguments);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, RunsTheCommandWithItsFlags) {
  EXPECT_EQ(RunLine({"count", "--slots=41"}).code, 41);
  EXPECT_EQ(RunLine({"count", "--budget=41"}).code, kExitUsage);
  EXPECT_EQ(RunLine({"dance"}).code, kExitUsage);
  EXPECT_EQ(RunLine({}).code, kExitUsage);
}

TEST(CommandLine, HelpIsOnStandardOutput) {
  const Ran all = RunLine({"--help"});
  EXPECT_EQ(all.code, kExitOk);
  EXPECT_THAT(all.out, HasSubstr("trains"));
  EXPECT_EQ(all.errors, "");
  const Ran one = RunLine({"count", "--help"});
  EXPECT_EQ(one.code, kExitOk);
  EXPECT_THAT(one.out, HasSubstr("--slots"));
  EXPECT_THAT(one.out, HasSubstr("stowage count --slots=7"));
}

TEST(TorchVersion, IsThatOfTheBuildOrAnError) {
  EXPECT_TRUE(CheckTorchVersion("PyTorch built with:\n  - GCC 12.2\n", "1.13.1").ok());
  EXPECT_TRUE(CheckTorchVersion("a=b, TORCH_VERSION=2.11.1, USE_CUDA=ON", "2.11.0").ok());
  EXPECT_TRUE(CheckTorchVersion("TORCH_VERSION=2.11.0a0", "2.11.0").ok());
  const absl::Status other = CheckTorchVersion("TORCH_VERSION=2.1.0, USE_CUDA=ON", "2.11.0");
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("LibTorch 2.11.0, and 2.1.0"));
}

// Flags are read here: what is wrong with them needs no LibTorch.
TEST(CommandLine, WhatNeedsLibTorchIsHandedOverOnceItsFlagsAreGood) {
  EXPECT_THAT(RunLine({"train", "--budget=3"}).errors, HasSubstr("--budget"));
  EXPECT_THAT(RunLine({"train", "--help"}).out, HasSubstr("--slots"));
  const Ran ran = RunLine({"train", "--slots=3"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.errors, HasSubstr("stowage train: needs LibTorch"));
  EXPECT_THAT(ran.errors, HasSubstr("libexec/stowage/stowage-torch"));
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace stowage
