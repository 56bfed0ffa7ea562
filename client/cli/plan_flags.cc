#include "client/cli/plan_flags.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"

ABSL_FLAG(
    std::string, profile, "",
    "profile file (the contract's JSON mapping, chain or graph); run and verify measure where it "
    "is empty");
ABSL_FLAG(std::string, profiles, "", "profile files, separated by commas");
ABSL_FLAG(
    std::string, budget, "",
    "memory that a step may take for activations, their gradients and workspaces (not for "
    "parameters and optimizer): bytes (\"8GiB\"), a share of the peak of plain training, which "
    "stores every activation (\"60%\"), or \"least\", the smallest that the solver has a "
    "schedule for");
ABSL_FLAG(std::string, budgets, "80%,60%,40%,least", "budgets like --budget, separated by commas");
ABSL_FLAG(std::string, key, "",
          "key of a cached plan: hexadecimal, as many digits as tell it apart");
ABSL_FLAG(std::string, solver, "",
          "one that `stowage solvers` lists; empty: the one that it says is taken then");
ABSL_FLAG(int64_t, slots, 0, "slots of the solver's table; 0 lets the solver choose");
ABSL_FLAG(bool, recompute_only, false,
          "plan no copies to host memory, even if the profile's device has a link to it");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(60), "time for one plan");
ABSL_FLAG(std::string, format, "text",
          "text or json; csv where what is printed is a table, svg or dot where it is a graph");
ABSL_FLAG(std::string, out, "",
          "file to write, with a table on standard output; empty writes the file there");

namespace stowage {
namespace {

const char* NameOf(Format format) {
  switch (format) {
    case Format::kText:
      return "text";
    case Format::kJson:
      return "json";
    case Format::kCsv:
      return "csv";
  }
  return "?";
}

}  // namespace

std::vector<std::string> PartsOf(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipWhitespace());
}

absl::StatusOr<Budget> BudgetFromFlag() {
  absl::StatusOr<Budget> budget = ParseBudget(absl::GetFlag(FLAGS_budget));
  if (budget.ok()) return budget;
  return absl::InvalidArgumentError(absl::StrCat("--", budget.status().message()));
}

absl::StatusOr<std::vector<Budget>> BudgetsFromFlag() {
  std::vector<Budget> budgets;
  for (const std::string& text : PartsOf(absl::GetFlag(FLAGS_budgets))) {
    absl::StatusOr<Budget> budget = ParseBudget(text);
    if (!budget.ok()) {
      return FieldError("--budgets", absl::StrCat("\"", text, "\""),
                        GetFieldViolation(budget.status())->rule);
    }
    budgets.push_back(*budget);
  }
  if (budgets.empty()) return FieldError("--budgets", "\"\"", "must name at least one budget");
  return budgets;
}

absl::Status CheckSolverFlag() {
  const std::string name = absl::GetFlag(FLAGS_solver);
  if (name.empty()) return absl::OkStatus();
  for (const Solver* solver : AllSolvers()) {
    if (solver->info().name == name) return absl::OkStatus();
  }
  return FieldError("--solver", name, "must be one of those that `stowage solvers` lists");
}

absl::StatusOr<CallOptions> CallOptionsFromFlags() {
  const absl::Duration timeout = absl::GetFlag(FLAGS_timeout);
  if (timeout <= absl::ZeroDuration() || timeout > absl::Hours(24)) {
    return FieldError("--timeout", absl::FormatDuration(timeout), "must be in (0, 24h]");
  }
  return CallOptions::Within(absl::ToChronoNanoseconds(timeout));
}

absl::StatusOr<Format> FormatFromFlag(std::initializer_list<Format> formats) {
  const std::string text = absl::GetFlag(FLAGS_format);
  for (const Format format : formats) {
    if (text == NameOf(format)) return format;
  }
  const auto name = [](std::string* out, Format format) { out->append(NameOf(format)); };
  return FieldError("--format", text,
                    absl::StrCat("must be ", absl::StrJoin(formats, " or ", name)));
}

}  // namespace stowage
