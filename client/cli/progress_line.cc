#include "client/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// To the start of the line, and away with what it says.
constexpr char kClear[] = "\r\033[K";
constexpr size_t kWidth = 79;

}  // namespace

ProgressLine::~ProgressLine() {
  if (out_ != nullptr && !shown_.empty()) *out_ << kClear << std::flush;
}

void ProgressLine::Show(double share, const std::string& more) {
  if (out_ == nullptr) return;
  const int percent = static_cast<int>(100 * std::clamp(share, 0.0, 1.0));
  std::string line = absl::StrCat(what_, " ", percent, "%", more.empty() ? "" : ": ", more);
  line.resize(std::min(line.size(), kWidth));
  if (line == shown_) return;
  shown_ = std::move(line);
  *out_ << kClear << shown_ << std::flush;
}

std::ostream* TerminalOrNull() { return isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr; }

bool OutputIsTerminal() { return isatty(STDOUT_FILENO) != 0; }

}  // namespace stowage
