#include "client/rpc/job_name.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stowage {

std::string JobName() {
  constexpr size_t kLimit = 128;
  const char* const set = std::getenv("STOWAGE_JOB");
  if (set != nullptr && *set != '\0') return std::string(set).substr(0, kLimit);
  std::string host(kLimit, '\0');
  // A name that is cut is not terminated: the last byte stays 0.
  if (gethostname(host.data(), host.size() - 1) != 0) host = "unknown";
  const std::string pid = absl::StrCat(":", getpid());
  return std::string(host.c_str()).substr(0, kLimit - pid.size()) + pid;
}

}  // namespace stowage
