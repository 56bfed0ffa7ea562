// The command where its part with LibTorch is missing, or cannot be loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "client/cli/exit_code.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// An installation of the command, whose module is the test's.
class TorchProgramTest : public ::testing::Test {
 protected:
  TorchProgramTest() {
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "libexec/stowage");
    fs::copy_file(STOWAGE_BINARY, folder_ / "bin/stowage");
  }

  void Install(const std::string& module) {
    fs::copy_file(LAUNCHER_BINARY, folder_ / "libexec/stowage/stowage-torch");
    if (!module.empty()) fs::copy_file(module, folder_ / "libexec/stowage/stowage-torch.so");
  }

  Result Run(const std::string& arguments) {
    return Shell("bin/stowage " + arguments, folder_.path());
  }

  // One line of standard error that says why, and the code of what a user can mend.
  void ExpectRefusal(const std::string& why) {
    for (const char* command : {"profile", "run", "verify"}) {
      const Result result = Run(std::string(command) + " --model=resnet18");
      EXPECT_EQ(result.code, kExitUsage) << result.out;
      EXPECT_THAT(result.out, HasSubstr("stowage " + std::string(command) + ": "));
      EXPECT_THAT(result.out, HasSubstr(why));
      EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(TorchProgramTest, WithoutItTheCommandStillPlansAndExplains) {
  const std::string plan = "plan --profile=" + Data("profile_chain.json") + " --budget=least";
  EXPECT_EQ(Run(plan).code, kExitOk);
  EXPECT_EQ(Run(plan + " --format=json > plan.json && bin/stowage report --profile=" +
                Data("profile_chain.json") + " --budget=least --out=plan.html")
                .code,
            kExitOk);
  EXPECT_EQ(Run("explain --profile=" + Data("profile_chain.json") + " --budget=least").code,
            kExitOk);
  EXPECT_EQ(Run("solvers").code, kExitOk);
  EXPECT_EQ(Run("verify --help").code, kExitOk);
  ExpectRefusal("needs LibTorch, and this installation is without");
}

TEST_F(TorchProgramTest, TheCommandItselfLoadsNoLibTorch) {
  const Result needed = Shell("ldd bin/stowage", folder_.path());
  EXPECT_EQ(needed.code, 0);
  EXPECT_THAT(needed.out, HasSubstr("libprotobuf"));
  EXPECT_THAT(needed.out, Not(HasSubstr("torch")));
}

TEST_F(TorchProgramTest, AModuleThatIsGone) {
  Install("");
  ExpectRefusal("stowage-torch.so: cannot open shared object file");
}

TEST_F(TorchProgramTest, ALibraryThatIsGone) {
  Install(MODULE_WITHOUT_LIBRARY);
  ExpectRefusal("libstowage_test_gone.so: cannot open shared object file");
}

TEST_F(TorchProgramTest, ALibraryOfAnotherVersion) {
  Install(MODULE_WITHOUT_SYMBOL);
  ExpectRefusal("undefined symbol");
}

}  // namespace
}  // namespace stowage
