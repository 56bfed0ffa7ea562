#include "server/config/state_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

std::optional<std::string> FolderIn(const std::map<std::string, std::string>& variables) {
  return StateFolder([&variables](const std::string& name) {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional<std::string>(found->second) : std::nullopt;
  });
}

TEST(StateFolder, TheServiceManagersGoesBeforeTheUsers) {
  EXPECT_EQ(
      FolderIn({{"STATE_DIRECTORY", "/var/lib/s"}, {"XDG_STATE_HOME", "/x"}, {"HOME", "/home/a"}}),
      "/var/lib/s");
  EXPECT_EQ(FolderIn({{"STATE_DIRECTORY", "/var/lib/s:/var/lib/t"}}), "/var/lib/s");
  EXPECT_EQ(FolderIn({{"XDG_STATE_HOME", "/x"}, {"HOME", "/home/a"}}), "/x/stowage");
  EXPECT_EQ(FolderIn({{"HOME", "/home/a"}}), "/home/a/.local/state/stowage");
}

TEST(StateFolder, WhatIsNoAbsolutePathIsPassedOver) {
  EXPECT_EQ(FolderIn({{"XDG_STATE_HOME", "x"}, {"HOME", "/home/a"}}),
            "/home/a/.local/state/stowage");
  EXPECT_EQ(FolderIn({{"STATE_DIRECTORY", ""}, {"HOME", "."}}), std::nullopt);
  EXPECT_EQ(FolderIn({}), std::nullopt);
}

TEST(MakeStateFolder, MakesWhatIsMissingForThisUserAlone) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(MakeStateFolder(folder / "a/b").ok());
  struct stat status = {};
  for (const char* made : {"a", "a/b"}) {
    ASSERT_EQ(stat((folder / made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, mode_t{0700});
  }
}

TEST(MakeStateFolder, SaysWhatIsInTheWay) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const absl::Status status = MakeStateFolder(folder / "file/b");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("file/b"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace stowage::testing
