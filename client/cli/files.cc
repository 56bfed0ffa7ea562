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

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const std::filesystem::file_status before = std::filesystem::status(path, error);
  // Who reads a pipe would take this for the end.
  if (before.type() == std::filesystem::file_type::fifo) return absl::OkStatus();
  const bool opens = std::ofstream(path, std::ios::binary | std::ios::app).is_open();
  if (!opens) return FileError(path, "write");
  if (!std::filesystem::exists(before)) std::filesystem::remove(path, error);
  return absl::OkStatus();
}

absl::Status ErrorIn(const std::string& path, const absl::Status& error) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.message()));
}

}  // namespace stowage
