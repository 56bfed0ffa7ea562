// Command line, environment and file: what goes before what, and how mistakes are named.
#include "server/config/config_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "server/config/config.h"
#include "server/config/config_flags.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

class ConfigSourcesTest : public ::testing::Test {
 protected:
  // A file with this text.
  std::string File(const std::string& text) {
    path_ = ::testing::TempDir() + "stowaged_" + std::to_string(getpid()) + ".conf";
    std::ofstream(path_) << text;
    return path_;
  }

  absl::StatusOr<ConfigSources> Apply(const std::vector<std::string>& arguments) {
    const absl::StatusOr<CommandLine> line = ReadCommandLine(arguments, FlagNames());
    if (!line.ok()) return line.status();
    return ConfigSources::Apply(*line, [this](const std::string& name) {
      const auto found = environment_.find(name);
      return found != environment_.end() ? std::optional<std::string>(found->second) : std::nullopt;
    });
  }

  std::string ErrorOf(const std::vector<std::string>& arguments) {
    const absl::StatusOr<ConfigSources> sources = Apply(arguments);
    if (!sources.ok()) return sources.status().ToString();
    return ConfigFromFlags(*sources).status().ToString();
  }

  absl::FlagSaver saver_;
  std::map<std::string, std::string> environment_;
  std::string path_;
};

TEST_F(ConfigSourcesTest, TheCommandLineGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
  const std::string path = File(
      "# what a comment says\n"
      "queue_limit = 1\n"
      "  max_stages=2   # of a chain\r\n"
      "\n"
      "max_vertices = 3\n"
      "metrics_listen =\n");
  environment_ = {{"STOWAGED_MAX_STAGES", "20"}, {"STOWAGED_MAX_VERTICES", "30"}};
  const auto sources = Apply({"--config=" + path, "--max_vertices=300"});
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(absl::GetFlag(FLAGS_queue_limit), 1);
  EXPECT_EQ(absl::GetFlag(FLAGS_max_stages), 20);
  EXPECT_EQ(absl::GetFlag(FLAGS_max_vertices), 300);
  EXPECT_EQ(absl::GetFlag(FLAGS_metrics_listen), "");
  EXPECT_EQ(sources->Origin("queue_limit"), path + ":2");
  EXPECT_EQ(sources->Origin("max_stages"), "STOWAGED_MAX_STAGES");
  EXPECT_EQ(sources->Origin("max_vertices"), "command line");
  EXPECT_EQ(sources->Origin("cache_bytes"), "default");
}

TEST_F(ConfigSourcesTest, TheEnvironmentNamesAFileUnlessTheCommandLineDoes) {
  environment_ = {{"STOWAGED_CONFIG", File("max_stages = 5\n")}};
  ASSERT_TRUE(Apply({}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_max_stages), 5);
  EXPECT_THAT(ErrorOf({"--config=/no/such/file"}), HasSubstr("/no/such/file: cannot be read"));
}

TEST_F(ConfigSourcesTest, AMistakeInTheFileNamesFileAndLine) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {"\nqueue_limits = 3\n", ":2: unknown name queue_limits"},
      {"check_config = true\n", ":1: unknown name check_config"},
      {"config = other\n", ":1: unknown name config"},
      {"max_stages = 1\n# twice\nmax_stages = 1\n", ":3: max_stages comes twice"},
      {"max_stages 1\n", ":1: must be NAME = VALUE"},
      {"max_stages = few\n", ":1: max_stages=few: "},
      {"max_stages = 0\n", ":1: max_stages=0: must be in [1, 100000]"},
      {"listen =#local\n", ":1: listen=#local: must have no blank at its ends"},
  };
  for (const Case& c : cases) {
    const std::string path = File(c.text);
    EXPECT_THAT(ErrorOf({"--config=" + path}), HasSubstr(path + c.says)) << c.text;
  }
  EXPECT_THAT(ErrorOf({"--config=" + ::testing::TempDir()}), HasSubstr("cannot be read"));
}

TEST_F(ConfigSourcesTest, AMistakeIsSaidEvenWhereAnotherSourceGoesBeforeIt) {
  const std::string path = File("max_stages = few\n");
  EXPECT_THAT(ErrorOf({"--config=" + path, "--max_stages=7"}), HasSubstr(":1: max_stages=few"));
}

// It could not be printed as a file.
TEST_F(ConfigSourcesTest, AValueThatNoFileCanHoldIsAMistakeEverywhere) {
  for (const char* value : {"#a", "a #b", " a", "a ", "a\nb"}) {
    EXPECT_THAT(ErrorOf({std::string("--audit_log=") + value}), HasSubstr("--audit_log=")) << value;
    environment_ = {{"STOWAGED_AUDIT_LOG", value}};
    EXPECT_THAT(ErrorOf({}), HasSubstr("STOWAGED_AUDIT_LOG=")) << value;
    environment_.clear();
  }
  EXPECT_EQ(ErrorOf({"--audit_log=a#b c"}), "OK");
}

TEST_F(ConfigSourcesTest, AMistakeInTheEnvironmentNamesTheVariable) {
  environment_ = {{"STOWAGED_MAX_STAGES", "0"}};
  EXPECT_THAT(ErrorOf({}), HasSubstr("STOWAGED_MAX_STAGES=0: must be in"));
  environment_ = {{"STOWAGED_QUEUE_LIMIT", "many"}};
  EXPECT_THAT(ErrorOf({}), HasSubstr("STOWAGED_QUEUE_LIMIT=many: "));
}

// A service of the name puts these into every container of its namespace.
TEST_F(ConfigSourcesTest, OtherVariablesThatBeginAlikeAreNotLookedAt) {
  environment_ = {{"STOWAGED_SERVICE_HOST", "10.0.0.1"}, {"STOWAGED_PORT", "tcp://10.0.0.1:7070"}};
  EXPECT_EQ(ErrorOf({}), "OK");
}

TEST_F(ConfigSourcesTest, TheEffectiveConfigurationIsAFileThatSaysTheSame) {
  const std::vector<std::string> arguments = {
      "--listen=127.0.0.1:0", "--metrics_listen=", "--drain_timeout=1.5s", "--cache_bytes=2097152"};
  const auto first = Apply(arguments);
  ASSERT_TRUE(first.ok());
  const std::string text = EffectiveConfig(*first);
  EXPECT_THAT(text, HasSubstr("cache_bytes = 2097152  # command line\n"));
  EXPECT_THAT(text, HasSubstr("max_stages = 10000  # default\n"));
  const auto second = Apply({"--config=" + File(text)});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(absl::GetFlag(FLAGS_drain_timeout), absl::Milliseconds(1500));
  for (const std::string& line : std::vector<std::string>{
           "listen = 127.0.0.1:0", "metrics_listen =", "drain_timeout = 1.5s"}) {
    EXPECT_THAT(EffectiveConfig(*second), HasSubstr(line));
  }
}

}  // namespace
}  // namespace stowage
