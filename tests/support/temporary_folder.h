// A new folder that goes with its object, and all that is in it.
#ifndef STOWAGE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define STOWAGE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace stowage {

class TemporaryFolder {
 public:
  // Aborts where none can be made. The path is short: a unix socket may lie in it.
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "stowage-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::abort();
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
