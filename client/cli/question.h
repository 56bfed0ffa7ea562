// What the commands that plan are asked, put together from their flags, and whom they ask.
#ifndef STOWAGE_CLIENT_CLI_QUESTION_H_
#define STOWAGE_CLIENT_CLI_QUESTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/instance.h"

ABSL_DECLARE_FLAG(bool, no_local);

namespace stowage {

struct Question {
  Profile profile;
  KeyOptions key;

  // What its plans are judged by.
  Instance instance() const { return InstanceOf(profile, key.recompute_only); }
};

// The flags of a command that plans and may ask a server, after its own `flags`.
std::vector<std::string> WithQuestionFlags(std::vector<std::string> flags);

// --solver, --slots, --recompute_only.
KeyOptions KeyOptionsFromFlags();
// The same with --profile. Errors: ProfileFromFlag.
absl::StatusOr<Question> QuestionFromFlags();

// --timeout from now, and whose call it is. Errors: CallOptionsFromFlags.
absl::StatusOr<CallOptions> CallFromFlags();

// What the flags say: this process, a server, or a server and else this process, which is said.
// INVALID_ARGUMENT if --no_local leaves nobody to ask.
absl::StatusOr<std::unique_ptr<PlanConnection>> ConnectionFromFlags();

// A plan from the connection within --timeout, watched on standard error if that is a terminal, where `what`
// says what is planned. A share is one of the profile's own store-all peak, "least" that of the solver's
// class. A search that the deadline cut short is said. Errors: CallFromFlags, ResolveBudget, WatchPlan.
absl::StatusOr<PlanReply> AskForPlan(PlanConnection* connection, const Question& question,
                                     const Budget& budget, const std::string& what);

// Who made a plan, for people: "local: solved in this process".
std::string SourceText(PlanSource source);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_QUESTION_H_
