#include "client/rpc/plan_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/rpc/answer_validation.h"
#include "solvers/model/problem.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;

Nanos Since(Clock::time_point start) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// Judges a plan made for the costs of another job. What was proven there is not proven here. Without
// own times the predicted time stays the one of whoever planned.
absl::Status ValidateForeign(const Profile& profile, Bytes budget, const KeyOptions& key,
                             Plan* plan) {
  Plan judged = *plan;
  const absl::Status status = ValidateAnswer(profile, budget, key, &judged);
  if (!status.ok()) return status;
  if (profile.cost_source == CostSource::kBytesOnly) {
    judged.prediction.makespan = plan->prediction.makespan;
    judged.prediction.recompute_time = plan->prediction.recompute_time;
    judged.bounds.store_all_makespan = plan->bounds.store_all_makespan;
    judged.bounds.lower_bound = plan->bounds.lower_bound;
  }
  judged.bounds.proven_optimal = judged.prediction.recomputed_forwards == 0;
  judged.bounds.least_budget = Bytes(0);
  *plan = std::move(judged);
  return absl::OkStatus();
}

// What a plan under this key is to fit in, if the job's own profile is not measured.
Bytes BytesOf(const Budget& budget, const Plan& plan) {
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  return ShareOf(std::get<ShareOfStoreAll>(budget), plan.bounds.store_all_peak);
}

// Judges a plan by structure without workspaces, see plan_client.h.
bool HoldsByShapes(const Profile& shapes, const Budget& budget, const KeyOptions& key, Plan* plan) {
  const Bytes bytes = BytesOf(budget, *plan);
  const Bytes peak = plan->prediction.peak;
  const Bytes store_all_peak = plan->bounds.store_all_peak;
  if (peak > bytes || !ValidateForeign(shapes, bytes, key, plan).ok()) return false;
  // Costs with workspaces that say less than those without are no costs of this network.
  if (peak < plan->prediction.peak || store_all_peak < plan->bounds.store_all_peak) return false;
  plan->prediction.peak = peak;
  plan->bounds.store_all_peak = store_all_peak;
  return true;
}

// What the plan's schedule takes under the job's own costs beyond what the server has predicted; 0 if it is no
// schedule for the job at all, or takes no more.
Bytes BeyondPrediction(const Profile& profile, const KeyOptions& key, const Plan& plan) {
  const auto own = Evaluator(InstanceOf(profile, key.recompute_only)).Run(plan.schedule);
  return own.ok() ? std::max(own->peak - plan.prediction.peak, Bytes(0)) : Bytes(0);
}

// What a job does for a request beside it is not taken from the request's time.
CallOptions Later(CallOptions call, Clock::time_point since) {
  if (call.has_deadline()) call.deadline += Clock::now() - since;
  return call;
}

bool IsPlain(const Plan& plan) {
  return plan.prediction.recomputed_forwards == 0 && plan.prediction.offloaded == Bytes(0);
}

bool StoreAllFits(const Profile& profile, Bytes budget) {
  const absl::StatusOr<Simulation> store_all = Instance(profile.problem).store_all();
  return store_all.ok() && store_all->peak <= budget;
}

}  // namespace

absl::StatusOr<ClientPlan> PlanClient::Plan(ProfileSource* source, const Budget& budget,
                                            const CallOptions& call) {
  Clock::time_point start = Clock::now();
  Nanos request_time;
  CallOptions rest = call;
  const bool is_least = std::holds_alternative<LeastBudget>(budget);
  if (const Profile* shapes = is_least ? nullptr : source->Shapes()) {
    rest = Later(rest, start);
    absl::StatusOr<ByShapes> asked = AskByShapes(*shapes, budget, rest);
    if (!asked.ok()) return asked.status();
    if (asked->plan) return *std::move(asked->plan);
    request_time = asked->request_time;
    if (asked->missed) return ComputeAfter(request_time, source, budget, rest);
    start = Clock::now();
  }
  const absl::StatusOr<const Profile*> structure = source->Structure();
  if (!structure.ok()) return structure.status();
  rest = Later(rest, start);
  absl::StatusOr<std::optional<ClientPlan>> cached =
      FromCache(**structure, budget, rest, &request_time);
  if (!cached.ok()) return cached.status();
  if (*cached) return **std::move(cached);
  return ComputeAfter(request_time, source, budget, rest);
}

