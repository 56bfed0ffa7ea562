// A file that one process holds at a time. The kernel drops the lock when the process ends, however
// it ends; the file stays.
#ifndef STOWAGE_SERVER_STORE_FILE_LOCK_H_
#define STOWAGE_SERVER_STORE_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace stowage {

class FileLock {
 public:
  // FAILED_PRECONDITION that names the path and, where it is known, the process that holds the lock;
  // UNAVAILABLE when the file cannot be opened. A second lock of this process is refused, too.
  static absl::StatusOr<FileLock> Take(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;  // -1: moved from
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_FILE_LOCK_H_
