#include "client/cli/deterministic_mode.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/say.h"
#include "client/torch/base/deterministic_kernels.h"

namespace stowage {
namespace {

// What of LibTorch's line says so; empty: it failed for another reason.
std::string WhyNotDeterministic(const absl::Status& status) {
  const std::string message(status.message());
  size_t found = message.find("deterministic implementation");
  if (found == std::string::npos) found = message.find("not deterministic because");
  if (found == std::string::npos) return "";
  const size_t start = message.rfind('\n', found);
  const size_t begin = start == std::string::npos ? 0 : start + 1;
  return message.substr(begin, message.find(',', found) - begin);
}

}  // namespace

absl::Status BeDeterministic(c10::Device device, const std::function<absl::Status()>& first) {
  if (device.is_cpu()) return first();
  UseDeterministicKernels(/*may_warn=*/false);
  absl::Status status = first();
  const std::string why = WhyNotDeterministic(status);
  if (why.empty()) return status;
  Say(absl::StrCat("steps may differ from run to run: ", why));
  UseDeterministicKernels(/*may_warn=*/true);
  return first();
}

}  // namespace stowage
