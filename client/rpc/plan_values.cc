#include "client/rpc/plan_values.h"

namespace stowage {

const char* ToString(PlanSource source) {
  switch (source) {
    case PlanSource::kCache:
      return "cache";
    case PlanSource::kSolved:
      return "solved";
    case PlanSource::kShared:
      return "shared";
    case PlanSource::kLocal:
      return "local";
  }
  return "unknown";
}

const char* ToString(ExecutionVerdict verdict) {
  switch (verdict) {
    case ExecutionVerdict::kAccepted:
      return "accepted";
    case ExecutionVerdict::kOutlier:
      return "outlier";
    case ExecutionVerdict::kAbsurd:
      return "absurd";
  }
  return "unknown";
}

const char* ToString(ListedPlan::State state) {
  switch (state) {
    case ListedPlan::State::kServing:
      return "serving";
    case ListedPlan::State::kShadow:
      return "shadow";
    case ListedPlan::State::kRetired:
      return "retired";
  }
  return "unknown";
}

}  // namespace stowage