absl::StatusOr<ClientPlan> PlanClient::ComputeAfter(Nanos request_time, ProfileSource* source,
                                                    const Budget& budget, const CallOptions& call) {
  absl::StatusOr<ClientPlan> computed = Compute(source, budget, call);
  if (computed.ok()) computed->request_time += request_time;
  return computed;
}

absl::StatusOr<PlanClient::ByShapes> PlanClient::AskByShapes(const Profile& shapes,
                                                             const Budget& budget,
                                                             const CallOptions& call) {
  ByShapes result;
  const Clock::time_point start = Clock::now();
  // The keys of larger shapes hold by the job's own workspaces, too.
  const std::vector<PlanKey> keys = KeysFor(shapes, call);
  absl::StatusOr<PlanReply> reply = connection_->GetPlan({keys[0]}, budget, Holding(keys[0], call));
  result.request_time = Since(start);
  if (absl::IsNotFound(reply.status())) {
    result.missed = keys.size() == 1;
    return result;
  }
  if (!reply.ok()) return reply.status();
  if (reply->key != keys[0] || reply->plan.status != PlanStatus::kFound || reply->profile_wanted ||
      !HoldsByShapes(shapes, budget, options_.key, &reply->plan)) {
    return result;
  }
  result.plan.emplace();
  result.plan->reply = *std::move(reply);
  result.plan->request_time = result.request_time;
  Remember(shapes, result.plan->reply.plan);
  return result;
}

absl::StatusOr<ClientPlan> PlanClient::Compute(ProfileSource* source, const Budget& budget,
                                               const CallOptions& call) {
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<const Profile*> profile = source->Full();
  if (!profile.ok()) return profile.status();
  const CallOptions rest = Later(call, start);

  // Resolved anew: a timed profile has seen more runs, and its overheads are the largest of them.
  const absl::StatusOr<Bytes> bytes = Resolve(**profile, source->BudgetNow(budget), rest);
  if (!bytes.ok()) return bytes.status();
  const Clock::time_point asked = Clock::now();
  absl::StatusOr<PlanReply> reply = connection_->ComputePlan(**profile, *bytes, Key(rest), rest);
  if (!reply.ok()) return reply.status();
  ClientPlan answer;
  answer.profiled = true;
  answer.request_time = Since(asked);
  const absl::Status status = ValidateAnswer(**profile, *bytes, options_.key, &reply->plan);
  if (!status.ok()) return status;
  answer.reply = *std::move(reply);
  Remember(**profile, answer.reply.plan);
  return answer;
}

PlanKey PlanClient::KeyOf(const Profile& profile, const CallOptions& call) {
  return MakePlanKey(profile, Key(call));
}

const KeyOptions& PlanClient::Key(const CallOptions& call) {
  if (tenant_known_ || !options_.key.tenant.empty()) return options_.key;
  // A server that cannot say is asked again the next time; its own key misses at worst.
  const absl::StatusOr<Capabilities> capabilities = connection_->GetCapabilities(call);
  if (!capabilities.ok()) return options_.key;
  options_.key.tenant = capabilities->tenant;
  tenant_known_ = true;
  return options_.key;
}

absl::StatusOr<Bytes> PlanClient::Resolve(const Profile& profile, const Budget& budget,
                                          const CallOptions& call) const {
  const StopToken stop(call.deadline);
  PlanOptions options;
  options.solver = options_.key.solver;
  options.solve.slots = options_.key.slots;
  options.solve.stop = &stop;
  options.recompute_only = options_.key.recompute_only;
  return ResolveBudget(profile, budget, options);
}

