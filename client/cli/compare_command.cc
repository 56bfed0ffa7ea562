#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/comparison.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/question.h"
#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"

ABSL_FLAG(std::string, solvers, "",
          "solvers to compare, separated by commas, \"planner\" for the planner's choice; empty: "
          "those that people know");
ABSL_FLAG(std::string, plans, "",
          "plan files to compare (of `stowage plan --format=json`), separated by commas: as they "
          "are, nothing is planned");

namespace stowage {
namespace {

// Exactly one of the three says what is compared.
absl::Status CheckSources() {
  const int given = !absl::GetFlag(FLAGS_profile).empty() + !absl::GetFlag(FLAGS_profiles).empty() +
                    !absl::GetFlag(FLAGS_plans).empty();
  if (given == 1) return absl::OkStatus();
  return FieldError("--profile, --profiles, --plans", absl::StrCat(given, " given"),
                    "must be exactly one of them");
}

// --budget if it is given, all of --budgets else.
absl::StatusOr<std::vector<Budget>> BudgetsToCompare() {
  if (absl::GetFlag(FLAGS_budget).empty()) return BudgetsFromFlag();
  absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  return std::vector<Budget>{*budget};
}

absl::StatusOr<std::vector<Compared>> ReadPlans() {
  std::vector<Compared> rows;
  for (const std::string& path : PartsOf(absl::GetFlag(FLAGS_plans))) {
    const absl::StatusOr<std::string> json = ReadFile(path);
    if (!json.ok()) return json.status();
    const absl::StatusOr<v1::Plan> message = PlanFromJson(*json);
    if (!message.ok()) return ErrorIn(path, message.status());
    absl::StatusOr<Plan> plan = FromProto(*message);
    if (!plan.ok()) return ErrorIn(path, plan.status());
    Compared row{path, ToString(plan->budget), plan->provenance.solver, *std::move(plan), ""};
    rows.push_back(std::move(row));
  }
  return rows;
}

// A strategy that cannot answer is a row that says so; what would be so for every strategy is an error.
absl::StatusOr<Compared> PlanOne(PlanConnection* connection, const Question& question,
                                 const Budget& budget) {
  const std::string& solver = question.key.solver;
  Compared row;
  row.of = question.profile.name;
  row.budget = ToString(budget);
  row.strategy = solver.empty() ? "planner's choice" : solver;
  absl::StatusOr<PlanReply> reply =
      AskForPlan(connection, question, budget, absl::StrCat(row.strategy, ", ", row.budget));
  if (reply.ok()) {
    row.plan = std::move(reply->plan);
    return row;
  }
  if (absl::IsDeadlineExceeded(reply.status())) {
    row.failure = "out of time";
  } else if (absl::IsResourceExhausted(reply.status())) {
    row.failure = "too large";
  } else {
    return reply.status();
  }
  return row;
}

absl::StatusOr<std::vector<Question>> Questions() {
  const bool one = !absl::GetFlag(FLAGS_profile).empty();
  std::vector<Question> questions;
  for (const std::string& path : PartsOf(absl::GetFlag(one ? FLAGS_profile : FLAGS_profiles))) {
    absl::StatusOr<Profile> profile = ReadProfile(path);
    if (!profile.ok()) return profile.status();
    questions.push_back({*std::move(profile), KeyOptionsFromFlags()});
    if (!one) questions.back().profile.name = path;
  }
  return questions;
}

// Of several profiles what the planner chooses for each, of one what people know.
absl::StatusOr<std::vector<std::string>> StrategiesFor(const Question& question, bool one) {
  const std::string list = absl::GetFlag(FLAGS_solvers);
  if (!list.empty()) return ParseStrategies(question.instance(), list);
  if (!one) return std::vector<std::string>{""};
  return KnownStrategies(question.instance());
}

absl::StatusOr<std::vector<Compared>> PlanAll() {
  const absl::StatusOr<std::vector<Question>> questions = Questions();
  if (!questions.ok()) return questions.status();
  const absl::StatusOr<std::vector<Budget>> budgets = BudgetsToCompare();
  if (!budgets.ok()) return budgets.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  std::vector<Compared> rows;
  for (Question question : *questions) {
    const auto strategies = StrategiesFor(question, questions->size() == 1);
    if (!strategies.ok()) return strategies.status();
    for (const Budget& budget : *budgets) {
      for (const std::string& strategy : *strategies) {
        question.key.solver = strategy;
        absl::StatusOr<Compared> row = PlanOne(connection->get(), question, budget);
        if (!row.ok()) return row.status();
        rows.push_back(*std::move(row));
      }
    }
  }
  return rows;
}

int RunCompare() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::Status sources = CheckSources();
  if (!sources.ok()) return Fail(sources);
  const absl::StatusOr<std::vector<Compared>> rows =
      absl::GetFlag(FLAGS_plans).empty() ? PlanAll() : ReadPlans();
  if (!rows.ok()) return Fail(rows.status());
  if (rows->empty()) return Fail(FieldError("--plans", "\",\"", "must name a file"));
  std::cout << (*format == Format::kText ? ToText(*rows) : ListingOf(*rows).As(*format));
  for (const Compared& row : *rows) {
    if (row.fits()) return kExitOk;
  }
  return kExitInfeasible;
}

}  // namespace

Command CompareCommand() {
  return {"compare",
          "strategies, budgets, profiles or plans side by side",
          WithQuestionFlags({"profile", "profiles", "plans", "budget", "budgets", "solvers"}),
          RunCompare,
          {"compare --profile=p.json --budget=80%",
           "compare --profile=p.json --solvers=revolve,planner --budgets=80%,90%,1GiB",
           "compare --plans=plan.json,tight.json"}};
}

}  // namespace stowage
