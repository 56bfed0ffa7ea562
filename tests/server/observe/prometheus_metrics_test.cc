#include "server/observe/prometheus_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class PrometheusMetricsTest : public ::testing::Test {
 protected:
  PrometheusMetrics metrics_{{"store_all", "optimal_persistent"}, "1.2.3"};
};

TEST_F(PrometheusMetricsTest, CountsRpcsByMethodAndCode) {
  metrics_.RpcStarted(Rpc::kGetPlan);
  metrics_.RpcStarted(Rpc::kGetPlan);
  metrics_.RpcHandled(Rpc::kGetPlan, 5, 0.002);
  const std::string text = metrics_.Text();
  const std::string labels =
      "grpc_method=\"GetPlan\",grpc_service=\"stowage.v1.PlanService\",grpc_type=\"unary\"";
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{" + labels + "} 2"));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_handled_total{grpc_code=\"NotFound\"," + labels + "} 1"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total{grpc_code=\"OK\"," + labels + "} 0"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handling_seconds_count{" + labels + "} 1"));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_handling_seconds_bucket{" + labels + ",le=\"0.0025\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_handling_seconds_bucket{" + labels + ",le=\"0.001\"} 0"));
}

TEST_F(PrometheusMetricsTest, ACodeThatIsNoneCountsAsUnknown) {
  metrics_.RpcHandled(Rpc::kFitBatch, 99, 0);
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("{grpc_code=\"Unknown\",grpc_method=\"FitBatch\","
                        "grpc_service=\"stowage.v1.PlanService\",grpc_type=\"unary\"} 1"));
}

TEST_F(PrometheusMetricsTest, CountsTheCache) {
  metrics_.CacheLookup(CacheTier::kMemory, true);
  metrics_.CacheLookup(CacheTier::kMemory, false);
  metrics_.CacheLookup(CacheTier::kMemory, false);
  metrics_.CacheLookup(CacheTier::kSqlite, false);
  metrics_.CacheEvicted(CacheTier::kMemory, 3);
  metrics_.CacheRefused(CacheTier::kMemory);
  metrics_.CacheSize(CacheTier::kMemory, 7, 12345);
  metrics_.CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
  metrics_.Leased(LeaseOutcome::kWaited);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_cache_hits_total{tier=\"memory\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_misses_total{tier=\"memory\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_evictions_total{tier=\"memory\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_refusals_total{tier=\"memory\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_entries{tier=\"memory\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_bytes{tier=\"memory\"} 12345\n"));
  EXPECT_THAT(text, HasSubstr("stowage_cache_misses_total{tier=\"sqlite\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("stowage_cache_failures_total{failure=\"unavailable\",tier=\"redis\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_leases_total{outcome=\"waited\"} 1\n"));
}

TEST_F(PrometheusMetricsTest, CountsSolvesBySolverAndOutcome) {
  metrics_.Solved("store_all", SolveOutcome::kFound, 0.5);
  metrics_.Solved("nobody knows it", SolveOutcome::kError, 0.5);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_solves_total{outcome=\"found\",solver=\"store_all\"} 1"));
  EXPECT_THAT(text, HasSubstr("stowage_solves_total{outcome=\"error\",solver=\"other\"} 1"));
  EXPECT_THAT(text, HasSubstr("stowage_solve_seconds_sum{solver=\"store_all\"} 0.5"));
  EXPECT_THAT(text, Not(HasSubstr("nobody")));
}

TEST_F(PrometheusMetricsTest, LongSolvesAndWaitsAreToldApart) {
  for (const double seconds : {100.0, 400.0, 900.0}) {
    metrics_.Solved("store_all", SolveOutcome::kFound, seconds);
    metrics_.QueueWaited(seconds);
  }
  for (const std::string name : {"stowage_solve_seconds_bucket{solver=\"store_all\",",
                                 "stowage_queue_wait_seconds_bucket{"}) {
    for (const std::string count :
         {"le=\"60\"} 0", "le=\"120\"} 1", "le=\"600\"} 2", "le=\"1800\"} 3"}) {
      EXPECT_THAT(metrics_.Text(), HasSubstr(name + count));
    }
  }
}

TEST_F(PrometheusMetricsTest, ObservesPlansAndTheQueue) {
  metrics_.PlanQuality(1.25, 0.25, 0.75);
  metrics_.PlanLookedUp(PlanLookup::kRefused);
  metrics_.PlanRefused();
  metrics_.FlightJoined();
  metrics_.QueueDepth(4);
  metrics_.QueueWaited(0.5);
  metrics_.CallShed(Shed::kQuota);
  metrics_.FileReloaded(false);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_plan_overhead_ratio_sum 1.25"));
  EXPECT_THAT(text, HasSubstr("stowage_plan_gap_ratio_sum 0.25"));
  EXPECT_THAT(text, HasSubstr("stowage_plan_lookups_total{result=\"refused\"} 1"));
  EXPECT_THAT(text, HasSubstr("\nstowage_plans_refused_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstowage_flight_joins_total 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_file_reloads_total{outcome=\"refused\"} 1"));
  EXPECT_THAT(text, HasSubstr("stowage_file_reloads_total{outcome=\"accepted\"} 0"));
  EXPECT_THAT(text, HasSubstr("\nstowage_queue_jobs 4\n"));
  EXPECT_THAT(text, HasSubstr("stowage_plan_budget_use_ratio_sum 0.75"));
  EXPECT_THAT(text, HasSubstr("stowage_queue_wait_seconds_sum 0.5"));
  EXPECT_THAT(text, HasSubstr("stowage_calls_shed_total{reason=\"quota\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_build_info{version=\"1.2.3\"} 1"));
}

