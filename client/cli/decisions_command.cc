// stowage decisions: what administrators decided, from and to servers that run.
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/decision_lines.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/json_text.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/server_session.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"

ABSL_FLAG(std::string, in, "", "file to read");

namespace stowage {
namespace {

std::string DecisionsWords(const std::vector<std::string>& decisions) {
  const size_t keys = CountKeys(decisions);
  return absl::StrCat(decisions.size(), decisions.size() == 1 ? " decision" : " decisions", " of ",
                      keys, keys == 1 ? " key" : " keys");
}

int SaveDecisions() {
  const std::string path = absl::GetFlag(FLAGS_out);
  if (const absl::Status status = CheckWritable(path); !status.ok()) return Fail(status);
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  const auto decisions = ExportAll(session->connection.get(), session->call);
  if (!decisions.ok()) return FailAs(decisions.status(), &*session);
  const std::string text = DecisionFileText(*decisions);
  if (path.empty()) {
    std::cout << text;
    Say(DecisionsWords(*decisions));
    return kExitOk;
  }
  if (const absl::Status status = ReplaceFile(path, text); !status.ok()) return Fail(status);
  Say(absl::StrCat(DecisionsWords(*decisions), " written to ", path));
  return kExitOk;
}

int TakeDecisions() {
  const absl::StatusOr<Format> format = FormatFromFlag({Format::kText, Format::kJson});
  if (!format.ok()) return Fail(format.status());
  const std::string path = absl::GetFlag(FLAGS_in);
  if (path.empty()) {
    return Fail(
        FieldError("--in", "\"\"", "must name a file that `stowage decisions export` has written"));
  }
  const absl::StatusOr<DecisionFile> file = ReadDecisionFile(path);
  if (!file.ok()) return Fail(file.status());
  absl::StatusOr<ServerSession> session = OpenServerSession();
  if (!session.ok()) return Fail(session.status());
  const auto imported = ImportLines(*file, session->connection.get(), session->call);
  if (!imported.ok()) return FailAs(imported.status(), &*session);
  if (*format == Format::kJson) {
    std::cout << JsonObject({{"taken", absl::StrCat(imported->taken)},
                             {"known", absl::StrCat(imported->known)}})
              << "\n";
  } else {
    std::cout << imported->taken << " taken, " << imported->known << " known\n";
  }
  return kExitOk;
}

}  // namespace

Command DecisionsCommand() {
  const FlagValue time = {"timeout", "time for all of it"};
  Command saving{"export", "write all that administrators have decided, for a backup",
                 WithServerFlags({"out", "timeout"}), SaveDecisions};
  saving.meanings = {{"out",
                      "file to write, whole or not at all; empty writes it to standard "
                      "output"},
                     time};
  saving.examples = {"decisions export --server=localhost:7070 --out=decisions.txt"};
  Command taking{"import",
                 "take what `stowage decisions export` has written; the later decision counts",
                 WithServerFlags({"in", "timeout", "format"}), TakeDecisions};
  taking.operands = {"in"};
  taking.meanings = {{"in",
                      "file that `stowage decisions export`, or `stowaged --export_decisions`, "
                      "has written"},
                     {"format", "text or json"},
                     time};
  taking.words = {{"format", {"text", "json"}}};
  taking.examples = {"decisions import decisions.txt --server=localhost:7070"};
  Command command{"decisions",
                  "what administrators decided, from and to servers that run (role admin)",
                  {},
                  nullptr};
  command.commands = {saving, taking};
  return command;
}

}  // namespace stowage
