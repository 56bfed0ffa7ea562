// stowage cache: the plans that a server keeps, and what people may do about them.
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/cached_plans.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/json_text.h"
#include "client/cli/plan_flags.h"
#include "client/cli/plan_key_text.h"
#include "client/cli/say.h"
#include "client/cli/server_session.h"
#include "client/rpc/server_flags.h"
#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/text.h"

ABSL_FLAG(std::string, action, "pin",
          "what to do with a revision: pin, unpin, rollback or promote; with all of a key: freeze "
          "or unfreeze");
ABSL_FLAG(int64_t, revision, 0, "revision of a cached plan; 0 for the only one that it can be");
ABSL_FLAG(std::string, name, "", "only networks whose names contain this");

namespace stowage {
namespace {

std::string Short(const PlanKey& key) { return key.digest.ToHex().substr(0, kShownDigits); }

int ListCache() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  absl::StatusOr<std::vector<ListedPlan>> plans =
      ListAll(session->connection.get(), absl::GetFlag(FLAGS_key), session->call,
              NameFilter(absl::GetFlag(FLAGS_name)));
  if (!plans.ok()) return FailAs(plans.status(), &*session);
  // A server before filters lists all.
  const std::string name = absl::GetFlag(FLAGS_name);
  std::vector<ListedPlan> shown;
  for (ListedPlan& plan : *plans) {
    if (absl::StrContains(plan.name, name)) shown.push_back(std::move(plan));
  }
  if (shown.empty()) Say(absl::StrCat(session->connection->name(), " keeps no such plan"));
  std::cout << ListingOf(shown).As(*format);
  return kExitOk;
}

// The revisions of one key.
absl::StatusOr<std::vector<ListedPlan>> RevisionsOf(const PlanKey& key, ServerSession* session) {
  absl::StatusOr<std::vector<ListedPlan>> plans =
      ListAll(session->connection.get(), key.digest.ToHex(), session->call);
  if (plans.ok() && plans->empty()) {
    return absl::NotFoundError(
        absl::StrCat(session->connection->name(), " keeps nothing under ", Short(key)));
  }
  return plans;
}

// The plan for a budget, and why it is what it is.
int GetOne(const PlanKey& key, const Budget& budget, Format format, ServerSession* session) {
  const auto reply = session->connection->GetPlan({key}, budget, session->call);
  if (!reply.ok()) return FailAs(reply.status(), session);
  const auto explanation = session->connection->ExplainPlan(key, budget, session->call);
  if (!explanation.ok()) return FailAs(explanation.status(), session);
  if (format == Format::kJson) {
    std::cout << JsonObject({{"plan", ToJson(ToProto(reply->plan))},
                             {"explanation", JsonString(*explanation)},
                             {"profile_wanted", JsonBool(reply->profile_wanted)}})
              << "\n";
    return kExitOk;
  }
  std::cout << PlanText(reply->plan) << "\n" << *explanation;
  if (!absl::EndsWith(*explanation, "\n")) std::cout << "\n";
  std::cout << "\nschedule\n" << ScheduleText(reply->plan.schedule);
  return kExitOk;
}

int GetFromCache() {
  const std::string text = absl::GetFlag(FLAGS_budget);
  const absl::StatusOr<Format> format =
      text.empty() ? FormatFromFlag() : FormatFromFlag({Format::kText, Format::kJson});
  if (!format.ok()) return Fail(format.status());
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  const auto key = FindKey(session->connection.get(), absl::GetFlag(FLAGS_key), session->call);
  if (!key.ok()) return FailAs(key.status(), &*session);
  if (!text.empty()) {
    const absl::StatusOr<Budget> budget = BudgetFromFlag();
    return budget.ok() ? GetOne(*key, *budget, *format, &*session) : Fail(budget.status());
  }
  const absl::StatusOr<std::vector<ListedPlan>> plans = RevisionsOf(*key, &*session);
  if (!plans.ok()) return FailAs(plans.status(), &*session);
  std::cout << ListingOf(*plans).As(*format);
  return kExitOk;
}

// Of --budget, for a revision: bytes, as they were listed; 0 for none.
absl::StatusOr<Bytes> RevisionBudget() {
  const std::string text = absl::GetFlag(FLAGS_budget);
  if (text.empty()) return Bytes(0);
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  const Bytes* bytes = std::get_if<Bytes>(&*budget);
  if (bytes != nullptr) return *bytes;
  return FieldError("--budget", text, "must be the bytes of a revision, see `stowage cache get`");
}

absl::StatusOr<PlanRevision> RevisionFromFlags(const PlanKey& key, RevisionAction action,
                                               const std::vector<ListedPlan>& plans) {
  if (action == RevisionAction::kFreeze || action == RevisionAction::kUnfreeze) {
    return PlanRevision{key, Bytes(0), 0};
  }
  const absl::StatusOr<Bytes> budget = RevisionBudget();
  if (!budget.ok()) return budget.status();
  const int64_t revision = absl::GetFlag(FLAGS_revision);
  if (revision < 0) return FieldError("--revision", revision, "must be >= 0");
  return ChooseRevision(plans, action, *budget, revision);
}

int Pin() {
  const absl::StatusOr<RevisionAction> action = ParseAction(absl::GetFlag(FLAGS_action));
  if (!action.ok()) return Fail(action.status());
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  const auto key = FindKey(session->connection.get(), absl::GetFlag(FLAGS_key), session->call);
  if (!key.ok()) return FailAs(key.status(), &*session);
  const absl::StatusOr<std::vector<ListedPlan>> plans = RevisionsOf(*key, &*session);
  if (!plans.ok()) return FailAs(plans.status(), &*session);
  const absl::StatusOr<PlanRevision> revision = RevisionFromFlags(*key, *action, *plans);
  if (!revision.ok()) return FailAs(revision.status(), &*session);
  const absl::Status status =
      session->connection->ChangePlan(*revision, *action, TermsOf(*plans), session->call);
  if (!status.ok()) return FailAs(status, &*session);
  std::string done = absl::StrCat(absl::GetFlag(FLAGS_action), ": ", Short(*key));
  if (revision->revision > 0) {
    absl::StrAppend(&done, " --budget=", revision->budget.value(),
                    " --revision=", revision->revision);
  }
  std::cout << done << "\n";
  return kExitOk;
}

int Remove() {
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  const auto key = FindKey(session->connection.get(), absl::GetFlag(FLAGS_key), session->call);
  if (!key.ok()) return FailAs(key.status(), &*session);
  const absl::StatusOr<std::vector<ListedPlan>> plans =
      ListAll(session->connection.get(), key->digest.ToHex(), session->call);
  if (!plans.ok()) return FailAs(plans.status(), &*session);
  const absl::StatusOr<bool> deleted =
      session->connection->DeletePlan(*key, TermsOf(*plans), session->call);
  if (!deleted.ok()) return FailAs(deleted.status(), &*session);
  if (!*deleted) {
    return Fail(absl::NotFoundError(
        absl::StrCat(session->connection->name(), " kept nothing under ", Short(*key))));
  }
  std::cout << "deleted " << key->digest.ToHex() << "\n";
  return kExitOk;
}

Command CacheAction(const char* name, const char* summary, std::vector<std::string> flags,
                    int (*run)()) {
  Command command{name, summary, WithServerFlags(std::move(flags)), run};
  command.operands = {"key"};
  return command;
}

}  // namespace

Command CacheCommand() {
  Command command{"cache", "list, show, pin and delete the plans that a server keeps", {}, nullptr};
  command.commands = {
      CacheAction("ls", "list plans, those whose keys begin with KEY alone",
                  {"key", "name", "timeout", "format"}, ListCache),
      CacheAction("get", "list the revisions of a key; with --budget, show the plan for it",
                  {"key", "budget", "timeout", "format"}, GetFromCache),
      CacheAction("pin", "pin, unpin, roll back or promote a revision; freeze or unfreeze a key",
                  {"key", "action", "budget", "revision", "timeout"}, Pin),
      CacheAction("rm", "delete all that is kept under a key", {"key", "timeout"}, Remove),
  };
  command.commands.front().examples = {"cache ls --server=localhost:7070"};
  return command;
}

}  // namespace stowage
