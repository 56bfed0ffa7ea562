#include "client/cli/files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

absl::Status FileError(const std::string& path, const char* verb) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", verb, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    errno = EISDIR;
    return FileError(path, "read");
  }
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  if (!in) return FileError(path, "read");
  content << in.rdbuf();
  if (in.bad()) return FileError(path, "read");
  return content.str();
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  return out ? absl::OkStatus() : FileError(path, "write");
}

}  // namespace stowage
