#include "client/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kWidth = 79;

}  // namespace

ProgressLine::~ProgressLine() {
  if (out_ != nullptr && !shown_.empty()) *out_ << kClearLine << std::flush;
}

void ProgressLine::Show(std::optional<double> share, const std::string& more) {
  if (out_ == nullptr) return;
  std::string line = what_;
  if (share) {
    absl::StrAppend(&line, " ", static_cast<int>(100 * std::clamp(*share, 0.0, 1.0)), "%");
  }
  absl::StrAppend(&line, more.empty() ? "" : ": ", more);
  line.resize(std::min(line.size(), kWidth));
  if (line == shown_) return;
  shown_ = std::move(line);
  *out_ << kClearLine << shown_ << std::flush;
}

std::ostream* TerminalOrNull() { return isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr; }

bool OutputIsTerminal() { return isatty(STDOUT_FILENO) != 0; }

}  // namespace stowage
