// A file of lines that is bounded: when it is full it is renamed to "<path>.1", which replaces the one
// before, so twice the bound is kept.
#ifndef STOWAGE_SERVER_OBSERVE_ROTATING_FILE_H_
#define STOWAGE_SERVER_OBSERVE_ROTATING_FILE_H_

#include <cstddef>
#include <cstdio>
#include <string>

#include "absl/status/status.h"

namespace stowage {

// Not thread-safe.
class RotatingFile {
 public:
  RotatingFile(const std::string& path, size_t most_bytes) : path_(path), most_bytes_(most_bytes) {}
  ~RotatingFile();
  RotatingFile(const RotatingFile&) = delete;
  RotatingFile& operator=(const RotatingFile&) = delete;

  // At its end. UNAVAILABLE when that cannot be.
  absl::Status Open();
  // False when it could not be written; the next line tries to open it again.
  bool Write(const std::string& line);
  bool Flush();

 private:
  void Rotate();

  const std::string path_;
  const size_t most_bytes_;
  std::FILE* file_ = nullptr;  // null while it cannot be opened
  size_t size_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_ROTATING_FILE_H_
