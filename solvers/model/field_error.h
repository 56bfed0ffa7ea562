// One shape for "this input is wrong": which field, which value, which rule. The parts travel as
// payloads of the status, so that a transport can hand them on structured (google.rpc.BadRequest)
// instead of parsing a message.
#ifndef STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_
#define STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stowage {

struct FieldViolation {
  std::string field;  // "chain.stages[3].saved_bytes", as the contract spells it
  std::string value;  // "-5"
  std::string rule;   // "must be >= 0"
};

// INVALID_ARGUMENT "chain.stages[3].saved_bytes = -5: must be >= 0".
absl::Status FieldError(const std::string& field, const std::string& value,
                        const std::string& rule);
absl::Status FieldError(const std::string& field, int64_t value, const std::string& rule);

// The parts of a status that FieldError made; nothing for any other status.
std::optional<FieldViolation> GetFieldViolation(const absl::Status& status);

// Checks that chain, graph and device validation share.

inline constexpr size_t kMaxNameLength = 256;

// Runs checks one after the other and keeps the first error. Names are built only when a check
// fails.
class FieldChecks {
 public:
  explicit FieldChecks(std::string prefix) : prefix_(std::move(prefix)) {}

  void NonNegative(const char* field, int64_t value) {
    if (status_.ok() && value < 0) Fail(field, value, "must be >= 0");
  }
  void AtLeast(const char* field, int64_t value, int64_t bound, const char* bound_name) {
    if (status_.ok() && value < bound) {
      Fail(field, value, absl::StrCat("must be >= ", bound_name, " (", bound, ")"));
    }
  }
  void AtMost(const char* field, int64_t value, int64_t bound, const char* bound_name) {
    if (status_.ok() && value > bound) {
      Fail(field, value, absl::StrCat("must be <= ", bound_name, " (", bound, ")"));
    }
  }
  void MaxLength(const char* field, const std::string& value, size_t limit = kMaxNameLength) {
    if (status_.ok() && value.size() > limit) {
      status_ = FieldError(absl::StrCat(prefix_, field), absl::StrCat(value.substr(0, 32), "..."),
                           absl::StrCat("must have at most ", limit, " bytes, has ", value.size()));
    }
  }
  // Adds to a running total that must stay below `limit`.
  void Total(const char* field, int64_t value, int64_t limit, const char* what, int64_t* total) {
    if (!status_.ok()) return;
    if (value >= limit - *total) {
      Fail(field, value, absl::StrCat("makes ", what, " reach or exceed ", limit));
      return;
    }
    *total += value;
  }
  const absl::Status& status() const { return status_; }

  void Fail(const char* field, int64_t value, const std::string& rule) {
    if (status_.ok()) status_ = FieldError(absl::StrCat(prefix_, field), value, rule);
  }

 private:
  std::string prefix_;
  absl::Status status_;
};

// What stages and vertices say of a recompute that stops at its last saved tensor: it takes no more than one that goes on.
template <class Step>
void CheckStoppedRecompute(const Step& step, FieldChecks* checks) {
  if (!checks->status().ok()) return;  // sums of sizes that are not checked may overflow
  constexpr char kTime[] = "recompute_saving_time_ns";
  constexpr char kOverhead[] = "recompute_saving_overhead_bytes";
  if (step.recompute_saving_time) {
    const int64_t time = step.recompute_saving_time->value();
    checks->NonNegative(kTime, time);
    checks->AtMost(kTime, time, step.forward_time.value(), "forward_time_ns");
  }
  if (!step.recompute_saving_overhead) return;
  const int64_t overhead = step.recompute_saving_overhead->value();
  checks->NonNegative(kOverhead, overhead);
  if (!step.recompute_saving_time) {
    checks->Fail(kOverhead, overhead, "must be absent without recompute_saving_time_ns");
  }
  checks->AtMost(kOverhead, overhead, (step.output + step.forward_saving_overhead).value(),
                 "output_bytes + forward_saving_overhead_bytes");
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_
