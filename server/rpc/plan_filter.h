// Which plans a list is of: the filter of ListPlans (AIP-160, as far as plan_service.proto says).
#ifndef STOWAGE_SERVER_RPC_PLAN_FILTER_H_
#define STOWAGE_SERVER_RPC_PLAN_FILTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// A value; takes everything as it is made. Thread-safe.
class PlanFilter {
 public:
  PlanFilter() = default;

  // Takes any bytes. INVALID_ARGUMENT made by FieldError for "filter": over 1024 bytes, or not of the form, with what is
  // wrong where. O(bytes).
  static absl::StatusOr<PlanFilter> Parse(const std::string& text);

  // All restrictions hold.
  bool Takes(const v1::PlanSummary& plan) const;

  bool TakesAll() const { return restrictions_.empty(); }

 private:
  std::vector<std::function<bool(const v1::PlanSummary&)>> restrictions_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_FILTER_H_
