#include "server/metrics/prometheus_families.h"

namespace stowage {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using Buckets = prometheus::Histogram::BucketBoundaries;

constexpr std::array<const char*, kStatusCodeCount> kCodeNames = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

const char* Type(Rpc rpc) { return rpc == Rpc::kWatchPlan ? "server_stream" : "unary"; }

const Buckets& CallSeconds() {
  static const Buckets* const kBuckets =
      new Buckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                  0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
  return *kBuckets;
}

}  // namespace

PrometheusMetrics::Families::Families(const std::vector<std::string>& solver_names,
                                      const std::string& version)
    : registry(std::make_shared<prometheus::Registry>()) {
  AddRpcs();
  AddCache();
  AddPlans();
  AddSolvers(solver_names);
  flights_joined =
      Counter("stowage_flight_joins_total",
              "Requests that waited for a solve that an identical request had started.");
  queue_jobs = Gauge("stowage_queue_jobs", "Solves that wait for a solver thread.");
  queue_refusals =
      Counter("stowage_queue_refusals_total",
              "Requests refused because the queue was full or too many calls were open.");
  BuildGauge()
      .Name("stowage_build_info")
      .Help("Always 1; the labels say which build runs.")
      .Register(*registry)
      .Add({{"version", version}})
      .Set(1);
}

prometheus::Counter* PrometheusMetrics::Families::Counter(const std::string& name,
                                                          const std::string& help) {
  return &BuildCounter().Name(name).Help(help).Register(*registry).Add({});
}

prometheus::Gauge* PrometheusMetrics::Families::Gauge(const std::string& name,
                                                      const std::string& help) {
  return &BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

void PrometheusMetrics::Families::AddRpcs() {
  auto& started = BuildCounter()
                      .Name("grpc_server_started_total")
                      .Help("RPCs started on the server.")
                      .Register(*registry);
  auto& handled = BuildCounter()
                      .Name("grpc_server_handled_total")
                      .Help("RPCs completed on the server, by status code.")
                      .Register(*registry);
  auto& seconds = BuildHistogram()
                      .Name("grpc_server_handling_seconds")
                      .Help("Time from the start of an RPC to its status.")
                      .Register(*registry);
  for (size_t i = 0; i < kRpcCount; ++i) {
    const Rpc rpc = static_cast<Rpc>(i);
    prometheus::Labels labels = {{"grpc_service", "stowage.v1.PlanService"},
                                 {"grpc_method", ToString(rpc)},
                                 {"grpc_type", Type(rpc)}};
    rpcs[i].started = &started.Add(labels);
    rpcs[i].seconds = &seconds.Add(labels, CallSeconds());
    for (size_t code = 0; code < kStatusCodeCount; ++code) {
      labels["grpc_code"] = kCodeNames[code];
      rpcs[i].handled[code] = &handled.Add(labels);
    }
  }
}

void PrometheusMetrics::Families::AddCache() {
  cache_hits = Counter("stowage_cache_hits_total", "Lookups of a key that found an entry.");
  cache_misses = Counter("stowage_cache_misses_total", "Lookups of a key that found no entry.");
  cache_evictions =
      Counter("stowage_cache_evictions_total", "Entries dropped to stay within the limit.");
  cache_refusals = Counter("stowage_cache_refusals_total",
                           "Entries not cached because even one plan of them is over the limit.");
  cache_entries = Gauge("stowage_cache_entries", "Entries in the plan cache.");
  cache_bytes = Gauge("stowage_cache_bytes", "Bytes charged for the entries in the plan cache.");
}

void PrometheusMetrics::Families::AddPlans() {
  auto& lookups = BuildCounter()
                      .Name("stowage_plan_lookups_total")
                      .Help("Searches for a cached plan, by result.")
                      .Register(*registry);
  for (size_t i = 0; i < kPlanLookupCount; ++i) {
    plan_lookups[i] = &lookups.Add({{"result", ToString(static_cast<PlanLookup>(i))}});
  }
  plans_refused =
      Counter("stowage_plans_refused_total",
              "Cached or shared plans that the referee refused under a caller's costs.");
  overhead_ratio = &BuildHistogram()
                        .Name("stowage_plan_overhead_ratio")
                        .Help("Predicted makespan over the time without a budget, per solve.")
                        .Register(*registry)
                        .Add({}, Buckets{1, 1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 2, 4});
  gap_ratio = &BuildHistogram()
                   .Name("stowage_plan_gap_ratio")
                   .Help("Predicted makespan over its lower bound, less 1, per solve.")
                   .Register(*registry)
                   .Add({}, Buckets{0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1, 3});
}

void PrometheusMetrics::Families::AddSolvers(const std::vector<std::string>& names) {
  auto& solves = BuildCounter()
                     .Name("stowage_solves_total")
                     .Help("Solves, by solver and outcome.")
                     .Register(*registry);
  auto& seconds = BuildHistogram()
                      .Name("stowage_solve_seconds")
                      .Help("Time that a solve took on its thread.")
                      .Register(*registry);
  std::vector<std::string> all = names;
  all.emplace_back("other");
  for (const std::string& name : all) {
    SolverChildren& children = solvers[name];
    children.seconds = &seconds.Add({{"solver", name}}, CallSeconds());
    for (size_t i = 0; i < kSolveOutcomeCount; ++i) {
      const SolveOutcome outcome = static_cast<SolveOutcome>(i);
      children.outcomes[i] = &solves.Add({{"solver", name}, {"outcome", ToString(outcome)}});
    }
  }
}

}  // namespace stowage
