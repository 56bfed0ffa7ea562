// Arbitrary bytes as answers of a server, through the client's conversions and its evaluator: INTERNAL,
// or figures in their ranges, lists in their order and plans that hold on the caller's own chain.
// The first byte says which RPC answers; of WatchPlan the rest is messages, each after a byte with
// its length.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "client/rpc/answer_validation.h"
#include "client/rpc/grpc_messages.h"
#include "client/rpc/watch_answer.h"
#include "solvers/schedule/evaluator.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

constexpr Bytes kBudget(60);

// Three stages whose plans within 60 bytes recompute.
const Profile& Asked() {
  static const auto* const kProfile = [] {
    ChainSpec spec;
    spec.input = Bytes(10);
    Stage stage;
    stage.forward_time = Nanos(3);
    stage.backward_time = Nanos(5);
    stage.output = Bytes(10);
    stage.saved = Bytes(20);
    spec.stages = {stage, stage, stage};
    return new Profile{"asked", Device(), *Chain::Create(spec)};
  }();
  return *kProfile;
}

void CheckValidated(const Plan& plan) {
  Require(plan.budget == kBudget, "the budget is the caller's");
  if (plan.status != PlanStatus::kFound) return;
  const auto run = Evaluator(std::get<Chain>(Asked().problem)).Run(plan.schedule);
  Require(run.ok(), "the schedule is valid", run.status().ToString());
  Require(run->peak == plan.prediction.peak && run->makespan == plan.prediction.makespan,
          "the prediction is the caller's");
  Require(run->peak <= kBudget, "the plan fits");
  Require(plan.bounds.lower_bound <= run->makespan, "the bound is one");
}

void CheckValue(PlanReply reply) {
  const absl::Status validated = ValidateAnswer(Asked(), kBudget, {}, &reply.plan);
  Require(validated.ok() || absl::IsInternal(validated), "refused as the server's fault",
          validated.ToString());
  if (validated.ok()) CheckValidated(reply.plan);
}

void CheckValue(const FrontierReply& reply) {
  const FrontierReply::Point* before = nullptr;
  for (const FrontierReply::Point& point : reply.points) {
    Require(Bytes(0) <= point.peak && point.peak <= point.budget, "a peak fits its budget");
    Require(Nanos(0) <= point.makespan, "no time is negative");
    Require(!before || (before->budget < point.budget && before->makespan > point.makespan),
            "more budget is faster");
    before = &point;
  }
}

void CheckValue(const BatchReply& reply) {
  std::set<int64_t> fit;
  int64_t before = 0;
  for (const BatchReply::Point& point : reply.points) {
    Require(point.batch_size > before, "batches rise");
    before = point.batch_size;
    if (point.fits) fit.insert(point.batch_size);
    Require(std::isfinite(point.samples_per_second), "a rate is a number");
  }
  Require(reply.largest == (fit.empty() ? 0 : *fit.rbegin()), "the largest is the largest");
  Require(reply.fastest == 0 || fit.count(reply.fastest) == 1, "the fastest fits");
}

void CheckValue(const PlanPage& page) {
  for (const ListedPlan& plan : page.plans) {
    Require(plan.revision.budget >= Bytes(0) && plan.peak >= Bytes(0) && plan.reports >= 0 &&
                plan.makespan >= Nanos(0),
            "no figure is negative");
    Require(std::isfinite(plan.time_ratio) && std::isfinite(plan.peak_ratio), "ratios are numbers");
  }
}

void CheckValue(const Capabilities& told) {
  Require(told.key_encoding_version >= 1 && told.max_message >= Bytes(0) && told.max_stages >= 0 &&
              told.max_vertices >= 0,
          "limits are sensible");
}

void CheckValue(ExecutionVerdict verdict) {
  Require(ToString(verdict) != std::string("unknown"), "a verdict has a name");
}

template <class Response>
void Take(const std::string& wire) {
  Response response;
  if (!response.ParseFromString(wire)) return;
  const auto value = ReadResponse(response);
  Require(value.ok() || absl::IsInternal(value.status()), "refused as the server's fault",
          value.status().ToString());
  if (value.ok()) CheckValue(*value);
}

// Of messages until one is refused, as of a stream.
void Watch(const std::string& wire) {
  const Budget budget = kBudget;
  const KeyOptions options;
  double share = 0;
  const ProgressCallback progress = [&share](const PlanProgress& so_far) {
    Require(so_far.share >= share && so_far.share <= 1.0, "progress rises to 1");
    share = so_far.share;
    if (so_far.best != nullptr) CheckValidated(*so_far.best);
  };
  WatchAnswer answer(Asked(), budget, options, progress);
  absl::Status taken;
  for (size_t at = 0; at < wire.size() && taken.ok();) {
    const size_t length = static_cast<uint8_t>(wire[at]);
    v1::WatchPlanResponse message;
    if (!message.ParseFromString(wire.substr(at + 1, length))) return;
    at += 1 + length;
    taken = answer.Take(message);
    Require(taken.ok() || absl::IsInternal(taken), "refused as the server's fault",
            taken.ToString());
  }
  if (!taken.ok()) return;
  const absl::StatusOr<PlanReply> reply = answer.Finish();
  Require(reply.ok() || absl::IsInternal(reply.status()), "an end too soon is the server's fault");
  if (reply.ok()) CheckValidated(reply->plan);
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  if (size == 0) return 0;
  static constexpr void (*kTakes[])(const std::string&) = {
      Take<v1::GetPlanResponse>,         Take<v1::ComputePlanResponse>,
      Take<v1::GetFrontierResponse>,     Take<v1::FitBatchResponse>,
      Take<v1::ReportExecutionResponse>, Take<v1::ListPlansResponse>,
      Take<v1::GetCapabilitiesResponse>, Watch};
  kTakes[data[0] % std::size(kTakes)](
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
