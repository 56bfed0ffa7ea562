#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/say.h"
#include "client/rpc/connect.h"
#include "client/rpc/job_name.h"
#include "client/rpc/server_flags.h"
#include "proto/codec/codec.h"
#include "solvers/plan/text.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

absl::StatusOr<PlanReply> Ask() {
  absl::StatusOr<Profile> profile = ProfileFromFlag();
  if (!profile.ok()) return profile.status();
  absl::StatusOr<Budget> budget = ParseBudget(absl::GetFlag(FLAGS_budget));
  if (!budget.ok()) return budget.status();
  absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  KeyOptions key;
  key.solver = absl::GetFlag(FLAGS_solver);
  key.slots = absl::GetFlag(FLAGS_slots);
  key.recompute_only = absl::GetFlag(FLAGS_recompute_only);
  call->job = JobName();

  const StopToken stop(call->deadline);
  PlanOptions options;
  options.solver = key.solver;
  options.solve.slots = key.slots;
  options.solve.stop = &stop;
  options.recompute_only = key.recompute_only;
  const absl::StatusOr<Bytes> bytes = ResolveBudget(*profile, *budget, options);
  if (!bytes.ok()) return bytes.status();
  // Connections return nothing that the referee has not accepted here.
  return Connect(ServerFromFlags(), Say)->ComputePlan(*profile, *bytes, key, *call);
}

int Run() {
  const absl::StatusOr<Format> format = FormatFromFlag({Format::kText, Format::kJson});
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<PlanReply> reply = Ask();
  if (!reply.ok()) return Fail(reply.status());
  if (*format == Format::kJson) {
    std::cout << ToJson(ToProto(reply->plan));
  } else {
    std::cout << PlanText(reply->plan) << "  source         " << ToString(reply->source) << "\n";
    if (reply->plan.status == PlanStatus::kFound) {
      std::cout << "  schedule\n" << ScheduleText(reply->plan.schedule);
    }
  }
  return ExitCodeOf(reply->plan.status);
}

}  // namespace

Command PlanCommand() {
  return {"plan", "plan a profile within a budget, with a server or in this process",
          WithServerFlags(
              {"profile", "budget", "solver", "slots", "recompute_only", "timeout", "format"}),
          Run};
}

}  // namespace stowage
