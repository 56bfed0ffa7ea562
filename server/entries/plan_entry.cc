#include "server/entries/plan_entry.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

size_t ChargeOf(const Chain& chain) {
  size_t bytes = sizeof(Chain) + chain.name().capacity();
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    bytes += sizeof(Stage) + stage.name.capacity() + stage.op_kind.capacity() +
             stage.saved_tensors.capacity() * sizeof(Bytes);
  }
  return bytes;
}

size_t ChargeOf(const Graph& graph) {
  size_t bytes = sizeof(Graph) + graph.name().capacity();
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    bytes += sizeof(Vertex) + sizeof(int) + v.name.capacity() + v.op_kind.capacity() +
             v.inputs.capacity() * sizeof(GraphInput);
  }
  return bytes;
}

size_t ChargeOf(const Problem& problem) {
  return std::visit([](const auto& kind) { return ChargeOf(kind); }, problem);
}

size_t ChargeOf(const Frontier& frontier) {
  size_t bytes = sizeof(Frontier);
  for (const Frontier::Point& point : frontier.points()) {
    bytes += sizeof(point) + static_cast<size_t>(point.schedule.bytes());
  }
  return bytes;
}

size_t ChargeOf(const Plan& plan) {
  return sizeof(Plan) + plan.schedule.capacity() * sizeof(Instruction) +
         plan.explanation.capacity() + plan.bounds.schedule_class.capacity() +
         plan.provenance.solver.capacity() + plan.provenance.solver_version.capacity();
}

// Histories: those below kFirstTimedHistory were drawn at random by versions before; of the others, a
// unit of time since 2026 and a number drawn within it. Below 2^33, so that generations are below 2^53.
constexpr int64_t kFirstTimedHistory = int64_t{1} << 32;
constexpr int64_t kLastHistory = (int64_t{1} << 33) - 1;
constexpr int64_t kHistoriesPerUnit = int64_t{1} << 11;
constexpr int64_t kSecondsPerUnit = 1024;
constexpr int64_t kUnitsSince = 1767225600;  // seconds since 1970 at the beginning of 2026

int64_t SecondsNow() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::max<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count(), 0);
}

// Never falls while the process lives, whatever is done to the clock.
int64_t UnitNow() {
  static std::atomic<int64_t> latest{0};
  const int64_t now = std::max<int64_t>(SecondsNow() - kUnitsSince, 0) / kSecondsPerUnit;
  int64_t seen = latest;
  while (seen < now && !latest.compare_exchange_weak(seen, now)) {
  }
  return std::max(seen, now);
}

// A pinned one is somebody's word.
std::shared_ptr<const PlanEntry> WithoutOldestPlans(PlanEntry entry, Bytes capacity) {
  while (entry.plans.size() > 1 && stowage::ChargeOf(entry) > capacity) {
    const auto newest = std::prev(entry.plans.end());
    const auto oldest = std::find_if(entry.plans.begin(), newest,
                                     [](const StoredPlan& stored) { return !stored.pinned; });
    if (oldest == newest) break;
    entry.plans.erase(oldest);
  }
  return std::make_shared<const PlanEntry>(std::move(entry));
}

}  // namespace

int64_t FirstGeneration(int64_t after) {
  thread_local std::random_device random;
  const int64_t drawn = int64_t{random()} % kHistoriesPerUnit;
  const int64_t by_time = kFirstTimedHistory + UnitNow() * kHistoriesPerUnit + drawn;
  const int64_t next = after / kChangesPerHistory + 1 + drawn;
  return std::min(std::max(by_time, next), kLastHistory) * kChangesPerHistory + 1;
}

int64_t LastGenerationByNow(int64_t known) {
  const int64_t by_time = kFirstTimedHistory + (UnitNow() + 2) * kHistoriesPerUnit - 1;
  const int64_t next = known / kChangesPerHistory + kHistoriesPerUnit;
  return (std::min(std::max(by_time, next), kLastHistory) + 1) * kChangesPerHistory - 1;
}

std::optional<int64_t> BegunAt(int64_t generation) {
  const int64_t history = generation / kChangesPerHistory - kFirstTimedHistory;
  if (history < 0) return std::nullopt;
  return kUnitsSince + history / kHistoriesPerUnit * kSecondsPerUnit;
}

void BecomeGeneration(int64_t generation, PlanEntry* entry) {
  entry->generation = generation;
  entry->updated_s = SecondsNow();
}

absl::Status StaleGenerationError() {
  return absl::AbortedError("the entry has changed since it was read");
}

Bytes ChargeOf(const Instance& costs) {
  constexpr size_t kShared = sizeof(Problem) + sizeof(Simulation);
  return Bytes(static_cast<int64_t>(sizeof(Instance) + kShared + ChargeOf(costs.problem())));
}

Bytes ChargeOf(const PlanEntry& entry) {
  // Nodes of a list, a hash table and two sets, control block and allocator headers of one entry.
  constexpr size_t kBookkeeping = 384;
  size_t bytes = sizeof(PlanEntry) + kBookkeeping + entry.canonical.capacity();
  if (entry.reference) bytes += ChargeOf(entry.reference->problem());
  for (const StoredPlan& stored : entry.plans) bytes += sizeof(stored) + ChargeOf(*stored.plan);
  for (const CostSample& sample : entry.samples) {
    bytes += sizeof(sample) + ChargeOf(sample.costs->problem());
  }
  bytes += entry.reports.capacity() * sizeof(ReportSample);
  if (entry.frontier) bytes += ChargeOf(*entry.frontier);
  bytes += entry.tenant.capacity() + entry.name.capacity();
  return Bytes(static_cast<int64_t>(bytes));
}

absl::StatusOr<ChargedEntry> FitTo(Bytes capacity, std::shared_ptr<const PlanEntry> entry) {
  Bytes charge = ChargeOf(*entry);
  if (charge > capacity && entry->plans.size() > 1) {
    entry = WithoutOldestPlans(*entry, capacity);
    charge = ChargeOf(*entry);
  }
  if (charge <= capacity) return ChargedEntry{std::move(entry), charge};
  return absl::ResourceExhaustedError(absl::StrCat(
      "an entry of ", charge.value(), " bytes is over the limit of ", capacity.value(), " bytes"));
}

}  // namespace stowage
