#include "server/observe/prometheus_families.h"

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

// A call may wait for a solve.
const Buckets& CallSeconds() {
  static const Buckets* const kBuckets =
      new Buckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                  0.5,    1,       2.5,    5,     10,     30,    60,   120,   300,  600, 1800};
  return *kBuckets;
}

// A solve may take --max_deadline, half an hour.
const Buckets& SolveSeconds() {
  static const Buckets* const kBuckets =
      new Buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                  2.5,   5,      10,    30,   60,    120,  300, 600,  1800};
  return *kBuckets;
}

}  // namespace

PrometheusMetrics::Families::Families(const std::vector<std::string>& solver_names,
                                      const std::string& version)
    : registry(std::make_shared<prometheus::Registry>()) {
  AddRpcs();
  AddCache();
  AddPlans();
  AddQuality();
  AddReports();
  AddTenants();
  AddSolvers(solver_names);
  AddQueue();
  AddFiles();
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

prometheus::Histogram* PrometheusMetrics::Families::Histogram(const std::string& name,
                                                              const std::string& help,
                                                              const Buckets& buckets) {
  return &BuildHistogram().Name(name).Help(help).Register(*registry).Add({}, buckets);
}

template <size_t N, class Name>
void PrometheusMetrics::Families::Enumerate(const std::string& name, const std::string& help,
                                            const std::string& label,
                                            std::array<prometheus::Counter*, N>* children,
                                            Name value) {
  auto& family = BuildCounter().Name(name).Help(help).Register(*registry);
  for (size_t i = 0; i < N; ++i) (*children)[i] = &family.Add({{label, value(i)}});
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
    prometheus::Labels labels = {
        {"grpc_service", ServiceOf(rpc)}, {"grpc_method", ToString(rpc)}, {"grpc_type", Type(rpc)}};
    rpcs[i].started = &started.Add(labels);
    rpcs[i].seconds = &seconds.Add(labels, CallSeconds());
    for (size_t code = 0; code < kStatusCodeCount; ++code) {
      labels["grpc_code"] = kCodeNames[code];
      rpcs[i].handled[code] = &handled.Add(labels);
    }
  }
}

void PrometheusMetrics::Families::AddCache() {
  const auto counters = [this](const char* name, const char* help) {
    return &BuildCounter().Name(name).Help(help).Register(*registry);
  };
  const auto gauges = [this](const char* name, const char* help) {
    return &BuildGauge().Name(name).Help(help).Register(*registry);
  };
  auto* hits = counters("stowage_cache_hits_total", "Lookups of a key that found an entry.");
  auto* misses = counters("stowage_cache_misses_total", "Lookups of a key that found no entry.");
  auto* evictions =
      counters("stowage_cache_evictions_total", "Entries dropped to stay within the limit.");
  auto* refusals = counters("stowage_cache_refusals_total",
                            "Entries not cached because even one plan of them is over the limit.");
  auto* failures = counters("stowage_cache_failures_total",
                            "Entries or answers of a cache tier that were not usable.");
  auto* entries = gauges("stowage_cache_entries", "Entries in the plan cache.");
  auto* bytes = gauges("stowage_cache_bytes", "Bytes charged for the entries in the plan cache.");
  auto& look_seconds = BuildHistogram()
                           .Name("stowage_cache_look_seconds")
                           .Help("Time of a look in a tier of the cache that may wait for it.")
                           .Register(*registry);
  for (size_t i = 0; i < kCacheTierCount; ++i) {
    prometheus::Labels labels = {{"tier", ToString(static_cast<CacheTier>(i))}};
    tiers[i].hits = &hits->Add(labels);
    tiers[i].misses = &misses->Add(labels);
    tiers[i].evictions = &evictions->Add(labels);
    tiers[i].refusals = &refusals->Add(labels);
    tiers[i].entries = &entries->Add(labels);
    tiers[i].bytes = &bytes->Add(labels);
    tiers[i].look_seconds = &look_seconds.Add(labels, CallSeconds());
    for (size_t kind = 0; kind < kCacheFailureCount; ++kind) {
      labels["failure"] = ToString(static_cast<CacheFailure>(kind));
      tiers[i].failures[kind] = &failures->Add(labels);
    }
  }
  auto* resting = gauges("stowage_redis_resting",
                         "1 while that Redis is left alone because it has failed, else 0.");
  for (size_t i = 0; i < kRedisUseCount; ++i) {
    redis_resting[i] = &resting->Add({{"redis", ToString(static_cast<RedisUse>(i))}});
  }
  Enumerate("stowage_leases_total", "Wishes to solve for all servers of a cluster, by outcome.",
            "outcome", &leases, [](size_t i) { return ToString(static_cast<LeaseOutcome>(i)); });
}

void PrometheusMetrics::Families::AddPlans() {
  Enumerate("stowage_plan_lookups_total", "Searches for a cached plan, by result.", "result",
            &plan_lookups, [](size_t i) { return ToString(static_cast<PlanLookup>(i)); });
  plans_refused =
      Counter("stowage_plans_refused_total",
              "Cached or shared plans that the evaluator refused under a caller's costs.");
  profilings_saved = Counter("stowage_profilings_saved_total",
                             "Callers that got a plan by its key alone and need not profile.");
}

