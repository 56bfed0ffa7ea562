#include "tests/bench/load/hit_load.h"

#include <array>
#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

constexpr char kGetPlan[] = "/stowage.v1.PlanService/GetPlan";
constexpr std::chrono::seconds kPatience{20};

struct Side {
  CallDriver* driver;
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> rate;
  size_t next = 0;
};

absl::Status Serial(const std::vector<CachedRequest>& requests, int calls, Side* side) {
  std::vector<double> seconds;
  absl::Status status;
  for (int i = 0; i < calls && status.ok(); ++i) {
    const std::string& request = requests[side->next++ % requests.size()].request;
    side->driver->Start(kGetPlan, request, kPatience, [&](const CallResult& result) {
      seconds.push_back(result.seconds);
      if (!result.status.ok()) status = absl::InternalError(result.status.error_message());
    });
    side->driver->Finish();
  }
  side->p50.push_back(Quantile(seconds, 0.5));
  side->p99.push_back(Quantile(seconds, 0.99));
  return status;
}

void Burst(const std::vector<CachedRequest>& requests, double seconds, Side* side) {
  constexpr int kInFlight = 16;
  const auto start = CallDriver::Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  int64_t done = 0;
  std::function<void()> again = [&] {
    const std::string& request = requests[side->next++ % requests.size()].request;
    side->driver->Start(kGetPlan, request, kPatience, [&](const CallResult&) {
      ++done;
      if (CallDriver::Clock::now() < end) again();
    });
  };
  for (int i = 0; i < kInFlight; ++i) again();
  side->driver->Finish();
  const std::chrono::duration<double> took = CallDriver::Clock::now() - start;
  side->rate.push_back(static_cast<double>(done) / took.count());
}

}  // namespace

absl::Status RunHits(const HitOptions& options) {
  absl::StatusOr<ServiceProcess> service = ServiceProcess::Start(options.stowaged);
  if (!service.ok()) return service.status();
  CallDriver plans(service->address(), 1);
  std::vector<CachedRequest> cached;
  for (int key = 0; key < options.keys; ++key) {
    absl::StatusOr<CachedRequest> one = CachePlan(options.stages, key, &plans);
    if (!one.ok()) return one.status();
    cached.push_back(*std::move(one));
  }
  absl::StatusOr<ServiceProcess> bare =
      ServiceProcess::Start({options.binary, absl::StrCat("--echo=", cached.front().reply_bytes)});
  if (!bare.ok()) return bare.status();
  CallDriver echoes(bare->address(), 1);
  Side echo{&echoes, {}, {}, {}, 0}, hit{&plans, {}, {}, {}, 0};
  // Who comes second finds the machine as the other one has left it, so they take turns at that, too. One kind of load after the
  // other: a burst right after calls one by one is a fourth slower.
  const std::array<std::array<Side*, 2>, 2> orders = {{{&echo, &hit}, {&hit, &echo}}};
  for (int round = 0; round < options.rounds; ++round) {
    for (Side* const side : orders[round % 2]) {
      absl::Status status = Serial(cached, options.calls_per_round, side);
      if (!status.ok()) return status;
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Side* const side : orders[round % 2]) Burst(cached, options.seconds_per_burst, side);
  }
  const auto median = [](const std::vector<double>& values) { return Quantile(values, 0.5); };
  std::printf("request %zu bytes, reply %zu bytes, %d stages, %d keys\n",
              cached.front().request.size(), cached.front().reply_bytes, options.stages,
              options.keys);
  std::printf("one after the other: echo p50 %.1f us, hit p50 %.1f us, ratio %.2f\n",
              median(echo.p50) * 1e6, median(hit.p50) * 1e6, median(hit.p50) / median(echo.p50));
  std::printf("                     echo p99 %.1f us, hit p99 %.1f us\n", median(echo.p99) * 1e6,
              median(hit.p99) * 1e6);
  std::printf("16 in flight: echo %.0f/s, hit %.0f/s, ratio %.2f\n", median(echo.rate),
              median(hit.rate), median(hit.rate) / median(echo.rate));
  return absl::OkStatus();
}

}  // namespace stowage