std::vector<PlanKey> PlanClient::KeysFor(const Profile& profile, const CallOptions& call) {
  constexpr size_t kMostKeys = 16;
  std::vector<PlanKey> keys = {KeyOf(profile, call)};
  std::vector<const Known*> larger;
  for (const Known& known : known_) {
    if (known.key != keys[0] && Dominates(known.problem, profile.problem)) larger.push_back(&known);
  }
  std::stable_sort(larger.begin(), larger.end(), [](const Known* a, const Known* b) {
    return a->store_all_peak < b->store_all_peak;
  });
  for (const Known* known : larger) keys.push_back(known->key);
  keys.insert(keys.end(), options_.other_keys.begin(), options_.other_keys.end());
  if (keys.size() > kMostKeys) keys.resize(kMostKeys);
  return keys;
}

CallOptions PlanClient::Holding(const PlanKey& key, const CallOptions& call) const {
  CallOptions holding = call;
  for (const Known& known : known_) {
    if (known.key == key) holding.held = known.plan;
  }
  return holding;
}

void PlanClient::Remember(const Profile& profile, const stowage::Plan& plan) {
  constexpr size_t kMostKnown = 8;
  const absl::StatusOr<Simulation> store_all = Instance(profile.problem).store_all();
  if (!store_all.ok()) return;
  Known next{MakePlanKey(profile, options_.key), profile.problem, store_all->peak,
             std::make_shared<const stowage::Plan>(plan)};
  known_.erase(std::remove_if(known_.begin(), known_.end(),
                              [&next](const Known& known) { return known.key == next.key; }),
               known_.end());
  known_.push_back(std::move(next));
  if (known_.size() > kMostKnown) known_.pop_front();
}

absl::StatusOr<std::optional<PlanReply>> PlanClient::Fitting(const std::vector<PlanKey>& keys,
                                                             const Profile& profile, Bytes budget,
                                                             const CallOptions& call,
                                                             Nanos* request_time) {
  constexpr int kMostAsked = 4;
  Bytes within = budget;
  const CallOptions asking = Holding(keys[0], call);
  for (int asked = 0; asked < kMostAsked && within > Bytes(0); ++asked) {
    const Clock::time_point start = Clock::now();
    absl::StatusOr<PlanReply> reply = connection_->GetPlan(keys, within, asking);
    *request_time += Since(start);
    if (absl::IsNotFound(reply.status())) break;
    if (!reply.ok()) return reply.status();
    // What did not fit another job's overheads may fit this one's; a plan that does not fit here is
    // no plan.
    if (reply->plan.status != PlanStatus::kFound) break;
    if (ValidateForeign(profile, budget, options_.key, &reply->plan).ok()) return *std::move(reply);
    const Bytes beyond = BeyondPrediction(profile, options_.key, reply->plan);
    if (!reply->profile_wanted || beyond == Bytes(0)) break;
    within = std::min(within - Bytes(1), budget - beyond);
  }
  return std::optional<PlanReply>();
}

absl::StatusOr<std::optional<ClientPlan>> PlanClient::FromCache(const Profile& profile,
                                                                const Budget& budget,
                                                                const CallOptions& call,
                                                                Nanos* request_time) {
  const absl::StatusOr<Bytes> bytes = Resolve(profile, budget, call);
  if (!bytes.ok()) return bytes.status();
  const std::vector<PlanKey> keys = KeysFor(profile, call);
  absl::StatusOr<std::optional<PlanReply>> reply =
      Fitting(keys, profile, *bytes, call, request_time);
  if (!reply.ok()) return reply.status();
  if (!*reply) return std::optional<ClientPlan>();
  ClientPlan answer;
  answer.for_larger = (*reply)->key != keys[0];
  // A larger shape may have to run again what this one can keep.
  if (answer.for_larger && !IsPlain((*reply)->plan) && StoreAllFits(profile, *bytes)) {
    return std::optional<ClientPlan>();
  }
  answer.reply = **std::move(reply);
  answer.request_time = *request_time;
  if (!answer.for_larger) Remember(profile, answer.reply.plan);
  return std::optional<ClientPlan>(std::move(answer));
}

}  // namespace stowage
