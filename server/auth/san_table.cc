#include "server/auth/san_table.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/auth/credential_lines.h"

namespace stowage {
namespace {

// The bytes of an address; "" when it is none. IPv6 may be written in many ways.
std::string AddressBytes(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) {
    return std::string(reinterpret_cast<const char*>(bytes), 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) {
    return std::string(reinterpret_cast<const char*>(bytes), 16);
  }
  return "";
}

bool IsDnsPattern(const std::string& text) {
  const std::string labels = absl::StartsWith(text, "*.") ? text.substr(2) : text;
  return !labels.empty() && labels.size() <= 253 && labels.front() != '.' &&
         std::all_of(labels.begin(), labels.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
         });
}

bool DnsMatches(const std::string& pattern, const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (!absl::StartsWith(pattern, "*.")) return lower == pattern;
  const size_t dot = lower.find('.');
  return dot != std::string::npos && dot > 0 && lower.substr(dot) == pattern.substr(1);
}

template <class Matches>
std::string FirstOf(const std::vector<std::string>& names, Matches matches) {
  const auto found = std::find_if(names.begin(), names.end(), matches);
  return found != names.end() ? *found : "";
}

}  // namespace

absl::StatusOr<SanPattern> SanPattern::Parse(const std::string& text) {
  SanPattern pattern;
  if (text == "*") return pattern;
  if (absl::StrContains(text, "://") || absl::StartsWith(text, "urn:")) {
    pattern.kind_ = Kind::kUri;
    pattern.name_ = text;
    return pattern;
  }
  if (const std::string address = AddressBytes(text); !address.empty()) {
    pattern.kind_ = Kind::kIp;
    pattern.name_ = address;
    return pattern;
  }
  if (!IsDnsPattern(text)) {
    return absl::InvalidArgumentError(
        "must be a DNS name (its first label may be *), a URI, an IP address, or * for any "
        "certificate");
  }
  pattern.kind_ = Kind::kDns;
  pattern.name_ = absl::AsciiStrToLower(text);
  return pattern;
}

std::string SanPattern::Match(const CertificateNames& names) const {
  switch (kind_) {
    case Kind::kAny:
      for (const auto* kind : {&names.uri, &names.dns, &names.ip}) {
        if (!kind->empty()) return kind->front();
      }
      return "*";
    case Kind::kDns:
      return FirstOf(names.dns, [this](const std::string& n) { return DnsMatches(name_, n); });
    case Kind::kUri:
      return FirstOf(names.uri, [this](const std::string& n) { return n == name_; });
    case Kind::kIp:
      return FirstOf(names.ip, [this](const std::string& n) { return AddressBytes(n) == name_; });
  }
  return "";
}

absl::StatusOr<SanTable> SanTable::Parse(const std::vector<std::string>& allowed,
                                         const std::string& path, const std::string& file) {
  const auto lines = ReadCredentialLines(path, file);
  if (!lines.ok()) return lines.status();
  SanTable table;
  for (const CredentialLine& line : *lines) {
    const absl::StatusOr<SanPattern> pattern = SanPattern::Parse(line.credential);
    if (!pattern.ok()) {
      return CredentialLineError(path, line.number, std::string(pattern.status().message()));
    }
    table.patterns_.push_back({*pattern, line.caller});
  }
  for (const std::string& text : allowed) {
    const absl::StatusOr<SanPattern> pattern = SanPattern::Parse(text);
    if (!pattern.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(text, ": ", pattern.status().message()));
    }
    table.patterns_.push_back({*pattern, {"", "", Role::kPlanner}});
  }
  return table;
}

std::optional<Caller> SanTable::Find(const CertificateNames& names) const {
  for (const auto& [pattern, caller] : patterns_) {
    const std::string matched = pattern.Match(names);
    if (matched.empty()) continue;
    Caller found = caller;
    if (found.identity.empty()) found.identity = matched;
    return found;
  }
  return std::nullopt;
}

}  // namespace stowage
