// Agreement over a process group of c10d: in as many messages as ranks, along a tree, and with a word in every step.
// Only where LibTorch comes with c10d's headers.
#ifndef STOWAGE_CLIENT_AGENT_GROUP_AGREEMENT_H_
#define STOWAGE_CLIENT_AGENT_GROUP_AGREEMENT_H_

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/status/statusor.h"
#include "client/agent/plan_agreement.h"

namespace stowage {

// The group carries tensors on the CPU, as gloo does, and nothing else of the job's: what one rank says here it says
// in the order in which it calls, and collectives of the job would come between. All ranks of the group agree.
//
// Gather, Broadcast and Greatest go up a binomial tree to rank 0 (send, recv) and come back by the group's own broadcast: 2
// log2(ranks) messages one after another, 2 (ranks - 1) in all. Words are an all-reduce of one integer, which runs on the
// group's threads. All but Say wait for other ranks, for each as long as the group's timeout says; UNAVAILABLE where one does
// not come, or is gone. After an error the group is of no use.
//
// INVALID_ARGUMENT made by FieldError for a null group.
absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeGroupAgreement(
    c10::intrusive_ptr<c10d::ProcessGroup> group);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_GROUP_AGREEMENT_H_
