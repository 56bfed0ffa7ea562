#ifndef STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_
#define STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_

#include <optional>
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

  // Of 0 to 1, and what else is known; writes when that makes another line. It is cut at 79 characters: one
  // that runs into the next cannot be written over.
  // Without a share where nobody knows it.
  void Show(std::optional<double> share, const std::string& more = "");

 private:
  std::ostream* const out_;
  const std::string what_;
  std::string shown_;
};

// Takes what a line shows on a terminal away, and goes to its start.
inline constexpr char kClearLine[] = "\r\033[K";

// Standard error if that is a terminal, null if not.
std::ostream* TerminalOrNull();

// Whether standard output is one: what is there is for a person then.
bool OutputIsTerminal();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PROGRESS_LINE_H_
