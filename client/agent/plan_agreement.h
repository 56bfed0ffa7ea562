// How the ranks of a job speak to each other about plans, so that they plan as one: over a process group of c10d
// (group_agreement.h), over the job's c10d store (store_agreement.h), over a folder that they share, or whatever the
// job has (board_agreement.h).
#ifndef STOWAGE_CLIENT_AGENT_PLAN_AGREEMENT_H_
#define STOWAGE_CLIENT_AGENT_PLAN_AGREEMENT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

  // What rank 0 says; what others say is not looked at. Rules and errors as of Gather, by which it is done here.
  virtual absl::StatusOr<std::string> Broadcast(const std::string& mine);

  // Of each element the greatest of all ranks, which must have equally many: INTERNAL otherwise, but a process group
  // does not look at that. As Broadcast.
  virtual absl::StatusOr<std::vector<int64_t>> Greatest(const std::vector<int64_t>& mine);

  // Whether words of a few bits can go round beside what the ranks do, so that one is said in every step: Say begins,
  // and waits for nobody; Hear, once for each Say and in their order, gives the bits that any rank has said, when
  // all have. Here: no; both are UNIMPLEMENTED.
  virtual bool votes() const { return false; }
  virtual absl::Status Say(uint32_t word);
  virtual absl::StatusOr<uint32_t> Hear();
};

// Over another one, which outlives it: its first error is that of all further calls, of which the others hear nothing. A rank that
// went on after it would answer in one exchange what another is asked in the next.
class FinalAgreement : public PlanAgreement {
 public:
  explicit FinalAgreement(PlanAgreement* inner) : inner_(inner) {}

  const absl::Status& status() const { return status_; }

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override;
  absl::StatusOr<std::string> Broadcast(const std::string& mine) override;
  absl::StatusOr<std::vector<int64_t>> Greatest(const std::vector<int64_t>& mine) override;
  bool votes() const override { return inner_->votes(); }
  absl::Status Say(uint32_t word) override;
  absl::StatusOr<uint32_t> Hear() override;

 private:
  template <class Exchange>
  auto Tried(const Exchange& exchange) -> decltype(exchange());

  PlanAgreement* const inner_;
  absl::Status status_;
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
