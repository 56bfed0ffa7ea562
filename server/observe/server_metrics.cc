#include "server/observe/server_metrics.h"

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
    case Rpc::kGetCapabilities:
      return "GetCapabilities";
    case Rpc::kPinPlan:
      return "PinPlan";
    case Rpc::kUnpinPlan:
      return "UnpinPlan";
    case Rpc::kRollBackPlan:
      return "RollBackPlan";
    case Rpc::kPromotePlan:
      return "PromotePlan";
    case Rpc::kFreezePlan:
      return "FreezePlan";
    case Rpc::kUnfreezePlan:
      return "UnfreezePlan";
    case Rpc::kDeletePlan:
      return "DeletePlan";
    case Rpc::kExportDecisions:
      return "ExportDecisions";
    case Rpc::kImportDecisions:
      return "ImportDecisions";
  }
  return "unknown";
}

const char* ServiceOf(Rpc rpc) {
  return rpc >= Rpc::kPinPlan ? "stowage.v1.PlanAdminService" : "stowage.v1.PlanService";
}

const char* ToString(PlanLookup lookup) {
  switch (lookup) {
    case PlanLookup::kHit:
      return "hit";
    case PlanLookup::kDominance:
      return "dominance";
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

const char* ToString(CacheTier value) {
  switch (value) {
    case CacheTier::kMemory:
      return "memory";
    case CacheTier::kSqlite:
      return "sqlite";
    case CacheTier::kRedis:
      return "redis";
  }
  return "unknown";
}

const char* ToString(RedisUse value) {
  switch (value) {
    case RedisUse::kCache:
      return "cache";
    case RedisUse::kDecisions:
      return "decisions";
  }
  return "unknown";
}

const char* ToString(CacheFailure value) {
  switch (value) {
    case CacheFailure::kCorrupt:
      return "corrupt";
    case CacheFailure::kForeign:
      return "foreign";
    case CacheFailure::kUnavailable:
      return "unavailable";
    case CacheFailure::kNotWritten:
      return "not_written";
  }
  return "unknown";
}

const char* ToString(Shed value) {
  switch (value) {
    case Shed::kQueueFull:
      return "queue_full";
    case Shed::kTooManyCalls:
      return "too_many_calls";
    case Shed::kDeadline:
      return "deadline";
    case Shed::kQuota:
      return "quota";
    case Shed::kRequestBytes:
      return "request_bytes";
  }
  return "unknown";
}

const char* ToString(ReportOutcome value) {
  switch (value) {
    case ReportOutcome::kAccepted:
      return "accepted";
    case ReportOutcome::kAbsurd:
      return "absurd";
    case ReportOutcome::kOutlier:
      return "outlier";
    case ReportOutcome::kRepeated:
      return "repeated";
    case ReportOutcome::kUnknownPlan:
      return "unknown_plan";
  }
  return "unknown";
}

const char* ToString(ResolveReason value) {
  switch (value) {
    case ResolveReason::kDrift:
      return "drift";
    case ResolveReason::kUpgrade:
      return "upgrade";
    case ResolveReason::kStale:
      return "stale";
  }
  return "unknown";
}

const char* ToString(LeaseOutcome value) {
  switch (value) {
    case LeaseOutcome::kGranted:
      return "granted";
    case LeaseOutcome::kWaited:
      return "waited";
    case LeaseOutcome::kExpired:
      return "expired";
    case LeaseOutcome::kFailed:
      return "failed";
  }
  return "unknown";
}

const char* ToString(Lane value) {
  switch (value) {
    case Lane::kLookups:
      return "lookups";
    case Lane::kConversions:
      return "conversions";
    case Lane::kJudging:
      return "judging";
    case Lane::kAdministration:
      return "administration";
    case Lane::kParked:
      return "parked";
  }
  return "unknown";
}

const char* ToString(LineFile value) {
  switch (value) {
    case LineFile::kLog:
      return "log";
    case LineFile::kAudit:
      return "audit";
    case LineFile::kSpans:
      return "spans";
  }
  return "unknown";
}

}  // namespace stowage
