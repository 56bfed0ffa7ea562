#include "server/auth/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

absl::Status Error() {
  return absl::ResourceExhaustedError(
      absl::StrCat("no file in memory can be made: ", std::strerror(errno)));
}

int Create() {
  constexpr unsigned kNoExecution =
      8;  // MFD_NOEXEC_SEAL: some systems insist, those before 6.3 lack it
  const int fd = memfd_create("stowaged", MFD_CLOEXEC | kNoExecution);
  return fd < 0 && errno == EINVAL ? memfd_create("stowaged", MFD_CLOEXEC) : fd;
}

absl::StatusOr<int> Write(const std::string& text) {
  const int fd = Create();
  if (fd < 0) return Error();
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t more = write(fd, text.data() + written, text.size() - written);
    if (more < 0) {
      const absl::Status status = Error();
      close(fd);
      return status;
    }
    written += static_cast<size_t>(more);
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryFile>> MemoryFile::Make(const std::string& text) {
  const absl::StatusOr<int> fd = Write(text);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<MemoryFile>(new MemoryFile(*fd));
}

MemoryFile::~MemoryFile() { close(fd_); }

absl::Status MemoryFile::Replace(const std::string& text) {
  const absl::StatusOr<int> fd = Write(text);
  if (!fd.ok()) return fd.status();
  const absl::Status status = dup3(*fd, fd_, O_CLOEXEC) < 0 ? Error() : absl::OkStatus();
  close(*fd);
  return status;
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", fd_); }

}  // namespace stowage
