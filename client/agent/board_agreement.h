// Agreement over anything that keeps small texts by name where all ranks see them: a folder, a store.
#ifndef STOWAGE_CLIENT_AGENT_BOARD_AGREEMENT_H_
#define STOWAGE_CLIENT_AGENT_BOARD_AGREEMENT_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/plan_agreement.h"

namespace stowage {

// Not thread-safe; each rank has one of its own to the same place.
class AgreementBoard {
 public:
  virtual ~AgreementBoard() = default;

  // For people.
  virtual std::string where() const = 0;
  // Others see it whole or not at all.
  virtual absl::Status Put(const std::string& name, const std::string& text) = 0;
  // Nothing if it is not there yet. Returns at once.
  virtual absl::StatusOr<std::optional<std::string>> Get(const std::string& name) = 0;
  // Whether that works or not.
  virtual void Remove(const std::string& name) = 0;
};

struct RankOptions {
  int rank = 0;
  int ranks = 1;
  // For the slowest rank to come to the same point. Planning and profiling of others is in it.
  std::chrono::milliseconds timeout{300000};
};

// OK, or INVALID_ARGUMENT made by FieldError.
absl::Status CheckRankOptions(const RankOptions& options);

// What rank `rank` puts up in a round begins with this.
extern const char kAgreementPrefix[];

// One text per round and rank, removed a round later. Errors of Gather beside those of PlanAgreement are the
// board's.
std::unique_ptr<PlanAgreement> MakeBoardAgreement(std::unique_ptr<AgreementBoard> board,
                                                  const RankOptions& options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_BOARD_AGREEMENT_H_
