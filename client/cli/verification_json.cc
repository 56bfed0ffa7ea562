#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/json_text.h"
#include "client/cli/verification_text.h"

namespace stowage {
namespace {

std::string Count(int64_t value) { return absl::StrCat(value); }

// What a network has no such size of is 0.
std::string SizeOrNull(int64_t size) { return size > 0 ? Count(size) : "null"; }

std::string JsonOf(const StepReport& step) {
  return JsonObject({{"step_time_ns", Count(step.wall_time.Get().value())},
                     {"peak_bytes", Count(step.peak.value())},
                     {"forwards", Count(step.forwards)},
                     {"recomputed_forwards", Count(step.recomputed_forwards)},
                     {"offloaded_bytes", Count(step.offloaded.value())},
                     {"prefetched_bytes", Count(step.prefetched.value())},
                     {"host_peak_bytes", Count(step.host_peak.value())},
                     {"loss", JsonNumber(step.loss.Get())}});
}

std::string JsonOf(const std::vector<StepReport>& steps) {
  std::vector<std::string> values;
  for (const StepReport& step : steps) values.push_back(JsonOf(step));
  return JsonArray(values);
}

std::string JsonOf(const std::vector<AgentEvent>& events) {
  std::vector<std::string> values;
  for (const AgentEvent& event : events) {
    values.push_back(
        JsonObject({{"kind", JsonString(KindOf(event))}, {"text", JsonString(ToString(event))}}));
  }
  return JsonArray(values);
}

std::string JsonOf(const std::vector<std::string>& texts) {
  std::vector<std::string> values;
  for (const std::string& text : texts) values.push_back(JsonString(text));
  return JsonArray(values);
}

std::string TimeAndPeak(Nanos time, Bytes peak) {
  return JsonObject({{"step_time_ns", Count(time.value())}, {"peak_bytes", Count(peak.value())}});
}

std::string PlannedAndExecuted(int64_t planned, int64_t executed) {
  return JsonObject({{"planned", Count(planned)}, {"executed", Count(executed)}});
}

std::string Reserved(const StepMemory& memory) {
  return JsonObject({{"peak_bytes", Count(memory.reserved_peak.value())},
                     {"served_from_region", JsonBool(memory.served)},
                     {"region_bytes", Count(memory.extent.value())},
                     {"fragmentation_bytes", Count(memory.fragmentation.value())}});
}

std::string JsonOf(const Equality& equal) {
  return JsonObject({{"loss", JsonBool(equal.loss)},
                     {"gradients", JsonBool(equal.gradients)},
                     {"parameters", JsonBool(equal.parameters)},
                     {"buffers", JsonBool(equal.buffers)},
                     {"random_state", JsonBool(equal.random)}});
}

std::string JsonOf(const Distance& spread) {
  return JsonObject(
      {{"loss", absl::StrCat(spread.loss)}, {"parameters", absl::StrCat(spread.parameters)}});
}

// What is known of a budget with a plan alone, in the order of JsonOf.
constexpr const char* kOfFoundPlans[] = {"plan",
                                         "predicted",
                                         "measured",
                                         "reserved",
                                         "recomputed_forwards",
                                         "transfers",
                                         "offloaded_bytes",
                                         "equal",
                                         "fails_and_mends_64_bytes_below"};

JsonFields FoundFields(const Verified& one) {
  const Simulation& predicted = one.adopted.plan.prediction;
  const StepReport& first = one.run.steps.front();
  return {
      {"plan", JsonString(one.adopted.digest.ToHex())},
      {"predicted", TimeAndPeak(predicted.makespan, predicted.peak)},
      {"measured", TimeAndPeak(one.run.median_time(), one.run.peak())},
      {"reserved", Reserved(one.memory)},
      {"recomputed_forwards",
       PlannedAndExecuted(predicted.recomputed_forwards, first.recomputed_forwards)},
      {"transfers", PlannedAndExecuted(one.planned_transfers, one.executed_transfers)},
      {"offloaded_bytes", PlannedAndExecuted(predicted.offloaded.value(), first.offloaded.value())},
      {"equal", JsonOf(one.equal)},
      {"fails_and_mends_64_bytes_below", one.limit_held ? JsonBool(*one.limit_held) : "null"}};
}

JsonFields NothingFoundFields() {
  JsonFields fields;
  for (const char* name : kOfFoundPlans) fields.emplace_back(name, "null");
  return fields;
}

std::string JsonOf(const Verified& one) {
  const Plan& plan = one.adopted.plan;
  JsonFields fields = {{"budget", JsonString(ToString(one.budget))},
                       {"budget_bytes", Count(plan.budget.value())},
                       {"status", JsonString(ToString(plan.status))},
                       {"source", JsonString(ToString(one.adopted.source))},
                       {"request_time_ns", Count(one.adopted.request_time.value())},
                       {"solver", JsonString(plan.provenance.solver)}};
  const JsonFields more = one.found() ? FoundFields(one) : NothingFoundFields();
  fields.insert(fields.end(), more.begin(), more.end());
  fields.emplace_back("steps", JsonOf(one.run.steps));
  fields.emplace_back("faults", JsonOf(one.faults));
  fields.emplace_back("events", JsonOf(one.events));
  return JsonObject(fields);
}

}  // namespace

std::string ToJson(const VerificationReport& report) {
  std::vector<std::string> budgets;
  for (const Verified& one : report.budgets) budgets.push_back(JsonOf(one));
  const std::string plain =
      JsonObject({{"predicted_step_time_ns", Count(report.plain_prediction.value())},
                  {"step_time_ns", Count(report.plain.median_time().value())},
                  {"peak_bytes", Count(report.plain.peak().value())},
                  {"spread", report.plain_spread ? JsonOf(*report.plain_spread) : "null"},
                  {"steps", JsonOf(report.plain.steps)}});
  const std::string ended =
      report.ended.ok() ? "null" : JsonString(std::string(report.ended.message()));
  return absl::StrCat(JsonObject({{"model", JsonString(report.model)},
                                  {"form", JsonString(report.form())},
                                  {"nodes", Count(report.nodes)},
                                  {"batch", Count(report.batch)},
                                  {"inputs", JsonOf(report.inputs)},
                                  {"loss", JsonString(report.loss)},
                                  {"device", JsonString(report.device)},
                                  {"image_size", SizeOrNull(report.image_size)},
                                  {"classes", SizeOrNull(report.classes)},
                                  {"length", SizeOrNull(report.length)},
                                  {"seed", absl::StrCat(report.seed)},
                                  {"threads", Count(report.threads)},
                                  {"steps", Count(report.steps)},
                                  {"link", JsonString(report.link)},
                                  {"arena", JsonBool(report.arena)},
                                  {"plans_from", JsonString(report.plans_from)},
                                  {"plain", plain},
                                  {"events", JsonOf(report.events)},
                                  {"budgets", JsonArray(budgets)},
                                  {"ended_by", ended},
                                  {"equal", JsonBool(report.equal())}}),
                      "\n");
}

}  // namespace stowage
