#include <iostream>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/explanation.h"
#include "client/cli/frontier_question.h"
#include "client/cli/json_text.h"
#include "client/cli/plan_flags.h"
#include "client/cli/plan_key_text.h"
#include "client/cli/question.h"
#include "client/cli/say.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::StatusOr<Explanation> ExplainProfile() {
  const absl::StatusOr<Question> question = QuestionFromFlags();
  if (!question.ok()) return question.status();
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<PlanAmongOthers> asked =
      AskForPlanAmongOthers(connection->get(), *question, *budget);
  if (!asked.ok()) return asked.status();
  absl::StatusOr<Explanation> explanation = Explain(question->instance(), asked->plan);
  if (!explanation.ok()) return explanation.status();
  // What the plan costs beside its neighbours is worth a notice, not a failure, where it cannot be told.
  if (asked->frontier.ok()) {
    FindNeighbours(asked->frontier->points, &*explanation);
  } else {
    Say(absl::StrCat("what other budgets would give is not known: ",
                     std::string(asked->frontier.status().message())));
  }
  return explanation;
}

// The server's own words on a plan that it keeps.
absl::StatusOr<std::string> ExplainKey() {
  if (!absl::GetFlag(FLAGS_profile).empty()) {
    return FieldError("--key", absl::GetFlag(FLAGS_key), "cannot be given together with --profile");
  }
  if (ServerFromFlags().address.empty()) {
    return FieldError("--key", absl::GetFlag(FLAGS_key), "needs a --server, which keeps plans");
  }
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  const absl::StatusOr<CallOptions> call = CallFromFlags();
  if (!call.ok()) return call.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<PlanKey> key = FindKey(connection->get(), absl::GetFlag(FLAGS_key), *call);
  if (!key.ok()) return key.status();
  return (*connection)->ExplainPlan(*key, *budget, *call);
}

int RunForKey() {
  const absl::StatusOr<Format> format = FormatFromFlag({Format::kText, Format::kJson});
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<std::string> text = ExplainKey();
  if (!text.ok()) return Fail(text.status());
  std::cout << (*format == Format::kText ? *text
                                         : JsonObject({{"explanation", JsonString(*text)}}) + "\n");
  return kExitOk;
}

int RunExplain() {
  if (!absl::GetFlag(FLAGS_key).empty()) return RunForKey();
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<Explanation> explanation = ExplainProfile();
  if (!explanation.ok()) return Fail(explanation.status());
  switch (*format) {
    case Format::kText:
      std::cout << ToText(*explanation);
      break;
    case Format::kJson:
      std::cout << ToJson(*explanation);
      break;
    case Format::kCsv:
      std::cout << StagesOf(*explanation).Csv();
      break;
  }
  return ExitCodeOf(explanation->plan.status);
}

}  // namespace

Command ExplainCommand() {
  return {"explain",
          "why a plan is what it is: each stage, the time, the peak, other budgets",
          WithQuestionFlags({"profile", "budget", "solver", "key"}),
          RunExplain,
          {"explain --profile=p.json --budget=80%",
           "explain --profile=p.json --budget=80% --format=csv"}};
}

}  // namespace stowage
