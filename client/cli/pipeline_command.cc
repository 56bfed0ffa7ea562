// stowage pipeline: a plan for each stage of a pipeline, each device with a budget of its own, and where stages end.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/cells.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/json_text.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/ticking_line.h"
#include "solvers/base/text_escape.h"
#include "solvers/model/budget.h"
#include "solvers/model/field_error.h"
#include "solvers/model/problem.h"
#include "solvers/pipeline/pipeline.h"

ABSL_FLAG(int, devices, 1, "devices that the layers of the profile are spread over, in a row");
ABSL_FLAG(int, microbatches, 1,
          "microbatches of a step, each of the size that the profile was measured with");
ABSL_FLAG(int, chunks, 1,
          "stages on each device: 1 is the 1F1B schedule, more are interleaved (then microbatches "
          "must be a multiple of devices)");
ABSL_FLAG(std::string, last_layers, "",
          "where stages end: the last layer of each, numbered from 1, separated by commas; empty: "
          "they are chosen");
ABSL_FLAG(absl::Duration, transfer_time, absl::ZeroDuration(),
          "time in which an output, or its gradient, gets from one device to the next");

namespace stowage {
namespace {

struct PipelineAnswer {
  std::string name;
  PipelineRequest request;
  PipelinePlan plan;
};

// --last_layers; empty if the flag is.
absl::StatusOr<std::vector<int>> LastLayersFromFlag() {
  std::vector<int> layers;
  for (const std::string& part : PartsOf(absl::GetFlag(FLAGS_last_layers))) {
    int layer = 0;
    if (!absl::SimpleAtoi(part, &layer)) {
      return FieldError("--last_layers", absl::StrCat("\"", part, "\""), "must be a number");
    }
    layers.push_back(layer);
  }
  return layers;
}

// --budget: bytes for all devices or for each, or nothing where it is "least".
absl::StatusOr<std::vector<Bytes>> BudgetsOfDevices(int devices) {
  std::vector<Bytes> budgets;
  const std::string text = absl::GetFlag(FLAGS_budget);
  for (const std::string& part : PartsOf(text)) {
    const absl::StatusOr<Budget> budget = ParseBudget(part);
    if (!budget.ok())
      return absl::InvalidArgumentError(absl::StrCat("--", budget.status().message()));
    if (std::holds_alternative<LeastBudget>(*budget) && part == text) return budgets;
    if (!std::holds_alternative<Bytes>(*budget)) {
      return FieldError("--budget", absl::StrCat("\"", part, "\""),
                        "must be bytes, for all devices or for each, or \"least\" alone");
    }
    budgets.push_back(std::get<Bytes>(*budget));
  }
  if (budgets.empty()) return FieldError("--budget", "\"\"", "must be bytes or \"least\"");
  if (budgets.size() == 1) budgets.resize(static_cast<size_t>(devices), budgets.front());
  return budgets;
}

absl::StatusOr<PipelineAnswer> PlanFromFlags() {
  PipelineAnswer answer;
  const absl::Duration transfer = absl::GetFlag(FLAGS_transfer_time);
  if (transfer < absl::ZeroDuration()) {
    return FieldError("--transfer_time", absl::FormatDuration(transfer), "must be >= 0");
  }
  answer.request.shape = {absl::GetFlag(FLAGS_devices), absl::GetFlag(FLAGS_chunks),
                          absl::GetFlag(FLAGS_microbatches),
                          Nanos(absl::ToInt64Nanoseconds(transfer))};
  absl::Status status = CheckPipelineShape(answer.request.shape);
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("--", status.message()));
  absl::StatusOr<std::vector<int>> last_layers = LastLayersFromFlag();
  if (!last_layers.ok()) return last_layers.status();
  answer.request.last_layers = *std::move(last_layers);
  absl::StatusOr<std::vector<Bytes>> budgets = BudgetsOfDevices(answer.request.shape.devices);
  if (!budgets.ok()) return budgets.status();
  answer.request.budgets = *std::move(budgets);
  const absl::StatusOr<Profile> profile = ProfileFromFlag();
  if (!profile.ok()) return profile.status();
  answer.name = profile->name;
  const Chain* const chain = std::get_if<Chain>(&profile->problem);
  if (chain == nullptr) {
    return FieldError("--profile", absl::GetFlag(FLAGS_profile), "must be of a chain");
  }
  const absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  const StopToken stop(call->deadline);
  const TickingLine line(TerminalOrNull(), "planning the pipeline", call->deadline);
  SolveOptions options;
  options.stop = &stop;
  if (answer.request.budgets.empty()) {
    answer.request.budgets.assign(static_cast<size_t>(answer.request.shape.devices), Bytes(0));
    const absl::StatusOr<PipelinePlan> none = PlanPipeline(*chain, answer.request, options);
    if (!none.ok()) return none.status();
    answer.request.budgets.assign(answer.request.budgets.size(), none->least_equal_budget);
  }
  absl::StatusOr<PipelinePlan> plan = PlanPipeline(*chain, answer.request, options);
  if (!plan.ok()) return plan.status();
  answer.plan = *std::move(plan);
  return answer;
}

Listing StagesOf(const PipelineAnswer& answer) {
  Listing listing({{"stage", "", "stage"},
                   {"device", "", "device"},
                   {"first", "layer", "first_layer"},
                   {"last", "layer", "last_layer"},
                   {"forward", "ms", "forward_time_ns"},
                   {"backward", "ms", "backward_time_ns"},
                   {"in flight", "MiB each", "stash_bytes"},
                   {"device", "peak MiB", "device_peak_bytes"},
                   {"device", "budget MiB", "device_budget_bytes"}});
  for (size_t s = 0; s < answer.plan.stages.size(); ++s) {
    const PipelineStagePlan& stage = answer.plan.stages[s];
    const int device = answer.request.shape.DeviceOf(static_cast<int>(s));
    const Bytes peak = answer.plan.peaks[static_cast<size_t>(device)];
    const Bytes budget = answer.request.budgets[static_cast<size_t>(device)];
    const PipelineStageCosts& costs = stage.costs;
    listing.AddRow({Listing::Integer(static_cast<int64_t>(s)), Listing::Integer(device),
                    Listing::Integer(stage.first_layer), Listing::Integer(stage.last_layer),
                    Listing::Number(Milliseconds(costs.forward_time), costs.forward_time.value()),
                    Listing::Number(Milliseconds(costs.backward_time), costs.backward_time.value()),
                    Listing::Number(Mebibytes(costs.stash), costs.stash.value()),
                    Listing::Number(Mebibytes(peak), peak.value()),
                    Listing::Number(Mebibytes(budget), budget.value())});
  }
  return listing;
}

double GapOf(const PipelinePlan& plan) { return Overhead(plan.makespan, plan.lower_bound); }

std::string InfeasibleText(const PipelineAnswer& answer) {
  const PipelinePlan& plan = answer.plan;
  std::string text = absl::StrCat(
      "no plan of ", plan.schedule_class, " fits",
      plan.status == PlanStatus::kProvenInfeasible ? ": proven\n" : " that was found\n");
  if (plan.short_device >= 0) {
    absl::StrAppend(&text, "device ", plan.short_device, " has ",
                    ToString(answer.request.budgets[static_cast<size_t>(plan.short_device)]),
                    " and needs ", ToString(plan.least_budget), " (", plan.least_budget.value(),
                    " bytes)\n");
  }
  absl::StrAppend(&text, "a plan fits where every device has ", ToString(plan.least_equal_budget),
                  " (", plan.least_equal_budget.value(), " bytes)\n");
  return text;
}

std::string PipelineText(const PipelineAnswer& answer) {
  const PipelinePlan& plan = answer.plan;
  if (plan.status != PlanStatus::kFound) return InfeasibleText(answer);
  return absl::StrCat(
      StagesOf(answer).Table(), "\nstep           ", ToString(plan.makespan), ", ",
      answer.request.shape.microbatches, " microbatches, warm-up and cool-down among it\n",
      "lower bound    ", ToString(plan.lower_bound),
      plan.proven_optimal ? ": nothing of the class is faster\n"
                          : absl::StrFormat(": at most %.1f%% to gain\n", 100 * GapOf(plan)),
      "class          ", plan.schedule_class, "\n");
}

std::string PipelineJson(const PipelineAnswer& answer) {
  const PipelinePlan& plan = answer.plan;
  const bool found = plan.status == PlanStatus::kFound;
  const auto if_found = [found](const std::string& value) { return found ? value : "null"; };
  const auto unless_found = [found](Bytes bytes) {
    return found ? std::string("null") : absl::StrCat(bytes.value());
  };
  return JsonObject(
             {{"name", JsonString(answer.name)},
              {"devices", absl::StrCat(answer.request.shape.devices)},
              {"chunks", absl::StrCat(answer.request.shape.chunks)},
              {"microbatches", absl::StrCat(answer.request.shape.microbatches)},
              {"transfer_time_ns", absl::StrCat(answer.request.shape.transfer_time.value())},
              {"status", JsonString(ToString(plan.status))},
              {"schedule_class", JsonString(plan.schedule_class)},
              {"makespan_ns", if_found(absl::StrCat(plan.makespan.value()))},
              {"lower_bound_ns", if_found(absl::StrCat(plan.lower_bound.value()))},
              {"gap", if_found(JsonNumber(GapOf(plan)))},
              {"proven_optimal", JsonBool(plan.proven_optimal)},
              {"short_device", plan.short_device < 0 ? "null" : absl::StrCat(plan.short_device)},
              {"least_budget_bytes",
               plan.short_device < 0 ? "null" : unless_found(plan.least_budget)},
              {"least_equal_budget_bytes", unless_found(plan.least_equal_budget)},
              {"stages", StagesOf(answer).Json()}}) +
         "\n";
}

int RunPipeline() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<PipelineAnswer> answer = PlanFromFlags();
  if (!answer.ok()) return Fail(answer.status());
  switch (*format) {
    case Format::kText:
      std::cout << PipelineText(*answer);
      break;
    case Format::kJson:
      std::cout << PipelineJson(*answer);
      break;
    case Format::kCsv:
      std::cout << StagesOf(*answer).Csv();
      break;
  }
  return ExitCodeOf(answer->plan.status);
}

}  // namespace

Command PipelineCommand() {
  Command command{"pipeline",
                  "a plan for each stage of a pipeline, each device within a budget of its own",
                  {"profile", "devices", "microbatches", "budget", "chunks", "last_layers",
                   "transfer_time", "format", "timeout"},
                  RunPipeline,
                  {"pipeline --profile=p.json --devices=4 --microbatches=16 --budget=least",
                   "pipeline --profile=p.json --devices=2 --microbatches=8 --budget=8GiB,6GiB "
                   "--last_layers=8,12 --format=json"}};
  command.meanings = {
      {"budget",
       "memory of a device for activations, their gradients and workspaces: bytes (\"8GiB\"), one "
       "for all devices or one for each, separated by commas; or \"least\", the smallest that "
       "fits on all"}};
  command.words = {{"budget", {"least"}}};
  return command;
}

}  // namespace stowage
