#include "tests/bench/load/mixed_load.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/load/adversaries.h"
#include "tests/bench/load/answer_check.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;

constexpr char kService[] = "/stowage.v1.PlanService/";
constexpr double kLateSeconds = 0.1;

// Networks that the load asks for; the first ask of each is a miss.
constexpr int kNetworks = 40;
constexpr int kStages = 40;
constexpr int kFirstFilling = 100000000;  // beyond all networks that are asked for later
constexpr int kBurst = 256;               // calls at once, before the load
constexpr size_t kParts = 10;             // of the time

class Mixed {
 public:
  Mixed(const MixedOptions& options, ServiceProcess* service)
      : options_(options),
        service_(service),
        driver_(service->address(), 4, options.adversaries.empty() ? "" : kFairToken),
        adversaries_({service->address(), options.adversaries, options.empty_store}),
        draw_(options.seed),
        keys_(kNetworks) {}

  // What is bounded, so that it does not grow any more: the cache; and the threads of gRPC, which come
  // once many calls are open, whenever that is, and stay.
  void Fill() {
    for (int i = 0; i < options_.filling; ++i) {
      while (driver_.open() >= options_.in_flight / 4) driver_.Poll(milliseconds(20));
      StartCompute("filling", kFirstFilling + i, milliseconds(20000));
    }
    driver_.Finish();
    for (int network = 0; network < kNetworks; ++network) {
      StartCompute("first", network, milliseconds(20000));
    }
    driver_.Finish();
    for (int i = 0; i < kBurst; ++i) StartHit();
    driver_.Finish();
  }

  void Run() {
    start_ = CallDriver::Clock::now();
    running_ = true;
    double next_fault = 5, next_look = 0;
    for (double now = 0; now < options_.seconds;) {
      while (driver_.open() < options_.in_flight) StartOne();
      driver_.Poll(milliseconds(20));
      now = Seconds();
      if (options_.fault && now >= next_fault) {
        options_.fault(now);
        next_fault += 5;
      }
      if (!options_.adversaries.empty()) TakeTurn(now);
      if (now >= next_look) {
        Look(static_cast<size_t>(now / options_.seconds * kParts));
        next_look += 0.25;
      }
    }
    driver_.Finish();
    adversaries_.Stop();
  }

  absl::Status Report() {
    for (const auto& [what, count] : adversaries_.counts()) {
      std::printf("beside: %-32s %lld\n", what.c_str(), static_cast<long long>(count));
    }
    const bool slowed = ReportTimes();
    for (const auto& [what, count] : counts_) {
      std::printf("%-40s %lld\n", what.c_str(), static_cast<long long>(count));
    }
    std::printf("wrong answers %lld, late answers %lld (worst %.3f s after the deadline)\n",
                static_cast<long long>(wrong_), static_cast<long long>(late_), worst_late_);
    std::printf("resident MB, the least in each tenth of the time:");
    for (const int64_t bytes : least_resident_) {
      std::printf(" %.1f", 1e-6 * static_cast<double>(bytes));
    }
    // In the first tenth threads and connections find their number.
    const double growth = static_cast<double>(least_resident_[kParts - 1]) /
                              static_cast<double>(std::max<int64_t>(least_resident_[1], 1)) -
                          1;
    std::printf(" (%+.1f%% from the second to the last)\n", 100 * growth);
    if (wrong_ > 0) return absl::InternalError(absl::StrCat("a wrong answer: ", first_wrong_));
    if (absl::Status wrong = adversaries_.wrong(); !wrong.ok()) return wrong;
    // Less than a minute is a test that it runs.
    if (options_.seconds >= 60 && late_ > 0) return absl::InternalError("an answer was late");
    // In less than a minute the caches and the allocator have not found their size; what adversaries
    // send takes memory for a while.
    if (options_.seconds >= 60 && options_.adversaries.empty() && growth > 0.05) {
      return absl::InternalError("memory grew by more than 5%");
    }
    if (options_.seconds >= 60 && slowed) {
      return absl::InternalError("adversaries made others wait more than twice as long");
    }
    return absl::OkStatus();
  }

