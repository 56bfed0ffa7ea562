#include <iostream>

#include "absl/flags/flag.h"
#include "client/cli/commands.h"
#include "client/cli/delivery.h"
#include "client/cli/drawn_answer.h"
#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/cli/question.h"
#include "solvers/schedule/text.h"
#include "solvers/viz/chrome_trace.h"

namespace stowage {
namespace {

absl::StatusOr<DrawnAnswer> AskForTrace(const Question& question) {
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  absl::StatusOr<std::optional<MeasuredStep>> measured = MeasuredFromFlag();
  if (!measured.ok()) return measured.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  return AskAndDraw(connection->get(), question, *budget, *std::move(measured));
}

int RunTrace() {
  const absl::StatusOr<Question> question = QuestionFromFlags();
  if (!question.ok()) return Fail(question.status());
  const absl::StatusOr<DrawnAnswer> answer = AskForTrace(*question);
  if (!answer.ok()) return Fail(answer.status());
  if (!answer->drawn) {
    std::cerr << PlanText(answer->plan);
    return ExitCodeOf(answer->plan.status);
  }
  const absl::Status status =
      Deliver(ChromeTrace(question->profile.problem, *answer->drawn), PlanText(answer->plan));
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace

Command TraceCommand() {
  return {"trace",
          "write a plan's step as a trace that Perfetto opens",
          WithPictureFlags({"profile", "budget", "solver", "measured", "out"}),
          RunTrace,
          {"trace --profile=p.json --budget=80% --out=trace.json"}};
}

}  // namespace stowage
