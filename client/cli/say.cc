#include "client/cli/say.h"

#include <iostream>

#include "client/cli/progress_line.h"

namespace stowage {

void Say(const std::string& what) {
  // Over a line of progress, which comes again below.
  if (std::ostream* const terminal = TerminalOrNull()) *terminal << kClearLine;
  std::cerr << "stowage: " << what << std::endl;
}

}  // namespace stowage
