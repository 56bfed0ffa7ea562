#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/flags.h"
#include "client/torch/chain_profiler.h"
#include "proto/codec/codec.h"

namespace stowage {
namespace {

int Run() {
  absl::StatusOr<Workload> workload = WorkloadFromFlags();
  if (!workload.ok()) return Fail(workload.status());
  ProfileOptions options;
  options.repeats = absl::GetFlag(FLAGS_repeats);
  const absl::StatusOr<Profile> profile =
      ProfileChain(workload->model, workload->sample.input, workload->sample.target, options);
  if (!profile.ok()) return Fail(profile.status());

  const std::string json = ToJson(ToProto(*profile));
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    std::cout << json;
    return kExitOk;
  }
  const absl::Status status = WriteFile(out, json);
  if (!status.ok()) return Fail(status);
  const Chain& chain = std::get<Chain>(profile->problem);
  Say(absl::StrFormat("%s: %d stages, %s per step, written to %s", profile->name, chain.length(),
                      ToString(chain.ideal_time()), out));
  return kExitOk;
}

}  // namespace

Command ProfileCommand() {
  return {"profile",
          "measure what every stage of a network costs in time and bytes",
          {"model", "batch", "image_size", "classes", "seed", "threads", "repeats", "out"},
          Run};
}

}  // namespace stowage
