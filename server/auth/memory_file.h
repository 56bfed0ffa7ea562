// A file that is nowhere but in this process: for libraries that take paths alone.
#ifndef STOWAGE_SERVER_AUTH_MEMORY_FILE_H_
#define STOWAGE_SERVER_AUTH_MEMORY_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

// Not thread-safe, but its path may be opened by any thread at any time.
class MemoryFile {
 public:
  // RESOURCE_EXHAUSTED when the process can have no more files. O(text).
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Make(const std::string& text);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Whoever opens the path reads the text of before or the new one, whole. Errors as of Make; the
  // text of before stays.
  absl::Status Replace(const std::string& text);

  // For this process alone, while the file lives.
  std::string path() const;

 private:
  explicit MemoryFile(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_MEMORY_FILE_H_
