#include "server/rpc/plan_filter.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

using Restriction = std::function<bool(const v1::PlanSummary&)>;

constexpr size_t kLongest = 1024;

// What the text is made of.
struct Token {
  enum class Kind { kWord, kQuoted, kOperator, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
  size_t at = 0;
};

bool IsWordLetter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '*' || c == '-' || c == '+';
}

// The next token after *at, which moves behind it; nothing where there is none that may be.
bool NextToken(const std::string& text, size_t* at, Token* token) {
  while (*at < text.size() && absl::ascii_isspace(text[*at])) ++*at;
  *token = Token{Token::Kind::kEnd, "", *at};
  if (*at == text.size()) return true;
  const char first = text[*at];
  if (IsWordLetter(first)) {
    token->kind = Token::Kind::kWord;
    while (*at < text.size() && IsWordLetter(text[*at])) token->text += text[(*at)++];
    return true;
  }
  if (first == '"') {
    token->kind = Token::Kind::kQuoted;
    for (++*at; *at < text.size() && text[*at] != '"'; ++*at) {
      if (text[*at] == '\\' && *at + 1 < text.size()) ++*at;
      token->text += text[*at];
    }
    return (*at)++ < text.size();
  }
  token->kind = Token::Kind::kOperator;
  token->text = first;
  ++*at;
  if ((first == '!' || first == '<' || first == '>') && *at < text.size() && text[*at] == '=') {
    token->text += text[(*at)++];
  }
  return absl::StrContains(" = != < <= > >= : ", absl::StrCat(" ", token->text, " "));
}

// "resnet*"
bool Matches(const std::string& text, const std::string& pattern) {
  if (!absl::EndsWith(pattern, "*")) return text == pattern;
  return absl::StartsWith(text, pattern.substr(0, pattern.size() - 1));
}

template <class Of>
Restriction Text(const std::string& op, const std::string& value, const Of& of) {
  if (op == "=") return [=](const auto& plan) { return Matches(of(plan), value); };
  if (op == "!=") return [=](const auto& plan) { return !Matches(of(plan), value); };
  if (op == ":") return [=](const auto& plan) { return absl::StrContains(of(plan), value); };
  return nullptr;
}

template <class Of>
Restriction Number(const std::string& op, const std::string& text, const Of& of) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return nullptr;
  if (op == "=") return [=](const auto& plan) { return of(plan) == value; };
  if (op == "!=") return [=](const auto& plan) { return of(plan) != value; };
  if (op == "<") return [=](const auto& plan) { return of(plan) < value; };
  if (op == "<=") return [=](const auto& plan) { return of(plan) <= value; };
  if (op == ">") return [=](const auto& plan) { return of(plan) > value; };
  if (op == ">=") return [=](const auto& plan) { return of(plan) >= value; };
  return nullptr;
}

template <class Value, class Of>
Restriction Equal(const std::string& op, const Value& value, const Of& of) {
  if (op == "=") return [=](const auto& plan) { return of(plan) == value; };
  if (op == "!=") return [=](const auto& plan) { return of(plan) != value; };
  return nullptr;
}

template <class Of>
Restriction Flag(const std::string& op, const std::string& text, const Of& of) {
  if (text != "true" && text != "false") return nullptr;
  return Equal(op, text == "true", of);
}

// Nothing where it cannot be.
Restriction RestrictionOf(const std::string& field, const std::string& op,
                          const std::string& value) {
  using Plan = v1::PlanSummary;
  if (field == "name") return Text(op, value, [](const Plan& plan) { return plan.name(); });
  if (field == "solver") return Text(op, value, [](const Plan& plan) { return plan.solver(); });
  if (field == "tenant") return Text(op, value, [](const Plan& plan) { return plan.tenant(); });
  if (field == "key") {
    return Text(op, absl::AsciiStrToLower(value),
                [](const Plan& plan) { return absl::BytesToHexString(plan.key().digest()); });
  }
  if (field == "pinned") return Flag(op, value, [](const Plan& plan) { return plan.pinned(); });
  if (field == "frozen") return Flag(op, value, [](const Plan& plan) { return plan.frozen(); });
  if (field == "budget_bytes") {
    return Number(op, value, [](const Plan& plan) { return plan.budget_bytes(); });
  }
  if (field == "revision") {
    return Number(op, value, [](const Plan& plan) { return plan.revision(); });
  }
  if (field == "reports") {
    return Number(op, value, [](const Plan& plan) { return int64_t{plan.reports()}; });
  }
  if (field == "state") {
    v1::RevisionState state{};
    if (!v1::RevisionState_Parse(value, &state) &&
        !v1::RevisionState_Parse("REVISION_STATE_" + value, &state)) {
      return nullptr;
    }
    return Equal(op, state, [](const Plan& plan) { return plan.state(); });
  }
  if (field == "status") {
    v1::PlanStatus status{};
    if (!v1::PlanStatus_Parse(value, &status) &&
        !v1::PlanStatus_Parse("PLAN_STATUS_" + value, &status)) {
      return nullptr;
    }
    return Equal(op, status, [](const Plan& plan) { return plan.status(); });
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<PlanFilter> PlanFilter::Parse(const std::string& text) {
  if (text.size() > kLongest) {
    return FieldError("filter", absl::StrCat(text.size(), " bytes"),
                      absl::StrCat("must have at most ", kLongest, " bytes"));
  }
  const auto wrong = [&text](size_t at, const char* what) {
    return FieldError("filter", text, absl::StrCat(what, " at byte ", at));
  };
  PlanFilter filter;
  size_t at = 0;
  Token field, op, value, next;
  if (!NextToken(text, &at, &field)) return wrong(field.at, "must have a field's name");
  if (field.kind == Token::Kind::kEnd) return filter;
  for (;;) {
    if (field.kind != Token::Kind::kWord) return wrong(field.at, "must have a field's name");
    if (!NextToken(text, &at, &op) || op.kind != Token::Kind::kOperator) {
      return wrong(op.at, "must have one of = != < <= > >= :");
    }
    const bool is_value = NextToken(text, &at, &value) &&
                          (value.kind == Token::Kind::kWord || value.kind == Token::Kind::kQuoted);
    if (!is_value) return wrong(value.at, "must have a word, or a text in double quotes,");
    Restriction restriction = RestrictionOf(field.text, op.text, value.text);
    if (!restriction) return wrong(field.at, "must have a restriction that the contract names");
    filter.restrictions_.push_back(std::move(restriction));
    if (!NextToken(text, &at, &next)) return wrong(next.at, "must have AND, or end,");
    if (next.kind == Token::Kind::kEnd) return filter;
    if (next.kind != Token::Kind::kWord || next.text != "AND") {
      return wrong(next.at, "must have AND, or end,");
    }
    if (!NextToken(text, &at, &field)) return wrong(field.at, "must have a field's name");
  }
}

bool PlanFilter::Takes(const v1::PlanSummary& plan) const {
  for (const auto& holds : restrictions_) {
    if (!holds(plan)) return false;
  }
  return true;
}

}  // namespace stowage
