#include "client/cli/files.h"

#include <unistd.h>

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

absl::Status ReplaceFile(const std::string& path, const std::string& content) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status before = fs::status(path, error);
  const bool exists = fs::exists(before);
  if (exists && !fs::is_regular_file(before)) return WriteFile(path, content);
  error.clear();
  // A link goes on leading to its file.
  const fs::path file = exists ? fs::canonical(path, error) : fs::path(path);
  const std::string unfinished = absl::StrCat(file.string(), ".", getpid(), ".unfinished");
  absl::Status status = WriteFile(unfinished, content);
  if (status.ok() && exists && !error) fs::permissions(unfinished, before.permissions(), error);
  if (status.ok() && !error) fs::rename(unfinished, file, error);
  if (status.ok() && !error) return status;
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  if (!status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", error.message()));
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
