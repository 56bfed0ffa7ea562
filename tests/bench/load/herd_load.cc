#include "tests/bench/load/herd_load.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

struct Herd {
  std::vector<double> seconds;
  int64_t failed = 0;
  double solve_seconds = 0;
  std::string first_error;
};

void Count(const CallResult& result, Herd* herd) {
  v1::ComputePlanResponse response;
  if (!result.status.ok() || !response.ParseFromString(result.reply)) {
    if (herd->failed++ == 0) herd->first_error = result.status.error_message();
    return;
  }
  herd->seconds.push_back(result.seconds);
  herd->solve_seconds =
      std::max(herd->solve_seconds,
               1e-9 * static_cast<double>(response.plan().provenance().solve_time_ns()));
}

// Connections take a while to open; callers of a running cluster have theirs.
void WarmUp(int connections, CallDriver* driver) {
  for (int i = 0; i < connections; ++i) {
    driver->Start("/stowage.v1.PlanService/GetCapabilities", "", std::chrono::seconds(30),
                  [](const CallResult&) {});
  }
  driver->Finish();
}

}  // namespace

absl::Status RunHerd(const HerdOptions& options) {
  std::vector<ServiceProcess> services;
  std::vector<std::unique_ptr<CallDriver>> drivers;
  for (const auto& command : options.stowaged) {
    absl::StatusOr<ServiceProcess> service = ServiceProcess::Start(command);
    if (!service.ok()) return service.status();
    drivers.push_back(std::make_unique<CallDriver>(service->address(), options.connections));
    WarmUp(options.connections, drivers.back().get());
    services.push_back(*std::move(service));
  }
  const std::string request = PlanRequest(options.stages, 1, 0.5).SerializeAsString();
  Herd herd;
  for (int i = 0; i < options.callers; ++i) {
    drivers[static_cast<size_t>(i) % drivers.size()]->Start(
        "/stowage.v1.PlanService/ComputePlan", request, std::chrono::seconds(120),
        [&herd](const CallResult& result) { Count(result, &herd); });
  }
  for (bool open = true; open;) {
    open = false;
    for (const auto& driver : drivers) {
      for (int i = 0; i < 64 && driver->Poll(std::chrono::milliseconds(0)); ++i) continue;
      open = open || driver->open() > 0;
    }
  }
  double solves = 0;
  for (const ServiceProcess& service : services) solves += service.Metric("stowage_solves_total");
  const double p99 = Quantile(herd.seconds, 0.99);
  std::printf("%d callers, %zu replicas, %d connections each, profile of %zu bytes\n",
              options.callers, services.size(), options.connections, request.size());
  std::printf("answered %zu, failed %lld%s%s, solves %.0f\n", herd.seconds.size(),
              static_cast<long long>(herd.failed), herd.failed > 0 ? ": " : "",
              herd.first_error.c_str(), solves);
  std::printf("solve %.3f s, p50 %.3f s, p99 %.3f s, last %.3f s\n", herd.solve_seconds,
              Quantile(herd.seconds, 0.5), p99, Quantile(herd.seconds, 1));
  if (herd.failed > 0 || solves != 1) return absl::InternalError("not one solve for all");
  // Fewer callers are a test that it runs.
  if (options.callers >= 1000 && p99 > herd.solve_seconds + 1) {
    return absl::InternalError("p99 is over solve time + 1 s");
  }
  return absl::OkStatus();
}

}  // namespace stowage
