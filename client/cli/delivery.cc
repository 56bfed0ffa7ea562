#include "client/cli/delivery.h"

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/files.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"

namespace stowage {

absl::Status Deliver(const std::string& content, const std::string& about) {
  const std::string path = absl::GetFlag(FLAGS_out);
  if (path.empty()) {
    std::cout << content;
    return absl::OkStatus();
  }
  const absl::Status written = DeliverBeside(path, content);
  if (written.ok()) std::cout << about;
  return written;
}

absl::Status DeliverBeside(const std::string& path, const std::string& content) {
  if (path.empty()) return absl::OkStatus();
  const absl::Status written = WriteFile(path, content);
  if (written.ok()) Say(absl::StrCat("written to ", path));
  return written;
}

}  // namespace stowage
