// What ComputePlan takes and gives.
#ifndef STOWAGE_SERVER_SERVICE_COMPUTE_PLAN_H_
#define STOWAGE_SERVER_SERVICE_COMPUTE_PLAN_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/runtime/byte_budget.h"
#include "server/service/plan_cache.h"
#include "solvers/base/tracer.h"
#include "solvers/batch/fit_batch.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/plan.h"

namespace stowage {

struct ComputeRequest {
  Profile profile;
  Budget budget;
  KeyOptions options;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::string job;       // who asks; empty: nobody in particular
  std::string identity;  // as the server knows it; empty: it does not
  // What the request counts as while it is open; may be null. Planning resizes it to what it keeps, and
  // holds it for as long.
  std::shared_ptr<ByteBudget::Hold> held;
  TraceScope trace;  // of the call
};

struct BatchRequest {
  std::shared_ptr<const BatchModel> model;
  Bytes budget;  // what the device has left for activations
  int64_t max_batch = 65536;
};

enum class AnswerSource {
  kCache,
  kSolved,  // for this request
  kShared,  // for an identical request that came earlier
};

// What a call asks for.
enum class Asked { kPlan, kFrontier, kBatches };

struct ComputeAnswer {
  Plan plan;
  PlanKey key;
  AnswerSource source = AnswerSource::kCache;
  // Instead of a plan, where that was asked for.
  std::shared_ptr<const Frontier> frontier;
  std::shared_ptr<const BatchFit> batches;
};

// Of a solve that goes on.
struct PlanUpdate {
  double progress = 0;       // in [0, 1]
  std::optional<Plan> plan;  // the best so far under the caller's costs, if it is news
  PlanKey key;               // of what is solved
};

// Where it throws bad_alloc before it has handed the answer over, it is called once more, with
// RESOURCE_EXHAUSTED, OUT_OF_MEMORY.
using ComputeCallback = std::function<void(absl::StatusOr<ComputeAnswer>)>;
using CachedPlanCallback = std::function<void(absl::StatusOr<CachedPlan>)>;

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_COMPUTE_PLAN_H_
