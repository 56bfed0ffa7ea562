#include "client/cli/decision_lines.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/files.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr char kFirstDecisionLine[] = "stowage decisions 1";
constexpr int32_t kKeysPerPage = 1000;  // as many as there may be
constexpr int64_t kBatchBytes = int64_t{1} << 20;
constexpr int64_t kFramingBytes = 6;  // of a line in a message: its tag and its length
constexpr size_t kShownBytes = 80;    // of what a server says is wrong

int64_t MessageBytes(const DecisionLine& line) {
  return static_cast<int64_t>(line.text.size()) + kFramingBytes;
}

// "1 3fa2..." of a decision.
absl::string_view KeyWords(absl::string_view decision) {
  return decision.substr(0, decision.rfind(' '));
}

absl::Status LineTooLarge(const DecisionFile& file, const DecisionLine& line, int64_t limit_bytes,
                          const std::string& server) {
  const std::vector<absl::string_view> words = absl::StrSplit(line.text, ' ');
  const absl::string_view digest = words.size() > 1 ? words[1] : words[0];
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, ": line ", line.number, ", key ", digest, ": takes ",
                   MessageBytes(line), " bytes of a message, more than the ", limit_bytes, " that ",
                   server, " takes: raise --max_message_bytes of stowaged; nothing was sent"));
}

// The index of "decisions[3]", or of a part of it.
std::optional<size_t> DecisionIndex(absl::string_view field) {
  size_t index = 0;
  if (!absl::ConsumePrefix(&field, "decisions[")) return std::nullopt;
  const size_t end = field.find(']');
  if (end == absl::string_view::npos || !absl::SimpleAtoi(field.substr(0, end), &index)) {
    return std::nullopt;
  }
  return index;
}

// Lines `first` to `end` were refused.
absl::Status WithLineNumber(const absl::Status& status, const DecisionFile& file, size_t first,
                            size_t end) {
  if (!absl::IsInvalidArgument(status)) return status;
  const auto violation = GetFieldViolation(status);
  const auto index = violation ? DecisionIndex(violation->field) : std::nullopt;
  if (!index || *index >= end - first) return status;
  std::string value = violation->value;
  if (value.size() > kShownBytes) value = absl::StrCat(value.substr(0, kShownBytes), "...");
  return ErrorIn(file.path, FieldError(absl::StrCat("line ", file.lines[first + *index].number),
                                       value, violation->rule));
}

absl::Status AfterLines(const absl::Status& status, size_t lines,
                        const ImportedDecisions& imported) {
  if (lines == 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; the server has the decisions of the ", lines,
                   lines == 1 ? " line" : " lines", " before (", imported.taken, " taken, ",
                   imported.known, " known): the import may be repeated"));
}

}  // namespace

absl::StatusOr<DecisionFile> ReadDecisionFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  DecisionFile file{path, {}};
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (number == 1 && line != kFirstDecisionLine) {
      return ErrorIn(
          path, absl::InvalidArgumentError(absl::StrCat("line 1: must be: ", kFirstDecisionLine)));
    }
    if (number > 1 && !line.empty()) file.lines.push_back({number, std::string(line)});
  }
  return file;
}

std::string DecisionFileText(const std::vector<std::string>& decisions) {
  std::string text = absl::StrCat(kFirstDecisionLine, "\n");
  for (const std::string& decision : decisions) absl::StrAppend(&text, decision, "\n");
  return text;
}

size_t CountKeys(const std::vector<std::string>& decisions) {
  std::set<absl::string_view> keys;
  for (const std::string& decision : decisions) keys.insert(KeyWords(decision));
  return keys.size();
}

absl::StatusOr<std::vector<std::string>> ExportAll(PlanConnection* connection,
                                                   const CallOptions& call) {
  std::vector<std::string> decisions;
  std::set<std::string> tokens;
  std::string token;
  do {
    absl::StatusOr<ExportedDecisions> page = connection->ExportDecisions(token, kKeysPerPage, call);
    if (!page.ok()) return page.status();
    for (std::string& decision : page->decisions) decisions.push_back(std::move(decision));
    token = std::move(page->next_page_token);
    if (!token.empty() && !tokens.insert(token).second) {
      return absl::InternalError("the server's next page is one that it has sent before");
    }
  } while (!token.empty());
  return decisions;
}

absl::StatusOr<ImportedDecisions> ImportLines(const DecisionFile& file, PlanConnection* connection,
                                              const CallOptions& call) {
  const absl::StatusOr<Capabilities> capabilities = connection->GetCapabilities(call);
  if (!capabilities.ok()) return capabilities.status();
  const int64_t limit_bytes = capabilities->max_message.value();
  for (const DecisionLine& line : file.lines) {
    if (MessageBytes(line) > limit_bytes) {
      return LineTooLarge(file, line, limit_bytes, connection->name());
    }
  }
  const int64_t batch_bytes = std::min(kBatchBytes, limit_bytes);
  ImportedDecisions imported;
  size_t end = 0;
  for (size_t first = 0; first < file.lines.size(); first = end) {
    std::vector<std::string> batch;
    int64_t bytes = 0;
    while (end < file.lines.size() &&
           (batch.empty() || bytes + MessageBytes(file.lines[end]) <= batch_bytes)) {
      bytes += MessageBytes(file.lines[end]);
      batch.push_back(file.lines[end++].text);
    }
    const absl::StatusOr<ImportedDecisions> taken = connection->ImportDecisions(batch, call);
    if (!taken.ok()) {
      return AfterLines(WithLineNumber(taken.status(), file, first, end), first, imported);
    }
    imported.taken += taken->taken;
    imported.known += taken->known;
  }
  return imported;
}

}  // namespace stowage
