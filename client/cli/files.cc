#include "client/cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

absl::Status FileError(const std::string& path, const char* verb) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", verb, " ", path, ": ", std::strerror(errno)));
}

// errno says why not.
bool WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t some = write(fd, content.data(), content.size());
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    content.remove_prefix(static_cast<size_t>(some));
  }
  return true;
}

// Whether it is a link to nothing; errno says so.
bool LeadsNowhere(const std::string& path) {
  struct stat link = {};
  const bool leads_nowhere =
      lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && stat(path.c_str(), &link) != 0;
  if (leads_nowhere) errno = ENOENT;
  return leads_nowhere;
}

// Mode and, where this may be done, owner of what was there.
bool GiveTo(int fd, const struct stat& before) {
  if (fchown(fd, before.st_uid, before.st_gid) != 0 && errno != EPERM) return false;
  return fchmod(fd, before.st_mode & 0777) == 0;
}

// On the disk, as `before` was where that is not null. Closes the file; errno says why not.
bool WriteWhole(int fd, absl::string_view content, const struct stat* before) {
  bool written = WriteAll(fd, content) && (before == nullptr || GiveTo(fd, *before));
  written = written && fsync(fd) == 0;
  const int why = errno;
  const bool closed = close(fd) == 0;
  if (!written) errno = why;
  return written && closed;
}

// So that a name in it is there after a power cut. Where that cannot be done the file itself is whole all the same.
void SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
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
  struct stat before = {};
  const bool exists = stat(path.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode)) return WriteFile(path, content);
  if (!exists && LeadsNowhere(path)) return FileError(path, "write");
  std::error_code error;
  // A link goes on leading to its file.
  const std::string file = exists ? std::filesystem::canonical(path, error).string() : path;
  if (error) {
    errno = error.value();
    return FileError(path, "write");
  }
  std::string unfinished = absl::StrCat(file, ".XXXXXX");  // mkostemp puts letters for the X
  const int fd = mkostemp(unfinished.data(), O_CLOEXEC);   // with mode 0600
  if (fd < 0) return FileError(path, "write");
  const bool written = WriteWhole(fd, content, exists ? &before : nullptr);
  if (written && rename(unfinished.c_str(), file.c_str()) == 0) {
    SyncFolderOf(file);
    return absl::OkStatus();
  }
  const int why = errno;
  unlink(unfinished.c_str());
  errno = why;
  return FileError(path, "write");
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  if (LeadsNowhere(path)) return FileError(path, "write");
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
