// Agreement over the store that a job of torch.distributed has anyway: c10d's TCPStore, FileStore, or
// any other, also behind a PrefixStore. Only where LibTorch comes with c10d's headers.
#ifndef STOWAGE_CLIENT_AGENT_STORE_AGREEMENT_H_
#define STOWAGE_CLIENT_AGENT_STORE_AGREEMENT_H_

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "absl/status/statusor.h"
#include "client/agent/board_agreement.h"
#include "client/agent/plan_agreement.h"

namespace stowage {

// Keys begin with `prefix`: a new one for each start of the job, if the store outlives one. Nothing waits inside
// the store, which others may use meanwhile. Gather is UNAVAILABLE where the store fails, above all when
// the rank that serves it is gone.
//
// INVALID_ARGUMENT made by FieldError for options out of range or a null store; FAILED_PRECONDITION where
// this rank has joined under the prefix already; UNAVAILABLE as Gather.
absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeStoreAgreement(
    c10::intrusive_ptr<c10d::Store> store, const RankOptions& options,
    const std::string& prefix = "stowage/");

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_STORE_AGREEMENT_H_
