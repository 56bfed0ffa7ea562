// How the ranks of a job speak to each other about plans, so that none plans alone: over a folder that
// they share, over the job's c10d store (store_agreement.h), or whatever the job has (board_agreement.h).
#ifndef STOWAGE_CLIENT_AGENT_PLAN_AGREEMENT_H_
#define STOWAGE_CLIENT_AGENT_PLAN_AGREEMENT_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stowage {

// One object per rank. Not thread-safe.
class PlanAgreement {
 public:
  virtual ~PlanAgreement() = default;

  virtual int rank() const = 0;  // 0 plans
  virtual int ranks() const = 0;

  // What all ranks say, by rank. All call it equally often, in the same order; it waits for the last of
  // them. Errors are final: DEADLINE_EXCEEDED that names a rank that said nothing.
  virtual absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) = 0;
};

struct FolderAgreementOptions {
  // Seen by all ranks; a new one for each start of the job.
  std::string folder;
  int rank = 0;
  int ranks = 1;
  // For the slowest rank to come to the same point. Planning and profiling of others is in it.
  std::chrono::milliseconds timeout{300000};
};

// One small file per round and rank, removed a round later. INVALID_ARGUMENT made by FieldError for
// options out of range; FAILED_PRECONDITION for a folder that is not there, or in which this rank has
// spoken already: one that an earlier start has left.
absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeFolderAgreement(FolderAgreementOptions options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_PLAN_AGREEMENT_H_
