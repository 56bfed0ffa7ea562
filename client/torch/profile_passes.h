// The passes over a model that its profile is made of, whatever its shape.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PASSES_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PASSES_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/torch/profile_options.h"

namespace stowage {

// Passes of one model, each with a sample of every stage or node.
template <class Sample>
using Passes = std::vector<std::vector<Sample>>;

inline absl::Status CheckPasses(const ProfileOptions& options) {
  if (options.warmup >= 0 && options.repeats >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("warmup must be >= 0 and repeats >= 1, not ",
                                                 options.warmup, " and ", options.repeats));
}

// The passes that count, each made by `run_pass(done)`, which calls `done` so many times. A pass goes over
// the whole model, so that the repeats of one stage lie as far apart as they can.
template <class Sample, class RunPass>
absl::StatusOr<Passes<Sample>> RunPasses(const ProfileOptions& options, int calls_of_done,
                                         const RunPass& run_pass) {
  const int counted = options.bytes_only ? 1 : options.repeats;
  const double total = static_cast<double>(calls_of_done) * (options.warmup + counted);
  int calls = 0;
  const std::function<void()> done = [&] {
    ++calls;
    if (options.progress) options.progress(calls / total);
  };
  Passes<Sample> passes;
  for (int i = 0; i < options.warmup + counted; ++i) {
    absl::StatusOr<std::vector<Sample>> pass = run_pass(done);
    if (!pass.ok()) return pass.status();
    if (i >= options.warmup) passes.push_back(*std::move(pass));
  }
  return passes;
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PASSES_H_
