#include <memory>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/agent/trained_model.h"
#include "client/cli/delivery.h"
#include "client/cli/deterministic_mode.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_text.h"
#include "client/cli/progress_line.h"
#include "client/cli/training_commands.h"
#include "client/cli/training_device.h"
#include "client/cli/training_flags.h"
#include "client/cli/training_session.h"
#include "client/cli/workload.h"
#include "client/torch/profile/profile_options.h"
#include "proto/codec/codec.h"

namespace stowage {
namespace {

absl::StatusOr<Profile> Measure(const Workload& workload, ExecutionDevice* device,
                                ProfileReport* report) {
  ProgressLine line(TerminalOrNull(), absl::StrCat("profiling ", workload.name));
  ProfileOptions options;
  options.repeats = absl::GetFlag(FLAGS_repeats);
  options.calibrate = absl::GetFlag(FLAGS_calibrate);
  options.progress = [&line](double share) { line.Show(share); };
  options.report = report;
  options.device = device;
  return TrainedModelOf(workload)->Measure(workload.batch, options);
}

}  // namespace

int RunProfile() {
  absl::Status status = CheckRepeats();
  if (status.ok()) status = CheckWritable(absl::GetFlag(FLAGS_out));
  if (!status.ok()) return Fail(status);
  const absl::StatusOr<c10::Device> place = DeviceFromFlag();
  if (!place.ok()) return Fail(place.status());
  const absl::StatusOr<Workload> workload = WorkloadFromFlags(*place);
  if (!workload.ok()) return Fail(workload.status());
  const absl::StatusOr<std::unique_ptr<ExecutionDevice>> device =
      ExecutionDeviceOn(*place, /*link=*/std::nullopt);
  if (!device.ok()) return Fail(device.status());
  ProfileReport report;
  absl::StatusOr<Profile> profile = absl::UnknownError("");
  status = BeDeterministic(*place, [&] {
    profile = Measure(*workload, device->get(), &report);
    return profile.status();
  });
  if (!status.ok()) return Fail(status);

  const absl::Status delivered = Deliver(ToJson(ToProto(*profile)), ProfileText(*profile, report));
  return delivered.ok() ? kExitOk : Fail(delivered);
}

}  // namespace stowage
