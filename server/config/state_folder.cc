#include "server/config/state_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stowage {

std::optional<std::string> StateFolder(const Environment& environment) {
  struct Place {
    const char* variable;
    const char* below;
  };
  for (const Place& place : {Place{"STATE_DIRECTORY", ""}, Place{"XDG_STATE_HOME", "/stowage"},
                             Place{"HOME", "/.local/state/stowage"}}) {
    std::string folder = environment(place.variable).value_or("");
    folder = folder.substr(0, folder.find(':'));
    if (!folder.empty() && folder.front() == '/') return folder + place.below;
  }
  return std::nullopt;
}

absl::Status MakeStateFolder(const std::string& folder) {
  const std::filesystem::path path(folder);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  if (path.has_relative_path()) {
    const absl::Status above = MakeStateFolder(path.parent_path().string());
    if (!above.ok()) return above;
  }
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make the folder ", folder, ": ", std::strerror(errno)));
}

}  // namespace stowage
