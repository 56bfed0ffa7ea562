// Decisions of administrators as lines of a file, from and to a server:
//
//   stowage decisions 1
//   <encoding version> <digest of the key in hex> <record in hex>
//
// The same file as `stowaged --export_decisions` prints and --import_decisions takes.
#ifndef STOWAGE_CLIENT_CLI_DECISION_LINES_H_
#define STOWAGE_CLIENT_CLI_DECISION_LINES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

struct DecisionLine {
  int number = 0;  // in the file, from 1
  std::string text;
};

struct DecisionFile {
  std::string path;  // for messages
  std::vector<DecisionLine> lines;
};

// Without its first line and empty ones. INVALID_ARGUMENT for a path that cannot be read, and for another first line.
// What the lines say is the server's matter.
absl::StatusOr<DecisionFile> ReadDecisionFile(const std::string& path);

// The file of these, as ExportDecisions returned them.
std::string DecisionFileText(const std::vector<std::string>& decisions);

// Of how many keys these are.
size_t CountKeys(const std::vector<std::string>& decisions);

// Everything that was decided, all pages of it. The errors of ExportDecisions; INTERNAL where a page leads back to one
// that was read, which would never end.
absl::StatusOr<std::vector<std::string>> ExportAll(PlanConnection* connection,
                                                   const CallOptions& call);

// Sends the lines in their order, at most 1 MiB at a time, or as much as the server's messages hold where that is
// less; a longer line alone. INVALID_ARGUMENT that names file and line for one that no message holds: then nothing is
// sent, and for one that the server refuses. Else the errors of GetCapabilities and ImportDecisions. Those after a
// part was sent say how much of it the server has.
absl::StatusOr<ImportedDecisions> ImportLines(const DecisionFile& file, PlanConnection* connection,
                                              const CallOptions& call);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_DECISION_LINES_H_
