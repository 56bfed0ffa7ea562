// Decisions as lines of text: to be backed up, looked through, and taken to another server.
//
//   stowage decisions 1
//   <encoding version> <digest of the key in hex> <record in hex>
//
// A record is what EncodeDecision makes of it: sealed, and bound to its key. Lines are in the order of keys; one
// state has one text.
#ifndef STOWAGE_SERVER_DECISIONS_DECISION_TRANSFER_H_
#define STOWAGE_SERVER_DECISIONS_DECISION_TRANSFER_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/decisions/decision_store.h"

namespace stowage {

// A line, without its end. O(bytes).
std::string DecisionToLine(const KeyedDecision& decision);

// INVALID_ARGUMENT: it is no such line, nor can it have been one: what a decision keeps is of another generation than the decision, or
// its stamp is kMostAhead later than the clock. (What is decided before that time by servers that do not know it would not count.)
// Takes any text. O(bytes).
inline constexpr std::chrono::hours kMostAhead{24 * 30};
absl::StatusOr<KeyedDecision> DecisionFromLine(absl::string_view line);

// O(bytes).
std::string DecisionsToText(std::vector<KeyedDecision> decisions);

// INVALID_ARGUMENT that names the line and what is wrong with it. Takes any text. O(bytes).
absl::StatusOr<std::vector<KeyedDecision>> DecisionsFromText(const std::string& text);

struct DecisionImport {
  int taken = 0;
  int known = 0;  // the store has the same, a later one, or a deletion that ends them
};

// Each counts in the store as if another server had told it: the later stamp does, whichever comes first. The
// store's errors: what came before the failure has been taken.
absl::StatusOr<DecisionImport> ImportDecisions(const std::vector<KeyedDecision>& decisions,
                                               DecisionStore* store);

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DECISION_TRANSFER_H_
