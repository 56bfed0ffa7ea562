#ifndef STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_
#define STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_

#include <ostream>
#include <string>

namespace stowage {

// Says how far something is, in one line that is written over and gone at the end. Not thread-safe.
class ProgressLine {
 public:
  // Null: writes nothing.
  ProgressLine(std::ostream* out, std::string what) : out_(out), what_(std::move(what)) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Of 0 to 1; writes when that makes another percentage.
  void Show(double share);

 private:
  std::ostream* const out_;
  const std::string what_;
  int percent_ = -1;
};

// Standard error if that is a terminal, null if not.
std::ostream* TerminalOrNull();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_