 private:
  int Below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(draw_); }

  double Seconds() const {
    return std::chrono::duration<double>(CallDriver::Clock::now() - start_).count();
  }

  // Adversaries act every other turn.
  void TakeTurn(double now) {
    const bool act = static_cast<int64_t>(now / options_.turn_seconds) % 2 == 1;
    if (act == acting_) return;
    acting_ = act;
    if (act) {
      adversaries_.Start();
    } else {
      adversaries_.Stop();
    }
    turned_ = Seconds();
  }

  // Of a call that has ended. What was asked as a turn began saw both.
  void Time(const std::string& kind, const CallResult& result) {
    constexpr double kSettling = 1;
    if (options_.adversaries.empty() || !running_ || !result.status.ok()) return;
    if (Seconds() - result.seconds < turned_ + kSettling) return;
    times_[kind][acting_ ? 1 : 0].push_back(result.seconds);
  }

  // Whether any kind of call took more than twice as long beside adversaries.
  bool ReportTimes() {
    constexpr size_t kEnough = 200;  // for the 99th of a hundred
    bool slowed = false;
    for (const auto& [kind, times] : times_) {
      const double alone = Quantile(times[0], 0.99), beside = Quantile(times[1], 0.99);
      std::printf(
          "%-10s ms alone: p50 %.2f p99 %.2f (%zu); beside adversaries: p50 %.2f p99 %.2f "
          "(%zu); p99 %.2f times\n",
          kind.c_str(), 1e3 * Quantile(times[0], 0.5), 1e3 * alone, times[0].size(),
          1e3 * Quantile(times[1], 0.5), 1e3 * beside, times[1].size(),
          alone > 0 ? beside / alone : 0);
      const bool enough = times[0].size() >= kEnough && times[1].size() >= kEnough;
      slowed = slowed || (enough && beside > 2 * alone);
    }
    return slowed;
  }

  // At the resident memory. What solves take goes up and down; what stays is the least.
  void Look(size_t part) {
    int64_t& least = least_resident_[std::min(part, kParts - 1)];
    const int64_t bytes = service_->resident_bytes();
    if (least == 0 || bytes < least) least = bytes;
  }

  void StartOne() {
    if (options_.far_only && !far_.empty()) return StartFar();
    const int kind = Below(1000);
    // What is solved takes a thousand times as long as a hit: it must not fill all places.
    const bool solves_enough = solving_ >= options_.in_flight / 4;
    if (!far_.empty() && Below(10) == 0) return StartFar();
    if (kind < 950 || solves_enough) return StartHit();
    if (kind < 970) return StartCompute("miss", kNetworks + misses_++, milliseconds(20000));
    if (kind < 980) return StartReport();
    if (kind < 990) return StartCancel();
    StartBad();
  }

  void Count(const std::string& kind, const CallResult& result, milliseconds timeout) {
    Time(kind, result);
    const std::string what = absl::StrCat(kind, " code ", result.status.error_code());
    if (++counts_[what] == 1 && !result.status.ok()) {
      std::printf("%7.1f s: first %s: %s\n", Seconds(), what.c_str(),
                  result.status.error_message().c_str());
    }
    const double late = result.seconds - std::chrono::duration<double>(timeout).count();
    worst_late_ = std::max(worst_late_, late);
    if (late > kLateSeconds) ++late_;
  }

  void Wrong(const std::string& why) {
    if (wrong_++ == 0) first_wrong_ = why;
  }

  // By key where the network is known, else by profile: as an agent does.
  void StartHit() {
    const int network = Below(kNetworks);
    if (keys_[static_cast<size_t>(network)].empty()) {
      return StartCompute("first", network, milliseconds(20000));
    }
    const milliseconds timeout(2000);
    driver_.Start(absl::StrCat(kService, "GetPlan"), keys_[static_cast<size_t>(network)], timeout,
                  [this, timeout, network](const CallResult& result) {
                    Count("hit", result, timeout);
                    if (!result.status.ok()) {
                      keys_[static_cast<size_t>(network)].clear();
                      return;
                    }
                    v1::GetPlanResponse got;
                    v1::ComputePlanResponse as_computed;
                    if (!got.ParseFromString(result.reply)) return Wrong("does not parse");
                    *as_computed.mutable_plan() = got.plan();
                    const absl::Status right = CheckAnswer(PlanRequest(kStages, network, 0.5),
                                                           as_computed.SerializeAsString());
                    if (!right.ok()) Wrong(std::string(right.message()));
                  });
  }

  // By key, of so many that memory does not hold them all.
  void StartFar() {
    const std::string& request = far_[static_cast<size_t>(Below(static_cast<int>(far_.size())))];
    const milliseconds timeout(2000);
    driver_.Start(absl::StrCat(kService, "GetPlan"), request, timeout,
                  [this, timeout](const CallResult& result) { Count("far", result, timeout); });
  }

  void StartCompute(const std::string& kind, int network, milliseconds timeout) {
    const v1::ComputePlanRequest request = PlanRequest(kStages, network, 0.5);
    ++solving_;
    driver_.Start(absl::StrCat(kService, "ComputePlan"), request.SerializeAsString(), timeout,
                  [this, kind, request, network, timeout](const CallResult& result) {
                    --solving_;
                    Count(kind, result, timeout);
                    if (!result.status.ok()) return;
                    const absl::Status right = CheckAnswer(request, result.reply);
                    if (!right.ok()) return Wrong(std::string(right.message()));
                    if (network < kNetworks) Remember(network, result.reply);
                    if (network >= kFirstFilling && !options_.adversaries.empty()) {
                      far_.push_back(KeyRequest(result.reply));
                    }
                  });
  }

  void Remember(int network, const std::string& reply) {
    keys_[static_cast<size_t>(network)] = KeyRequest(reply);
    last_.ParseFromString(reply);
  }

  // GetPlan for what ComputePlan has answered.
  static std::string KeyRequest(const std::string& reply) {
    v1::ComputePlanResponse computed;
    v1::GetPlanRequest get;
    computed.ParseFromString(reply);
    *get.add_keys() = computed.key();
    get.mutable_budget()->set_share_of_store_all(0.5);
    return get.SerializeAsString();
  }

  void StartReport() {
    v1::ReportExecutionRequest report;
    *report.mutable_key() = last_.key();
    report.set_plan_digest(last_.plan().digest());
    report.set_revision(last_.plan().revision());
    report.set_budget_bytes(last_.plan().budget_bytes());
    report.set_steps(100);
    report.set_job(absl::StrCat("job-", Below(50)));
    const double jitter = 0.95 + 0.001 * Below(100);
    report.set_measured_step_time_ns(static_cast<int64_t>(
        jitter * static_cast<double>(last_.plan().prediction().makespan_ns())));
    report.set_measured_peak_bytes(last_.plan().prediction().peak_bytes());
    const milliseconds timeout(2000);
    driver_.Start(absl::StrCat(kService, "ReportExecution"), report.SerializeAsString(), timeout,
                  [this, timeout](const CallResult& result) { Count("report", result, timeout); });
  }

  void StartCancel() {
    const v1::ComputePlanRequest request = PlanRequest(200, 1000000 + Below(1 << 20), 0.4);
    ++solving_;
    driver_.StartAndCancel(absl::StrCat(kService, "ComputePlan"), request.SerializeAsString(),
                           milliseconds(Below(30)), [this](const CallResult& result) {
                             --solving_;
                             Count("cancelled", result, milliseconds(60000));
                           });
  }

  void StartBad() {
    std::string bytes = PlanRequest(kStages, Below(kNetworks), 0.5).SerializeAsString();
    for (int i = 0; i < 4; ++i) {
      bytes[static_cast<size_t>(Below(static_cast<int>(bytes.size())))] ^=
          static_cast<char>(1 << Below(8));
    }
    const milliseconds timeout(20000);
    driver_.Start(absl::StrCat(kService, "ComputePlan"), bytes, timeout,
                  [this, timeout](const CallResult& result) { Count("bad", result, timeout); });
  }

  const MixedOptions& options_;
  CallDriver::Clock::time_point start_ = CallDriver::Clock::now();
  ServiceProcess* const service_;
  CallDriver driver_;
  Adversaries adversaries_;
  bool running_ = false;
  bool acting_ = false;
  double turned_ = 0;
  std::map<std::string, std::array<std::vector<double>, 2>> times_;  // alone, beside adversaries
  std::vector<std::string> far_;                                     // GetPlan requests
  std::mt19937_64 draw_;
  std::vector<std::string> keys_;  // GetPlan requests, empty while unknown
  v1::ComputePlanResponse last_;
  int misses_ = 0;
  int solving_ = 0;
  std::map<std::string, int64_t> counts_;
  int64_t wrong_ = 0;
  std::string first_wrong_;
  int64_t late_ = 0;
  double worst_late_ = 0;
  std::array<int64_t, kParts> least_resident_{};
};

}  // namespace

