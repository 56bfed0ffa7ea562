#include <iostream>
#include <string>
#include <variant>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "client/cli/question.h"
#include "proto/codec/codec.h"
#include "solvers/schedule/text.h"

namespace stowage {
namespace {

std::string StageName(const Problem& problem, int stage) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return graph->vertex(stage - 1).name;
  return stage == 0 ? "input" : std::get<Chain>(problem).stage(stage).name;
}

// One row per instruction.
Listing ScheduleOf(const Plan& plan, const Problem& problem) {
  Listing listing({{"op", "", "op"},
                   {"stage", "", "stage"},
                   {"name", "", "name"},
                   {"tensor", "", "tensor"},
                   {"part", "", "part"},
                   {"stream", "", "stream"}});
  for (const Instruction& i : plan.schedule) {
    const bool moves = IsTransfer(i.op) || i.op == Op::kDiscard || i.op == Op::kDropSavedKeepOutput;
    const char* tensor = i.tensor == TensorKind::kSaved ? "saved" : "activation";
    listing.AddRow({Listing::Text(ToString(i.op)), Listing::Integer(i.stage),
                    Listing::Text(StageName(problem, i.stage)), Listing::Text(moves ? tensor : ""),
                    Listing::Integer(i.part), Listing::Text(ToString(i.stream))});
  }
  return listing;
}

std::string PlanText(const PlanReply& reply, const Problem& problem) {
  std::string text =
      absl::StrCat(PlanText(reply.plan), "  source         ", SourceText(reply.source), "\n");
  if (reply.plan.status != PlanStatus::kFound) return text;
  const char* const numbers = std::holds_alternative<Graph>(problem)
                                  ? "of vertices by their places in the program, from 1"
                                  : "of stages, the loss last";
  return absl::StrCat(text, "  schedule       ", numbers, " (--format=csv has names)\n",
                      ScheduleText(reply.plan.schedule));
}

absl::StatusOr<PlanReply> AskForPlan(const Question& question) {
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  return AskForPlan(connection->get(), question, *budget, ToString(*budget));
}

int RunPlan() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<Question> question = QuestionFromFlags();
  if (!question.ok()) return Fail(question.status());
  const absl::StatusOr<PlanReply> reply = AskForPlan(*question);
  if (!reply.ok()) return Fail(reply.status());
  switch (*format) {
    case Format::kText:
      std::cout << PlanText(*reply, question->profile.problem);
      break;
    case Format::kJson:
      std::cout << ToJson(ToProto(reply->plan));
      break;
    case Format::kCsv:
      std::cout << ScheduleOf(reply->plan, question->profile.problem).Csv();
      break;
  }
  return ExitCodeOf(reply->plan.status);
}

}  // namespace

Command PlanCommand() {
  return {"plan",
          "plan a profile within a budget, with a server or in this process",
          WithQuestionFlags({"profile", "budget", "solver"}),
          RunPlan,
          {"plan --profile=p.json --budget=80%",
           "plan --profile=p.json --budget=80% --format=json > plan.json",
           "plan --profile=p.json --budget=least --format=json > tight.json",
           "plan --profile=p.json --budget=80% --server=localhost:7070"}};
}

}  // namespace stowage
