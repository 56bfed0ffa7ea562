// A file that holds what a fuzzer made, for what reads files: in memory, gone with the object.
#ifndef STOWAGE_TESTS_FUZZ_TEXT_FILE_H_
#define STOWAGE_TESTS_FUZZ_TEXT_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/require.h"

namespace stowage::testing {

class TextFile {
 public:
  explicit TextFile(const std::string& text) : fd_(memfd_create("fuzz", 0)) {
    const bool written =
        fd_ >= 0 && write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    Require(written, "there is memory for a file");
  }
  ~TextFile() { close(fd_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_FUZZ_TEXT_FILE_H_
