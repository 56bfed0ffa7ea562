#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/agent/trained_model.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/known_profile.h"
#include "client/cli/network_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/trace_file.h"
#include "client/cli/training_flags.h"
#include "client/cli/verification.h"
#include "client/cli/verification_text.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

std::unique_ptr<TrainedModel> TrainedModelOf(const AnyWorkload& workload) {
  return std::visit([](const auto& model) { return MakeTrainedModel(&model); }, workload.model);
}

absl::StatusOr<VerificationReport> VerifyAll(const AnyWorkload& workload, AgentOptions options,
                                             const std::vector<Budget>& budgets, int steps,
                                             std::optional<Profile> known) {
  const std::unique_ptr<TrainedModel> plain = TrainedModelOf(workload);
  Agent agent(TrainedModelOf(workload), nullptr, std::move(options));
  Verification verification(&agent, plain.get(), &workload.sample, absl::GetFlag(FLAGS_seed),
                            steps);
  VerificationReport report;
  report.model = absl::GetFlag(FLAGS_model);
  report.graph = std::holds_alternative<GraphModel>(workload.model);
  report.steps = steps;
  Say(absl::StrCat("training plain", known ? "" : ", then profiling", "; plans from ",
                   agent.connection().name()));
  const absl::Status status = verification.Prepare(std::move(known));
  if (!status.ok()) return status;
  report.plain = verification.plain();
  for (const Budget& budget : budgets) {
    Say(absl::StrCat("planning and training within ", ToString(budget)));
    absl::StatusOr<Verified> verified = verification.Verify(budget);
    if (!verified.ok()) return verified.status();
    const absl::Status traced =
        verified->found() ? WriteTrace(agent.measured(), report.budgets.size(), budgets.size())
                          : absl::OkStatus();
    if (!traced.ok()) return traced;
    report.budgets.push_back(*std::move(verified));
  }
  return report;
}

int Run() {
  const int steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1) return Fail(FieldError("--steps", steps, "must be >= 1"));
  const absl::StatusOr<Format> format = FormatFromFlag({Format::kText, Format::kJson});
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<std::vector<Budget>> budgets = BudgetsFromFlag();
  if (!budgets.ok()) return Fail(budgets.status());
  absl::StatusOr<AgentOptions> options = AgentOptionsFromFlags();
  if (!options.ok()) return Fail(options.status());
  const absl::StatusOr<std::optional<TransferModel>> link = LinkFromFlag();
  if (!link.ok()) return Fail(link.status());
  absl::StatusOr<std::optional<Profile>> known = KnownProfileFromFlag();
  if (!known.ok()) return Fail(known.status());
  const absl::StatusOr<AnyWorkload> workload = AnyWorkloadFromFlags();
  if (!workload.ok()) return Fail(workload.status());
  const absl::StatusOr<std::unique_ptr<SimulatedDevice>> device = DeviceWith(*link);
  if (!device.ok()) return Fail(device.status());
  options->device = device->get();
  const absl::StatusOr<VerificationReport> report =
      VerifyAll(*workload, *options, *budgets, steps, *std::move(known));
  if (!report.ok()) return Fail(report.status());
  std::cout << (*format == Format::kJson ? ToJson(*report) : ToText(*report)) << std::flush;
  if (!report->equal()) return kExitFailure;
  return report->all_found() ? kExitOk : kExitInfeasible;
}

}  // namespace

Command VerifyCommand() {
  return {"verify",
          "prove that training by plans is plain training, bit for bit",
          WithServerFlags({"model", "graph", "batch", "image_size", "classes", "seed", "threads",
                           "repeats", "profile", "steps", "budgets", "solver", "slots", "link",
                           "timeout", "format", "arena", "trace"}),
          Run,
          {"verify --model=resnet18 --image_size=64 --budgets=80%,least",
           "verify --model=resnet18 --image_size=64 --graph --budgets=95% --format=json"}};
}

}  // namespace stowage
