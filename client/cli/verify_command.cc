#include <iostream>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/cli/training_session.h"
#include "client/cli/verification_text.h"

namespace stowage {
namespace {

std::string VerificationInFormat(Format format, const VerificationReport& report) {
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

}  // namespace

int RunVerification() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<VerificationReport> report = TrainAsFlagsSay({});
  if (!report.ok()) return Fail(report.status());
  std::cout << VerificationInFormat(*format, *report) << std::flush;
  return EndOf(*report);
}

}  // namespace stowage
