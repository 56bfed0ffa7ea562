#include "client/cli/torch_version.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace stowage {
namespace {

std::string MajorAndMinor(const std::string& version) {
  std::vector<std::string> parts = absl::StrSplit(version, '.');
  if (parts.size() > 2) parts.resize(2);
  return absl::StrJoin(parts, ".");
}

}  // namespace

absl::Status CheckTorchVersion(const std::string& config, const std::string& built_with) {
  const std::string key = "TORCH_VERSION=";
  const size_t at = config.find(key);
  if (at == std::string::npos) return absl::OkStatus();
  const size_t begin = at + key.size();
  const std::string runs = config.substr(begin, config.find_first_of(", \n", begin) - begin);
  if (MajorAndMinor(runs) == MajorAndMinor(built_with)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Stowage was built with LibTorch ", built_with, ", and ", runs,
                   " is what is found here: build it with that one (-DCMAKE_PREFIX_PATH)"));
}

}  // namespace stowage
