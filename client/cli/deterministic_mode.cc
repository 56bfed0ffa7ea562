#include "client/cli/deterministic_mode.h"

#include <ATen/Context.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/say.h"

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
  // What LibTorch asks for before it calls cuBLAS in that mode, and cuBLAS reads when it is first called.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  absl::Status status = first();
  const std::string why = WhyNotDeterministic(status);
  if (why.empty()) return status;
  Say(absl::StrCat("steps may differ from run to run: ", why));
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  return first();
}

}  // namespace stowage
