#include <iostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/cli/training_session.h"
#include "client/cli/verification_text.h"

namespace stowage {
namespace {

std::string InFormat(Format format, const VerificationReport& report) {
  switch (format) {
    case Format::kText:
      return ToText(report);
    case Format::kJson:
      return ToJson(report);
    case Format::kCsv:
      return BudgetsOf(report).Csv();
  }
  return "";
}

int Run() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<VerificationReport> report = TrainAsFlagsSay({});
  if (!report.ok()) return Fail(report.status());
  std::cout << InFormat(*format, *report) << std::flush;
  return EndOf(*report);
}

}  // namespace

Command VerifyCommand() {
  return {"verify",
          kVerifySummary,
          TrainingFlags(),
          Run,
          {"verify --model=resnet18 --image_size=64 --budgets=80%,least",
           "verify --model=resnet18 --image_size=64 --graph --budgets=95% --format=json"}};
}

}  // namespace stowage
