#include "server/store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// What Take wrote: a process id, or nothing yet.
std::string HolderOf(int file) {
  char text[32];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  std::string pid(text, size > 0 ? static_cast<size_t>(size) : 0);
  absl::StripAsciiWhitespace(&pid);
  return pid.empty() ? "another process" : absl::StrCat("process ", pid);
}

// Only for people: the lock holds without it.
void WriteHolder(int file) {
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(file, 0) != 0) return;
  if (::pwrite(file, pid.data(), pid.size(), 0) < 0) return;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  FileLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", std::strerror(errno)));
    }
    return absl::FailedPreconditionError(absl::StrCat(path, " is locked by ", HolderOf(file)));
  }
  WriteHolder(file);
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace stowage
