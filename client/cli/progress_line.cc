#include "client/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace stowage {
namespace {

// To the start of the line, and away with what it says.
constexpr char kClear[] = "\r\033[K";

}  // namespace

ProgressLine::~ProgressLine() {
  if (out_ != nullptr && percent_ >= 0) *out_ << kClear << std::flush;
}

void ProgressLine::Show(double share) {
  const int percent = static_cast<int>(100 * std::clamp(share, 0.0, 1.0));
  if (out_ == nullptr || percent == percent_) return;
  percent_ = percent;
  *out_ << kClear << what_ << " " << percent << "%" << std::flush;
}

std::ostream* TerminalOrNull() { return isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr; }

}  // namespace stowage
