#include "client/cli/deterministic_mode.h"

#include <ATen/Context.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/say.h"

namespace stowage {
namespace {

// The line of LibTorch's that names the operation; empty: it failed for another reason.
std::string WhatHasNone(const absl::Status& status) {
  const std::string message(status.message());
  const size_t found = message.find("deterministic implementation");
  if (found == std::string::npos) return "";
  const size_t start = message.rfind('\n', found);
  const size_t begin = start == std::string::npos ? 0 : start + 1;
  return message.substr(begin, message.find(',', found) - begin);
}

}  // namespace

absl::Status BeDeterministic(c10::Device device, const std::function<absl::Status()>& first) {
  if (device.is_cpu()) return first();
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  absl::Status status = first();
  const std::string none = WhatHasNone(status);
  if (none.empty()) return status;
  Say(absl::StrCat("steps may differ from run to run: ", none));
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  return first();
}

}  // namespace stowage