absl::Status RunMixed(const MixedOptions& options) {
  absl::StatusOr<ServiceProcess> service = ServiceProcess::Start(options.stowaged);
  if (!service.ok()) return service.status();
  Mixed mixed(options, &*service);
  mixed.Fill();
  mixed.Run();
  return mixed.Report();
}

absl::Status RunDrain(const std::vector<std::string>& stowaged) {
  absl::StatusOr<ServiceProcess> service = ServiceProcess::Start(stowaged);
  if (!service.ok()) return service.status();
  CallDriver driver(service->address(), 4);
  std::map<std::string, int64_t> answers;
  std::string unexpected;
  const auto count = [&](const CallResult& result) {
    ++answers[absl::StrCat("code ", result.status.error_code(), " ",
                           result.status.error_message())];
    // gRPC cancels what comes before its client knows; clients try that again, as what is refused.
    const grpc::StatusCode code = result.status.error_code();
    const bool expected = result.status.ok() || code == grpc::StatusCode::UNAVAILABLE ||
                          code == grpc::StatusCode::CANCELLED;
    if (!expected) unexpected = result.status.error_message();
  };
  const auto end = CallDriver::Clock::now() + std::chrono::seconds(3);
  const auto drain = CallDriver::Clock::now() + std::chrono::seconds(1);
  bool draining = false;
  for (int seed = 0; CallDriver::Clock::now() < end;) {
    while (driver.open() < 64) {
      driver.Start(absl::StrCat(kService, "ComputePlan"),
                   PlanRequest(kStages, seed++, 0.5).SerializeAsString(), milliseconds(110000),
                   count);
    }
    driver.Poll(milliseconds(20));
    if (!draining && CallDriver::Clock::now() >= drain) {
      draining = true;
      service->process().Signal(SIGTERM);
    }
  }
  driver.Finish();
  const std::string said = service->process().ReadUntil("abandoned\n");
  const int exit_code = service->process().Wait(std::chrono::seconds(110));
  for (const auto& [answer, calls] : answers) {
    std::printf("%8lld calls: %s\n", static_cast<long long>(calls), answer.c_str());
  }
  std::printf("exit code %d\n", exit_code);
  // A call that was accepted may not go unanswered: refused before it is UNAVAILABLE, too.
  if (said.find(", 0 abandoned") == std::string::npos) {
    return absl::InternalError(absl::StrCat("the drain says: ", said));
  }
  if (!unexpected.empty()) return absl::InternalError(absl::StrCat("a call got: ", unexpected));
  if (exit_code != 0) return absl::InternalError("the service did not end by itself");
  return absl::OkStatus();
}

}  // namespace stowage
