#include "server/metrics/server_metrics.h"

namespace stowage {

const char* ToString(Rpc rpc) {
  switch (rpc) {
    case Rpc::kGetPlan:
      return "GetPlan";
    case Rpc::kComputePlan:
      return "ComputePlan";
    case Rpc::kWatchPlan:
      return "WatchPlan";
    case Rpc::kGetFrontier:
      return "GetFrontier";
    case Rpc::kFitBatch:
      return "FitBatch";
    case Rpc::kExplainPlan:
      return "ExplainPlan";
    case Rpc::kReportExecution:
      return "ReportExecution";
    case Rpc::kListPlans:
      return "ListPlans";
    case Rpc::kPinPlan:
      return "PinPlan";
    case Rpc::kDeletePlan:
      return "DeletePlan";
    case Rpc::kGetCapabilities:
      return "GetCapabilities";
  }
  return "unknown";
}

const char* ToString(PlanLookup lookup) {
  switch (lookup) {
    case PlanLookup::kHit:
      return "hit";
    case PlanLookup::kNoEntry:
      return "no_entry";
    case PlanLookup::kNoBudget:
      return "no_budget";
    case PlanLookup::kRefused:
      return "refused";
    case PlanLookup::kCollision:
      return "collision";
  }
  return "unknown";
}

const char* ToString(SolveOutcome outcome) {
  switch (outcome) {
    case SolveOutcome::kFound:
      return "found";
    case SolveOutcome::kProvenInfeasible:
      return "proven_infeasible";
    case SolveOutcome::kNotFound:
      return "not_found";
    case SolveOutcome::kCancelled:
      return "cancelled";
    case SolveOutcome::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace stowage
