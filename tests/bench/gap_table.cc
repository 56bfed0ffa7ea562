// How far plans are from what is proven: for each reference network, as chain and as graph, with and without a link to
// host memory, the default plan, the lower bounds and the gap at shares of plain training's peak, as gaps.md.
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/gap_rows.h"
#include "tests/bench/text_file.h"

ABSL_FLAG(std::string, out, "gaps", "directory for gaps.md; made if need be");
ABSL_FLAG(
    std::string, networks, "",
    "names with commas between, decoder_600 for one of 600 layers; all that --list has if empty");
ABSL_FLAG(std::string, forms, "chain,graph", "chain, graph or both");
ABSL_FLAG(std::string, links, "none,24", "none, 24 (a link of 24 GB/s) or both");
ABSL_FLAG(bool, list, false, "print the names of all networks, and nothing else");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

std::vector<std::string> Names(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

// Which of two words a list has: second, or not.
absl::StatusOr<std::vector<bool>> Choices(const std::string& list, const std::string& first,
                                          const std::string& second) {
  std::vector<bool> choices;
  for (const std::string& word : Names(list)) {
    if (word != first && word != second) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is neither ", first, " nor ", second));
    }
    choices.push_back(word == second);
  }
  return choices;
}

absl::Status Run() {
  std::vector<std::string> networks = Names(absl::GetFlag(FLAGS_networks));
  if (networks.empty()) networks = GapNetworks();
  const auto forms = Choices(absl::GetFlag(FLAGS_forms), "chain", "graph");
  if (!forms.ok()) return forms.status();
  const auto links = Choices(absl::GetFlag(FLAGS_links), "none", "24");
  if (!links.ok()) return links.status();
  std::vector<GapRow> rows;
  for (const std::string& network : networks) {
    for (const bool as_graph : *forms) {
      for (const bool with_link : *links) {
        absl::StatusOr<GapRow> row = ComputeGapRow(network, as_graph, with_link);
        if (!row.ok()) return row.status();
        rows.push_back(*std::move(row));
      }
    }
  }
  const std::string markdown = GapMarkdown(rows);
  std::printf("%s", markdown.c_str());
  return WriteTextFile(std::filesystem::path(absl::GetFlag(FLAGS_out)) / "gaps.md", markdown);
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"out", "networks", "forms", "links", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::printf("usage: gap_table [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  if (help.ok() && absl::GetFlag(FLAGS_list)) {
    for (const std::string& name : GapNetworks()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const absl::Status status = help.ok() ? Run() : help.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "gap_table: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kUsageError : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
