#include "client/agent/agent_options.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Keeps the first violation.
class Checker {
 public:
  void AtLeast(const char* field, int64_t value, int64_t least) {
    if (value < least) Fail(field, absl::StrCat(value), absl::StrCat("must be >= ", least));
  }

  void Share(const char* field, double value) {
    // Not a number fails, too.
    if (!(value >= 0)) Fail(field, absl::StrCat(value), "must be >= 0");
  }

  void Fail(const char* field, const std::string& value, const std::string& rule) {
    if (status_.ok()) status_ = FieldError(absl::StrCat("options.", field), value, rule);
  }

  // Of a part that has rules of its own.
  void Take(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace

MemoryMeter* MeterOf(const AgentOptions& options) {
  return options.device != nullptr ? options.device->meter() : options.profile.meter;
}

absl::Status CheckAgentOptions(const AgentOptions& options) {
  constexpr size_t kLongestJob = 128;
  Checker check;
  if (!options.server.address.empty()) check.Take(CheckGrpcOptions(options.server));
  check.AtLeast("retry.max_attempts", options.retry.max_attempts, 1);
  check.AtLeast("plan_timeout", options.plan_timeout.count(), 1);
  check.AtLeast("report_timeout", options.report_timeout.count(), 1);
  if (options.job.size() > kLongestJob) {
    check.Fail("job", options.job, absl::StrCat("must have at most ", kLongestJob, " bytes"));
  }
  check.AtLeast("profile.warmup", options.profile.warmup, 0);
  check.AtLeast("profile.repeats", options.profile.repeats, 1);
  if (options.profile.bytes_only) check.Fail("profile.bytes_only", "true", "must be false");
  check.AtLeast("first_repeats", options.first_repeats, 1);
  if (options.budget) check.Take(ValidateBudget(*options.budget));
  if (options.device_limit)
    check.Take(CheckDeviceLimit("options.device_limit", *options.device_limit));
  if (options.budget && options.device_limit) {
    check.Fail("budget", ToString(*options.budget), "must not be set beside options.device_limit");
  }
  check.AtLeast("max_shapes", options.max_shapes, 1);
  check.AtLeast("steps_by_larger", options.steps_by_larger, 0);
  check.AtLeast("report_after", options.report_after, 0);
  check.AtLeast("wanted_profile_every", options.wanted_profile_every, 0);
  check.AtLeast("drift.window", options.drift.window, 1);
  check.Share("drift.time", options.drift.time);
  check.Share("drift.peak", options.drift.peak);
  check.AtLeast("drift.replans", options.drift.replans, 0);
  if (!(options.out_of_memory.factor > 0 && options.out_of_memory.factor < 1)) {
    check.Fail("out_of_memory.factor", absl::StrCat(options.out_of_memory.factor),
               "must be in (0, 1)");
  }
  check.AtLeast("out_of_memory.tries", options.out_of_memory.tries, 0);
  if (options.out_of_memory.retry_step && options.out_of_memory.tries == 0) {
    check.Fail("out_of_memory.retry_step", "true", "must not be set where tries is 0");
  }
  if (options.out_of_memory.retry_step && options.agreement != nullptr) {
    check.Fail("out_of_memory.retry_step", "true", "must not be set where ranks agree on plans");
  }
  if (options.out_of_memory.retry_step && options.out_of_memory.finish_step) {
    check.Fail("out_of_memory.finish_step", "true", "must not be set beside retry_step");
  }
  check.AtLeast("shadow_every", options.shadow_every, 1);
  if (options.arena) check.AtLeast("arena.region.effort", options.arena->region.effort, 0);
  const bool elsewhere = options.device != nullptr && !options.device->device().is_cpu();
  if (options.arena && elsewhere) {
    check.Fail("arena", "set", "must be absent for a device that is not the CPU");
  }
  return check.status();
}

}  // namespace stowage