void PrometheusMetrics::Families::AddQuality() {
  overhead_ratio = Histogram("stowage_plan_overhead_ratio",
                             "Predicted makespan over the time without a budget, per solve.",
                             {1, 1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 2, 4});
  gap_ratio = Histogram("stowage_plan_gap_ratio",
                        "Predicted makespan over its lower bound, less 1, per solve.",
                        {0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1, 3});
  budget_use_ratio =
      Histogram("stowage_plan_budget_use_ratio", "Predicted peak over the budget, per solve.",
                {0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1});
  auto& resolved = BuildCounter()
                       .Name("stowage_resolves_total")
                       .Help("Cached plans that were solved anew, by reason and outcome.")
                       .Register(*registry);
  for (size_t reason = 0; reason < kResolveReasonCount; ++reason) {
    for (size_t outcome = 0; outcome < kSolveOutcomeCount; ++outcome) {
      resolves[reason][outcome] =
          &resolved.Add({{"reason", ToString(static_cast<ResolveReason>(reason))},
                         {"outcome", ToString(static_cast<SolveOutcome>(outcome))}});
    }
  }
}

void PrometheusMetrics::Families::AddReports() {
  Enumerate("stowage_reports_total", "Reports of executions, by what became of them.", "outcome",
            &reports, [](size_t i) { return ToString(static_cast<ReportOutcome>(i)); });
  const Buckets ratios = {0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.5, 2};
  measured_time_ratio =
      Histogram("stowage_measured_time_ratio",
                "Measured over predicted step time, per accepted report.", ratios);
  measured_peak_ratio = Histogram("stowage_measured_peak_ratio",
                                  "Measured over predicted peak, per accepted report.", ratios);
  reserved_peak_ratio = Histogram(
      "stowage_reserved_peak_ratio",
      "What was reserved for a step over its measured peak, per accepted report that says it.",
      ratios);
  budget_violations = Counter("stowage_budget_violations_total",
                              "Accepted reports whose measured peak was over the budget.");
}

void PrometheusMetrics::Families::AddTenants() {
  const auto family = [this](const char* name, const char* help) {
    return &BuildCounter().Name(name).Help(help).Register(*registry);
  };
  recompute_seconds_ = family("stowage_recompute_seconds_total",
                              "Device time that reported steps lost to recomputing and waiting.");
  freed_byte_steps_ =
      family("stowage_freed_byte_steps_total",
             "Bytes below the peak of store-all, times the steps reported with them.");
  reported_steps_ = family("stowage_reported_steps_total", "Steps that reports were about.");
  copied_bytes_ = family("stowage_copied_bytes_total",
                         "Bytes that reported steps copied between device and host memory.");
  AddTenant(kOtherLabel);
}

void PrometheusMetrics::Families::AddTenant(const std::string& name) {
  const prometheus::Labels labels = {{"tenant", name}};
  tenants[name] = {&recompute_seconds_->Add(labels), &freed_byte_steps_->Add(labels),
                   &reported_steps_->Add(labels), &copied_bytes_->Add(labels)};
}

PrometheusMetrics::Families::TenantChildren PrometheusMetrics::Families::Tenant(
    const std::string& name) const {
  std::lock_guard<std::mutex> lock(tenants_mutex);
  const auto found = tenants.find(name);
  return found != tenants.end() ? found->second : tenants.at(kOtherLabel);
}

void PrometheusMetrics::Families::AddQueue() {
  flights_joined =
      Counter("stowage_flight_joins_total",
              "Requests that waited for a solve that an identical request had started.");
  queue_jobs = Gauge("stowage_queue_jobs", "Solves that wait for a solver thread.");
  queue_wait_seconds = Histogram("stowage_queue_wait_seconds",
                                 "Time that a solve waited for a solver thread.", SolveSeconds());
  solvers_busy = Gauge("stowage_solvers_busy", "Solver threads that solve.");
  auto& lane_waits = BuildHistogram()
                         .Name("stowage_lane_wait_seconds")
                         .Help("Time that work waited for a thread of its lane.")
                         .Register(*registry);
  for (size_t i = 0; i < kLaneCount; ++i) {
    lane_wait_seconds[i] =
        &lane_waits.Add({{"lane", ToString(static_cast<Lane>(i))}}, CallSeconds());
  }
  request_bytes = Gauge("stowage_request_bytes", "Bytes that open requests hold.");
  Enumerate("stowage_calls_shed_total", "Calls turned away, by reason.", "reason", &sheds,
            [](size_t i) { return ToString(static_cast<Shed>(i)); });
}

void PrometheusMetrics::Families::AddSolvers(const std::vector<std::string>& names) {
  auto& solves = BuildCounter()
                     .Name("stowage_solves_total")
                     .Help("Solves of plans, of frontiers and of each batch looked at, by outcome.")
                     .Register(*registry);
  auto& seconds = BuildHistogram()
                      .Name("stowage_solve_seconds")
                      .Help("Time that a solve took on its thread.")
                      .Register(*registry);
  std::vector<std::string> all = names;
  all.emplace_back(kOtherLabel);
  for (const std::string& name : all) {
    SolverChildren& children = solvers[name];
    children.seconds = &seconds.Add({{"solver", name}}, SolveSeconds());
    for (size_t i = 0; i < kSolveOutcomeCount; ++i) {
      const SolveOutcome outcome = static_cast<SolveOutcome>(i);
      children.outcomes[i] = &solves.Add({{"solver", name}, {"outcome", ToString(outcome)}});
    }
  }
}

void PrometheusMetrics::Families::AddFiles() {
  Enumerate(
      "stowage_file_reloads_total",
      "Changes of the files of certificates, tokens and identities, by whether they could be used.",
      "outcome", &file_reloads, [](size_t i) { return i == 1 ? "accepted" : "refused"; });
  Enumerate("stowage_lines_dropped_total", "Lines of the logs, and spans, that were not written.",
            "file", &lines_dropped, [](size_t i) { return ToString(static_cast<LineFile>(i)); });
  certificate_expiry_ = &BuildGauge()
                             .Name("stowage_certificate_expiry_timestamp_seconds")
                             .Help("When the server's certificate ends, in seconds since 1970.")
                             .Register(*registry);
}

}  // namespace stowage
