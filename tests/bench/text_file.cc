#include "tests/bench/text_file.h"

#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stowage {

absl::Status WriteTextFile(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;  // the file says whether it worked
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path.string()));
  return absl::OkStatus();
}

}  // namespace stowage
