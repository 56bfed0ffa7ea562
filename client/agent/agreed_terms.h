// What the ranks of a job tell each other to plan as one: the key, the budget and the costs of each, and
// the plan of the one that asked. Texts for PlanAgreement::Gather.
#ifndef STOWAGE_CLIENT_AGENT_AGREED_TERMS_H_
#define STOWAGE_CLIENT_AGENT_AGREED_TERMS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/plan_agreement.h"
#include "client/rpc/plan_client.h"
#include "solvers/model/budget.h"
#include "solvers/model/digest.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/planner.h"

namespace stowage {

// Gather where a rank may have failed: then all get its error, INTERNAL that names the rank.
absl::StatusOr<std::vector<std::string>> GatherOrFail(PlanAgreement* agreement,
                                                      const absl::StatusOr<std::string>& mine);

// What rank 0 says, or its error, INTERNAL on the others; nobody looks at `mine` of another rank.
absl::StatusOr<std::string> BroadcastOrFail(PlanAgreement* agreement,
                                            const absl::StatusOr<std::string>& mine);

// What rank `from` says; nobody looks at `mine` of another rank. Two exchanges of the greatest of all, one as long as the text.
absl::StatusOr<std::string> BroadcastFrom(PlanAgreement* agreement, int from,
                                          const std::string& mine);

// OK where all ranks have the same; else an error of all: that of a rank that failed, as of GatherOrFail, or what `differs`
// says of the first rank that has another one.
absl::Status AgreeOnDigest(PlanAgreement* agreement, const absl::StatusOr<Digest>& mine,
                           const std::function<absl::Status(int rank)>& differs);

// What a rank says first in a call of all; of several ranks, whether it is so of any.
struct Beginning {
  bool lacks = false;  // it has to measure
  bool off = false;    // its kill switch is on: nothing is planned, and nobody measures
};

// The first thing that ranks say in a call of all: which version each is (FAILED_PRECONDITION where they differ: what follows would be read
// differently), and how it begins. An error of one rank is one of all, as of GatherOrFail.
absl::StatusOr<Beginning> AgreeToBegin(PlanAgreement* agreement,
                                       const absl::StatusOr<Beginning>& mine,
                                       const std::string& version = kSolverVersion);

// What one rank brings.
struct OwnTerms {
  Profile profile;
  Budget budget;  // shares and the least are of what all ranks agree on
};

struct AgreedTerms {
  // This rank's, with the greatest costs (times, overheads) of all and the slowest link; without a link
  // unless all have one.
  Profile profile;
  Bytes budget;  // the least
};

// All ranks at once, each with its own. FAILED_PRECONDITION if they train different things: their
// structure or environment differs. `options`: those that ResolveBudget takes. Three exchanges.
absl::StatusOr<AgreedTerms> AgreeOnTerms(PlanAgreement* agreement,
                                         const absl::StatusOr<OwnTerms>& mine,
                                         const PlanOptions& options = {});

// The bytes of `agreed`, and the times of `own`, which is of the same structure.
absl::StatusOr<Problem> WithTimesOf(const Problem& own, const Problem& agreed);

// A plan, or the answer that there is none, for ranks that have the same terms: predictions and bounds
// are not in it.
std::string EncodeAnswer(const ClientPlan& answer);
// INTERNAL unless EncodeAnswer wrote it and the evaluator accepts the schedule under the terms.
absl::StatusOr<ClientPlan> DecodeAnswer(const std::string& text, const AgreedTerms& terms);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGREED_TERMS_H_
