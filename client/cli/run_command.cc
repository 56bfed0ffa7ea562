#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/cli/run_table.h"
#include "client/cli/say.h"
#include "client/cli/training_session.h"
#include "client/cli/verification_text.h"

namespace stowage {
namespace {

std::string RunInFormat(Format format, const VerificationReport& report) {
  switch (format) {
    case Format::kText:
      return RunTable(report);
    case Format::kJson:
      return ToJson(report);
    case Format::kCsv:
      return StepsOf(report).Csv();
  }
  return "";
}

}  // namespace

int RunTraining() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<VerificationReport> report =
      TrainAsFlagsSay({/*limit=*/true, /*report=*/true});
  if (!report.ok()) return Fail(report.status());
  std::cout << RunInFormat(*format, *report) << std::flush;
  for (const Verified& one : report->budgets) {
    for (const std::string& fault : one.faults)
      Say(absl::StrCat(ToString(one.budget), ": ", fault));
  }
  return EndOf(*report);
}

}  // namespace stowage
