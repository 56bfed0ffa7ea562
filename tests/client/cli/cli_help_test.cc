// Help is right: every example in it runs, every shell completes what there is, man takes the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_code.h"
#include "solvers/base/version.h"
#include "solvers/planner.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/stowaged_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Starting a process that links LibTorch takes its time: each help is asked for once.
const std::string& HelpOf(const std::string& command) {
  static auto* const kHelp = new std::map<std::string, std::string>;
  const auto [it, added] = kHelp->try_emplace(command);
  if (added) it->second = Stowage("help " + command).out;
  return it->second;
}

// The commands that a help lists: its lines of two spaces and a small letter.
std::vector<std::string> Listed(const std::string& help) {
  std::vector<std::string> names;
  for (const std::string& line : Lines(help)) {
    if (line.size() < 3 || line.substr(0, 2) != "  " || line[2] < 'a' || line[2] > 'z') continue;
    if (!absl::StrContains(line, "not in this build")) {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

// Of all commands, and of the actions of those that have any, as after "stowage ".
std::vector<std::string> AllCommands() {
  std::vector<std::string> all;
  for (const std::string& name : Listed(HelpOf(""))) {
    if (name == "help" || name == "completion") continue;
    const std::string& help = HelpOf(name);
    if (!absl::StrContains(help, " ACTION ")) {
      all.push_back(name);
      continue;
    }
    for (const std::string& action : Listed(help)) all.push_back(name + " " + action);
  }
  return all;
}

std::vector<std::string> ExamplesOf(const std::string& help) {
  const size_t start = help.find("\nExamples:\n");
  std::vector<std::string> examples;
  if (start == std::string::npos) return examples;
  for (const std::string& line : Lines(help.substr(start))) {
    if (absl::StartsWith(line, "  stowage ")) examples.push_back(line.substr(2));
  }
  return examples;
}

TEST(CliHelp, HelpOfACommandIsWhatItsFlagPrints) {
  const std::vector<std::string> commands = AllCommands();
  EXPECT_THAT(commands,
              IsSupersetOf({"plan", "frontier", "explain", "compare", "solvers", "doctor"}));
  for (const std::string& command : commands) {
    const Result help = Stowage(command + " --help");
    EXPECT_EQ(help.code, kExitOk) << command;
    EXPECT_EQ(help.out, HelpOf(command)) << command;
    EXPECT_THAT(help.out, HasSubstr("usage: stowage " + command));
  }
  EXPECT_EQ(Stowage("--help").out, HelpOf(""));
  EXPECT_EQ(HelpOf("help"), HelpOf(""));
  EXPECT_THAT(HelpOf("completion"), HasSubstr("usage: stowage completion bash|zsh|fish"));
  EXPECT_EQ(Stowage("completion --help").out, HelpOf("completion"));
  EXPECT_EQ(Stowage("help dance").code, kExitUsage);
  EXPECT_EQ(Stowage("--version").out,
            absl::StrCat("stowage ", kVersion, " (solvers ", kSolverVersion, ")\n"));
}

// In the order of the help: what one example writes the next may read. A server listens where they say.
TEST(CliHelp, EveryExampleRuns) {
  StowagedProcess server;
  const TemporaryFolder folder;
  // What `stowage profile` would have written, for builds that cannot, and a network of the user's.
  Shell("cp " + Data("chain_resnet50.json") + " p.json && cp " + Data("net.pt") + " net.pt",
        folder.path());
  size_t ran = 0;
  for (const std::string& command : AllCommands()) {
    const std::vector<std::string> examples = ExamplesOf(HelpOf(command));
    // Actions may go without: many are for those who know a key.
    const bool action = absl::StrContains(command, " ");
    EXPECT_TRUE(action || !examples.empty()) << command;
    for (const std::string& example : examples) {
      const std::string line = absl::StrReplaceAll(example, {{"localhost:7070", server.address()}});
      const Result result = Shell(line, folder.path());
      EXPECT_EQ(result.code, kExitOk) << line << "\n" << result.out;
      ++ran;
    }
  }
  EXPECT_GT(ran, 12u);
}

// What bash offers behind this line, in a folder with two files.
std::vector<std::string> Completed(const std::string& line) {
  static const auto* const kScript = new std::string(Stowage("completion bash").out);
  const TemporaryFolder folder;
  std::ofstream(folder / "ask.bash")
      << *kScript << "\nCOMP_LINE='" << line
      << "' COMP_POINT=${#COMP_LINE}\n_stowage\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const Result result = Shell("touch ab.json b.json && bash --norc -u ask.bash", folder.path());
  EXPECT_EQ(result.code, 0) << line << "\n" << result.out;
  return Lines(result.out);
}

TEST(CliHelp, BashCompletesCommandsFlagsAndValues) {
  EXPECT_THAT(Completed("stowage pl"), ElementsAre("plan"));
  EXPECT_THAT(Completed("stowage "), IsSupersetOf({"plan", "frontier", "doctor", "completion"}));
  EXPECT_THAT(Completed("stowage plan --bud"), ElementsAre("--budget="));
  EXPECT_THAT(Completed("stowage plan --re"), ElementsAre("--recompute_only"));
  EXPECT_THAT(Completed("stowage doctor --bud"), IsEmpty());
  EXPECT_THAT(Completed("stowage plan --format=j"), ElementsAre("json"));
  EXPECT_THAT(Completed("stowage plan --format "), ElementsAre("text", "json", "csv"));
  EXPECT_THAT(Completed("stowage plan --no_local --for"), ElementsAre("--format="));
  EXPECT_THAT(Completed("stowage plan --solver=rev"), ElementsAre("revolve"));
  EXPECT_THAT(Completed("stowage compare --solvers=revolve,chen_s"),
              ElementsAre("revolve,chen_sqrt"));
  EXPECT_THAT(Completed("stowage plan --profile=ab"), ElementsAre("ab.json"));
  EXPECT_THAT(Completed("stowage compare --profiles=ab.json,b"), ElementsAre("ab.json,b.json"));
  EXPECT_THAT(Completed("stowage checkpoints --solver=div"), ElementsAre("division_tree"));
  EXPECT_THAT(Completed("stowage checkpoints --solver=rev"), IsEmpty());
  EXPECT_THAT(Completed("stowage checkpoints --rule="),
              ElementsAre("two_end_points", "several_end_points"));
  EXPECT_THAT(Completed("stowage checkpoints --format "),
              ElementsAre("text", "json", "csv", "svg", "dot"));
  EXPECT_THAT(Completed("stowage help fro"), ElementsAre("frontier"));
  EXPECT_THAT(Completed("stowage completion f"), ElementsAre("fish"));
}

// Every command, every flag: what is completed is what the help says, no more and no less.
TEST(CliHelp, BashKnowsTheCommandsAndFlagsThatThereAre) {
  for (const std::string& command : AllCommands()) {
    std::vector<std::string> flags = {"--help"};
    for (const std::string& line : Lines(HelpOf(command))) {
      if (!absl::StartsWith(line, "  --")) continue;
      flags.push_back(line.substr(2, line.find('=') - 2));
    }
    std::vector<std::string> completed;
    for (const std::string& flag : Completed("stowage " + command + " --")) {
      completed.emplace_back(absl::StripSuffix(flag, "="));
    }
    EXPECT_THAT(completed, ::testing::UnorderedElementsAreArray(flags)) << command;
  }
}

TEST(CliHelp, OtherShellsTakeTheirScripts) {
  const TemporaryFolder folder;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Result script =
        Shell(absl::StrCat("stowage completion ", shell, " > script"), folder.path());
    EXPECT_EQ(script.code, kExitOk);
    const Result checked =
        Shell(absl::StrCat("if command -v ", shell, " >/dev/null; then ", shell, " -n script; fi"),
              folder.path());
    EXPECT_EQ(checked.code, 0) << shell << "\n" << checked.out;
    EXPECT_EQ(checked.out, "") << shell;
  }
  const Result fish = Shell(
      "if command -v fish >/dev/null; then HOME=$PWD fish -c 'source script; complete -C \"stowage "
      "plan "
      "--format=\"'; else echo --format=json; fi",
      folder.path());
  EXPECT_THAT(fish.out, HasSubstr("--format=json"));
  EXPECT_THAT(Stowage("completion zsh").out, HasSubstr("--solver) compadd -- store_all"));
  EXPECT_THAT(Stowage("completion zsh").out,
              HasSubstr("'checkpoints --rule') compadd -- two_end_points several_end_points ;;"));
  EXPECT_THAT(Stowage("completion fish").out, HasSubstr(" -l format -x -a 'text json csv'"));
  EXPECT_THAT(Stowage("completion fish").out,
              HasSubstr("'__stowage_in \"checkpoints\"' -l format -x -a 'text json csv svg dot'"));
  const Result other = Stowage("completion tcsh", true);
  EXPECT_EQ(other.code, kExitUsage);
  EXPECT_THAT(other.out, HasSubstr("must be bash or zsh or fish"));
}

// "fit --batch=0": of every command, each flag with the default that it has there.
std::vector<std::string> DefaultsInHelp() {
  std::vector<std::string> defaults;
  for (const std::string& command : AllCommands()) {
    for (const std::string& line : Lines(HelpOf(command))) {
      if (absl::StartsWith(line, "  --")) defaults.push_back(command + " " + line.substr(2));
    }
  }
  return defaults;
}

std::vector<std::string> DefaultsInManual(const std::string& page) {
  std::vector<std::string> defaults;
  std::string command;
  for (const std::string& roff : Lines(page)) {
    const std::string line = absl::StrReplaceAll(roff, {{"\\-", "-"}, {"\\fR", ""}, {"\\e", "\\"}});
    if (absl::StartsWith(line, ".SS stowage ")) command = line.substr(12);
    if (absl::StartsWith(line, ".B --")) defaults.push_back(command + " " + line.substr(3));
  }
  return defaults;
}

TEST(CliHelp, TheManualHasEveryCommandAndIsValidRoff) {
  const TemporaryFolder folder;
  const Result page = Shell("stowage help --man > stowage.1 && cat stowage.1", folder.path());
  EXPECT_EQ(page.code, kExitOk);
  for (const std::string& command : AllCommands()) {
    EXPECT_THAT(page.out, HasSubstr(".SS stowage " + absl::StrReplaceAll(command, {{"-", "\\-"}})));
  }
  EXPECT_THAT(page.out, HasSubstr(".SH EXIT STATUS"));
  EXPECT_EQ(DefaultsInManual(page.out), DefaultsInHelp());
  const Result checked =
      Shell("if command -v groff >/dev/null; then groff -ww -man -Tascii stowage.1 >/dev/null; fi",
            folder.path());
  EXPECT_EQ(checked.out, "");
}

}  // namespace
}  // namespace stowage
