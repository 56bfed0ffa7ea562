// What the log and the audit log are told of a plan that is answered with.
#ifndef STOWAGE_SERVER_RPC_HAND_OUT_H_
#define STOWAGE_SERVER_RPC_HAND_OUT_H_

#include <string>

#include "server/rpc/rpc_record.h"
#include "server/service/compute_plan.h"
#include "solvers/model/digest.h"

namespace stowage {

// Of the call that gives it to `job`; `digest` is that of the plan's schedule. O(1).
void RecordHandOut(const CachedPlan& cached, const Digest& digest, const std::string& job,
                   RpcRecord* record);
void RecordHandOut(const ComputeAnswer& answer, const Digest& digest, const std::string& job,
                   RpcRecord* record);

// Of one that is shown before there is an answer.
void RecordBestSoFar(const Plan& plan, const PlanKey& key, const Digest& digest,
                     const std::string& job, const RpcRecord& record);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_HAND_OUT_H_
