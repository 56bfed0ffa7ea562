#include "client/cli/question.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/plan_flags.h"
#include "client/cli/plan_progress.h"
#include "client/cli/profile_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/say.h"
#include "client/rpc/call_stop.h"
#include "client/rpc/connect.h"
#include "client/rpc/job_name.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"

ABSL_FLAG(bool, no_local, false,
          "with --server: never plan in this process; when it is away, exit with 5");

namespace stowage {
std::vector<std::string> WithQuestionFlags(std::vector<std::string> flags) {
  for (const char* flag : {"slots", "recompute_only", "timeout", "format", "no_local"}) {
    flags.push_back(flag);
  }
  return WithServerFlags(std::move(flags));
}

KeyOptions KeyOptionsFromFlags() {
  KeyOptions key;
  key.solver = absl::GetFlag(FLAGS_solver);
  key.slots = absl::GetFlag(FLAGS_slots);
  key.recompute_only = absl::GetFlag(FLAGS_recompute_only);
  return key;
}

absl::StatusOr<Question> QuestionFromFlags() {
  absl::StatusOr<Profile> profile = ProfileFromFlag();
  if (!profile.ok()) return profile.status();
  return Question{*std::move(profile), KeyOptionsFromFlags()};
}

absl::StatusOr<CallOptions> CallFromFlags() {
  absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (call.ok()) call->job = JobName();
  return call;
}

absl::StatusOr<std::unique_ptr<PlanConnection>> ConnectionFromFlags() {
  const GrpcOptions server = ServerFromFlags();
  if (!absl::GetFlag(FLAGS_no_local)) return Connect(server, Say);
  if (server.address.empty()) {
    return FieldError("--no_local", "true", "needs a --server to ask");
  }
  return MakeRetryingConnection(MakeGrpcConnection(server), RetryPolicy());
}

absl::StatusOr<PlanReply> AskForPlan(PlanConnection* connection, const Question& question,
                                     const Budget& budget, const std::string& what) {
  const absl::StatusOr<CallOptions> call = CallFromFlags();
  if (!call.ok()) return call.status();
  const CallStop stop(*call);
  const absl::StatusOr<Bytes> bytes =
      ResolveBudget(question.profile, budget, stop.OptionsFor(question.key));
  if (!bytes.ok()) return bytes.status();
  std::ostream* const terminal = TerminalOrNull();
  ProgressLine line(terminal, absl::StrCat("planning ", what));
  ProgressCallback progress;  // empty where nobody looks
  if (terminal != nullptr) {
    progress = [&](const PlanProgress& so_far) {
      line.Show(so_far.share, ProgressText(so_far, call->deadline - CallOptions::Clock::now()));
    };
  }
  // Connections return nothing that the evaluator has not accepted here.
  absl::StatusOr<PlanReply> reply =
      connection->WatchPlan(question.profile, *bytes, question.key, progress, *call);
  if (reply.ok() && reply->plan.status == PlanStatus::kFound && !reply->plan.search_complete) {
    Say("the time was up before the search: with a longer --timeout there may be a faster plan");
  }
  return reply;
}

std::string SourceText(PlanSource source) {
  const char* words = "not known";
  switch (source) {
    case PlanSource::kCache:
      words = "kept by the server from an earlier solve";
      break;
    case PlanSource::kSolved:
      words = "by the server, for this request";
      break;
    case PlanSource::kShared:
      words = "by the server, once for all who asked";
      break;
    case PlanSource::kLocal:
      words = "solved in this process";
      break;
  }
  return absl::StrCat(ToString(source), ": ", words);
}

}  // namespace stowage