TEST_F(PrometheusMetricsTest, ShowsWhereTimeAndRoomGo) {
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("stowage_certificate_expiry_timestamp_seconds")))
      << "there is no certificate yet";
  metrics_.CacheLooked(CacheTier::kRedis, 0.003);
  metrics_.RedisResting(RedisUse::kDecisions, true);
  metrics_.SolversBusy(3);
  metrics_.LaneWaited(Lane::kParked, 0.25);
  metrics_.RequestBytesHeld(4096);
  metrics_.LinesDropped(LineFile::kAudit, 7);
  metrics_.CertificateExpires(1800000000);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_cache_look_seconds_sum{tier=\"redis\"} 0.003"));
  EXPECT_THAT(text, HasSubstr("\nstowage_redis_resting{redis=\"cache\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstowage_redis_resting{redis=\"decisions\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstowage_solvers_busy 3\n"));
  EXPECT_THAT(text, HasSubstr("stowage_lane_wait_seconds_sum{lane=\"parked\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("stowage_lane_wait_seconds_count{lane=\"lookups\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstowage_request_bytes 4096\n"));
  EXPECT_THAT(text, HasSubstr("stowage_lines_dropped_total{file=\"audit\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("stowage_lines_dropped_total{file=\"log\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("stowage_lines_dropped_total{file=\"spans\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("stowage_certificate_expiry_timestamp_seconds 1800000000\n"));
}

TEST_F(PrometheusMetricsTest, CountsWhatReportsSayPerTenant) {
  metrics_.ProfilingSaved();
  metrics_.Reported(ReportOutcome::kOutlier);
  metrics_.Measured(1.5, 0.5);
  metrics_.BudgetViolated();
  metrics_.TenantsNamed({"vision"});
  metrics_.Reserved(1.25);
  metrics_.Executed("vision", {2.5, 1000, 4, 50});
  metrics_.Executed("unheard of", {1, 1, 1});
  metrics_.Resolved(ResolveReason::kDrift, SolveOutcome::kFound);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("\nstowage_profilings_saved_total 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reports_total{outcome=\"outlier\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_measured_time_ratio_sum 1.5"));
  EXPECT_THAT(text, HasSubstr("stowage_measured_peak_ratio_sum 0.5"));
  EXPECT_THAT(text, HasSubstr("\nstowage_budget_violations_total 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_recompute_seconds_total{tenant=\"vision\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("stowage_freed_byte_steps_total{tenant=\"vision\"} 4000\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"other\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_copied_bytes_total{tenant=\"vision\"} 200\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reserved_peak_ratio_sum 1.25"));
  EXPECT_THAT(text, HasSubstr("stowage_resolves_total{outcome=\"found\",reason=\"drift\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("unheard")));
}

TEST_F(PrometheusMetricsTest, ATenantThatIsNamedLaterHasALabelFromThenOn) {
  metrics_.Executed("speech", {1, 1, 1});
  metrics_.TenantsNamed({"vision", "vision"});
  metrics_.TenantsNamed({"speech"});
  metrics_.Executed("speech", {1, 1, 2});
  // Gone from the configuration, not from what has been counted.
  metrics_.Executed("vision", {1, 1, 4});
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"other\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"speech\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"vision\"} 4\n"));
}

TEST_F(PrometheusMetricsTest, TenantsBeyondTheLimitHaveNoLabels) {
  std::vector<std::string> tenants;
  for (size_t i = 0; i < kMostTenantLabels + 5; ++i) tenants.push_back("t" + std::to_string(i));
  metrics_.TenantsNamed(tenants);
  metrics_.Executed("t" + std::to_string(kMostTenantLabels - 1), {1, 1, 2});
  metrics_.Executed("t" + std::to_string(kMostTenantLabels), {1, 1, 4});
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"t999\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("stowage_reported_steps_total{tenant=\"other\"} 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("tenant=\"t1000\"")));
}

TEST_F(PrometheusMetricsTest, CountsFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 1000; ++i) metrics_.RpcStarted(Rpc::kComputePlan);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics_.Text(), HasSubstr("grpc_server_started_total{grpc_method=\"ComputePlan\","
                                         "grpc_service=\"stowage.v1.PlanService\","
                                         "grpc_type=\"unary\"} 4000"));
}

TEST_F(PrometheusMetricsTest, ServesOnAFreePortAndSaysWhenOneIsTaken) {
  const absl::StatusOr<std::string> bound = metrics_.Serve("127.0.0.1:0");
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(*bound, MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  PrometheusMetrics other({}, "1.2.3");
  const absl::Status taken = other.Serve(*bound).status();
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_THAT(std::string(taken.message()), HasSubstr(*bound));
}

}  // namespace
}  // namespace stowage
