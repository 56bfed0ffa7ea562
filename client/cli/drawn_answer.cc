#include "client/cli/drawn_answer.h"

#include <algorithm>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/files.h"

ABSL_FLAG(std::string, measured, "",
          "file of what a step by the plan took (`stowage run --trace`), to show beside it");

namespace stowage {

std::vector<std::string> WithPictureFlags(std::vector<std::string> flags) {
  std::vector<std::string> all = WithQuestionFlags(std::move(flags));
  all.erase(std::remove(all.begin(), all.end(), "format"), all.end());
  return all;
}

absl::StatusOr<std::optional<MeasuredStep>> MeasuredFromFlag() {
  const std::string path = absl::GetFlag(FLAGS_measured);
  if (path.empty()) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<MeasuredStep> step = ParseMeasuredStep(*text);
  if (step.ok()) return *std::move(step);
  return ErrorIn(path, step.status());
}

absl::StatusOr<DrawnAnswer> AskAndDraw(PlanConnection* connection, const Question& question,
                                       const Budget& budget, std::optional<MeasuredStep> measured) {
  const std::string& solver = question.key.solver;
  const std::string label =
      solver.empty() ? ToString(budget) : absl::StrCat(ToString(budget), ", ", solver);
  absl::StatusOr<PlanReply> reply = AskForPlan(connection, question, budget, label);
  if (!reply.ok()) return reply.status();
  DrawnAnswer answer;
  answer.plan = reply->plan;
  if (reply->plan.status != PlanStatus::kFound) return answer;
  absl::StatusOr<DrawnPlan> drawn =
      DrawPlan(question.instance(), label, std::move(reply->plan), std::move(measured));
  if (!drawn.ok()) return drawn.status();
  answer.drawn = *std::move(drawn);
  return answer;
}

}  // namespace stowage
