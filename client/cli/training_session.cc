#include "client/cli/training_session.h"

#include <ATen/Parallel.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/cli/event_log.h"
#include "client/cli/files.h"
#include "client/cli/known_profile.h"
#include "client/cli/network_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/script_flags.h"
#include "client/cli/trace_file.h"
#include "client/cli/training_commands.h"
#include "client/cli/training_device.h"
#include "client/cli/training_flags.h"
#include "client/cli/verification.h"
#include "client/cli/workload.h"
#include "client/rpc/server_flags.h"
#include "proto/otlp/otlp_exporter.h"
#include "solvers/model/field_error.h"
#include "solvers/model/problem.h"
#include "solvers/zoo/networks.h"

namespace stowage {
namespace {

std::string StepsText(int steps) { return absl::StrCat(steps, steps == 1 ? " step" : " steps"); }

// What it is about, before anything was trained.
VerificationReport Title(const Workload& workload, int steps) {
  VerificationReport report;
  report.model = workload.name;
  report.graph = workload.is_graph();
  report.batch = workload.batch.inputs[0].size(0);
  report.inputs = InputTexts(workload.batch);
  report.loss = workload.loss;
  report.device = absl::GetFlag(FLAGS_device);
  if (!workload.is_script() && NamedDecoder({report.model}).ok()) {
    report.length = absl::GetFlag(FLAGS_length);
  } else if (!workload.is_script()) {
    report.image_size = absl::GetFlag(FLAGS_image_size);
    report.classes = absl::GetFlag(FLAGS_classes);
  }
  report.seed = absl::GetFlag(FLAGS_seed);
  report.threads = at::get_num_threads();
  report.steps = steps;
  report.link = absl::GetFlag(FLAGS_link);
  report.arena = absl::GetFlag(FLAGS_arena);
  return report;
}

int NodesOf(const Problem& problem) {
  const auto* graph = std::get_if<Graph>(&problem);
  return graph != nullptr ? graph->size() : std::get<Chain>(problem).length() + 1;
}

class TrainingSession {
 public:
  TrainingSession(const Workload& workload, AgentOptions options, int steps,
                  const TrainingChecks& checks, const StepMeters& plain_meters)
      : checks_(checks),
        plain_(TrainedModelOf(workload)),
        agent_(TrainedModelOf(workload), nullptr, Watched(std::move(options))),
        verification_(&agent_, plain_.get(), &workload.batch, absl::GetFlag(FLAGS_seed), steps,
                      plain_meters),
        report_(Title(workload, steps)) {}

  absl::Status Prepare(std::optional<Profile> known) {
    report_.plans_from = agent_.connection().name();
    Say(absl::StrCat(report_.model, " as a ", report_.form(), ": training ",
                     StepsText(report_.steps), " without a budget",
                     known ? "" : ", then profiling"));
    Say(absl::StrCat("plans from ", report_.plans_from));
    const absl::Status status = verification_.Prepare(std::move(known));
    if (!status.ok()) return status;
    report_.plain = verification_.plain();
    report_.plain_spread = verification_.plain_spread();
    report_.plain_prediction = IdealTime(agent_.profile()->problem);
    report_.nodes = NodesOf(agent_.profile()->problem);
    report_.events = events_.Take();
    return absl::OkStatus();
  }

  // One of `budgets`, in their order.
  absl::Status Train(const Budget& budget, size_t budgets) {
    Say(absl::StrCat("training ", StepsText(report_.steps), " within ", ToString(budget)));
    absl::StatusOr<Verified> verified = verification_.Verify(budget);
    if (!verified.ok()) return verified.status();
    if (verified->found()) {
      const absl::Status traced = WriteTrace(agent_.measured(), report_.budgets.size(), budgets);
      if (!traced.ok()) return traced;
      // Planning here keeps no figures.
      if (checks_.report && verified->adopted.source != PlanSource::kLocal) TellServer();
      if (checks_.limit) CheckLimit(&*verified);
    }
    verified->events = events_.Take();
    report_.budgets.push_back(*std::move(verified));
    return absl::OkStatus();
  }

  VerificationReport& report() { return report_; }

 private:
  AgentOptions Watched(AgentOptions options) {
    events_.Watch(&options);
    return options;
  }

  // It runs out of memory on purpose.
  void CheckLimit(Verified* verified) {
    events_.Mute(true);
    verification_.CheckLimit(verified);
    events_.Mute(false);
  }

  // What the steps took goes into the service's figures.
  void TellServer() {
    const absl::StatusOr<ExecutionVerdict> verdict = agent_.Report();
    Say(verdict.ok() ? absl::StrCat("reported what the steps took: ", ToString(*verdict))
                     : absl::StrCat("could not report what the steps took: ",
                                    std::string(verdict.status().message())));
  }

  const TrainingChecks checks_;
  EventLog events_;
  const std::unique_ptr<TrainedModel> plain_;
  Agent agent_;
  Verification verification_;
  VerificationReport report_;
};

}  // namespace

absl::StatusOr<VerificationReport> TrainAsFlagsSay(const TrainingChecks& checks) {
  const int steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1) return FieldError("--steps", steps, "must be >= 1");
  const absl::StatusOr<std::vector<Budget>> budgets = BudgetsFromFlag();
  if (!budgets.ok()) return budgets.status();
  absl::StatusOr<AgentOptions> options = AgentOptionsFromFlags();
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::optional<TransferModel>> link = LinkFromFlag();
  if (!link.ok()) return link.status();
  absl::Status status = CheckWritable(absl::GetFlag(FLAGS_trace));
  if (!status.ok()) return status;
  absl::StatusOr<std::optional<Profile>> known = KnownProfileFromFlag();
  if (!known.ok()) return known.status();
  const absl::StatusOr<c10::Device> place = DeviceFromFlag();
  if (!place.ok()) return place.status();
  if (!place->is_cpu() && options->arena) {
    return FieldError("--arena", "true", "serves steps on the cpu alone");
  }
  const absl::StatusOr<Workload> workload = WorkloadFromFlags(*place);
  if (!workload.ok()) return workload.status();
  const absl::StatusOr<std::unique_ptr<ExecutionDevice>> device = ExecutionDeviceOn(*place, *link);
  if (!device.ok()) return device.status();
  options->device = device->get();
  const std::unique_ptr<OtlpExporter> exporter = ExporterFromEnvironment();
  options->tracer = exporter.get();

  // Of a GPU no limit can be set.
  const TrainingChecks possible{checks.limit && place->is_cpu(), checks.report};
  const StepMeters meters(MeterOf(*options), options->device);
  TrainingSession session(*workload, *std::move(options), steps, possible, meters);
  status = session.Prepare(*std::move(known));
  if (!status.ok()) return status;
  for (size_t i = 0; status.ok() && i < budgets->size(); ++i) {
    status = session.Train((*budgets)[i], budgets->size());
  }
  session.report().ended = std::move(status);
  return std::move(session.report());
}

ExitCode EndOf(const VerificationReport& report) {
  if (!report.ended.ok()) return Fail(report.ended);
  if (!report.equal()) return kExitFailure;
  return report.all_found() ? kExitOk : kExitInfeasible;
}

}  // namespace stowage
