#include "server/decisions/decision_transfer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

constexpr char kFirstLine[] = "stowage decisions 1";

absl::Status LineError(int number, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", rule));
}

absl::Status CheckCanBe(const Decision& decision) {
  const auto latest = std::chrono::system_clock::now().time_since_epoch() + kMostAhead;
  const auto latest_us = std::chrono::duration_cast<std::chrono::microseconds>(latest).count();
  if (decision.stamp / kStampsPerMicrosecond > latest_us) {
    return absl::InvalidArgumentError(
        "must be of a time at most 30 days ahead of the server's clock");
  }
  if (decision.kept && decision.kept->generation != decision.generation) {
    return absl::InvalidArgumentError("must keep an entry of its own generation");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeyedDecision> DecisionFromLine(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() != 3) return absl::InvalidArgumentError("must be VERSION DIGEST RECORD");
  PlanKey key;
  const std::optional<Digest> digest = DigestFromHex(words[1]);
  if (!absl::SimpleAtoi(words[0], &key.encoding_version) || !digest) {
    return absl::InvalidArgumentError("must begin with a version and a digest of 64 digits");
  }
  key.digest = *digest;
  const std::string& hex = words[2];
  if (hex.size() % 2 != 0 || !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError("the record must be pairs of hexadecimal digits");
  }
  absl::StatusOr<Decision> decision = DecodeDecision(key, absl::HexStringToBytes(hex));
  if (!decision.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the record cannot be used: ", decision.status().message()));
  }
  if (absl::Status can_be = CheckCanBe(*decision); !can_be.ok()) return can_be;
  return KeyedDecision(key, *std::move(decision));
}

std::string DecisionToLine(const KeyedDecision& decision) {
  const auto& [key, what] = decision;
  return absl::StrCat(key.encoding_version, " ", key.digest.ToHex(), " ",
                      absl::BytesToHexString(EncodeDecision(key, what)));
}

std::string DecisionsToText(std::vector<KeyedDecision> decisions) {
  std::sort(decisions.begin(), decisions.end(), [](const KeyedDecision& a, const KeyedDecision& b) {
    return std::make_pair(a.first, IdOf(a.second)) < std::make_pair(b.first, IdOf(b.second));
  });
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const KeyedDecision& decision : decisions) {
    absl::StrAppend(&text, DecisionToLine(decision), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<KeyedDecision>> DecisionsFromText(const std::string& text) {
  std::vector<KeyedDecision> decisions;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (number == 1) {
      if (line == kFirstLine) continue;
      return LineError(number, absl::StrCat("must be: ", kFirstLine));
    }
    if (line.empty()) continue;
    absl::StatusOr<KeyedDecision> parsed = DecisionFromLine(line);
    if (!parsed.ok()) return LineError(number, parsed.status().message());
    decisions.push_back(*std::move(parsed));
  }
  return decisions;
}

absl::StatusOr<DecisionImport> ImportDecisions(const std::vector<KeyedDecision>& decisions,
                                               DecisionStore* store) {
  const absl::StatusOr<std::vector<KeyedDecision>> there = store->Load();
  if (!there.ok()) return there.status();
  std::map<PlanKey, KeyDecisions> known;
  for (const auto& [key, decision] : *there) known[key].Add(decision);
  DecisionImport import;
  for (const auto& [key, decision] : decisions) {
    KeyDecisions& of_key = known[key];
    if (!of_key.IsNews(decision)) {
      ++import.known;
      continue;
    }
    of_key.Add(decision);
    absl::Status status = store->Write(key, {decision});
    if (status.ok() && decision.kind == DecisionKind::kDeletion) {
      status = store->DropUpTo(key, decision.generation);
    }
    if (!status.ok()) return status;
    ++import.taken;
  }
  return import;
}

}  // namespace stowage
