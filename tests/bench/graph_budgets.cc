// Time within a budget on the reference networks as graphs: chain solver, checkpoints, order_search
// and the proven bound, as graph_budgets.md and .csv.
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/graph_budget_rows.h"
#include "tests/bench/text_file.h"

namespace stowage {
namespace {

constexpr int kUsageError = 2;

absl::Status Run(const std::filesystem::path& out, const std::vector<std::string>& networks) {
  std::vector<BudgetRow> rows;
  for (const std::string& name : networks) {
    const absl::StatusOr<BudgetNetwork> network = MakeBudgetNetwork(name);
    if (!network.ok()) return network.status();
    absl::StatusOr<BudgetRow> row = ComputeBudgetRow(*network);
    if (!row.ok()) return row.status();
    rows.push_back(*std::move(row));
  }
  const std::string markdown = BudgetMarkdown(rows);
  std::printf("%s", markdown.c_str());
  absl::Status status = WriteTextFile(out / "graph_budgets.md", markdown);
  status.Update(WriteTextFile(out / "graph_budgets.csv", BudgetCsv(rows)));
  return status;
}

int Main(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 1 && arguments[0] == "--help";
  if (help || arguments.empty() || arguments[0].empty() || arguments[0][0] == '-') {
    std::fprintf(help ? stdout : stderr, "usage: graph_budgets DIRECTORY [NETWORK...]\n");
    return help ? 0 : kUsageError;
  }
  std::vector<std::string> networks(arguments.begin() + 1, arguments.end());
  if (networks.empty()) networks = BudgetNetworks();
  const absl::Status status = Run(arguments[0], networks);
  if (status.ok()) return 0;
  std::fprintf(stderr, "graph_budgets: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
