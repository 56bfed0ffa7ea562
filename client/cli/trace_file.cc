#include "client/cli/trace_file.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/files.h"
#include "client/cli/say.h"
#include "client/cli/training_flags.h"

namespace stowage {

absl::Status WriteTrace(const MeasuredStep& step, size_t number, size_t budgets) {
  std::string path = absl::GetFlag(FLAGS_trace);
  if (path.empty()) return absl::OkStatus();
  if (budgets > 1) absl::StrAppend(&path, ".", number + 1);
  const absl::Status written = WriteFile(path, MeasuredStepText(step));
  if (written.ok()) Say(absl::StrCat("what the last step took is in ", path));
  return written;
}

}  // namespace stowage
