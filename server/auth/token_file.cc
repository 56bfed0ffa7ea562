#include "server/auth/token_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/auth/credential_lines.h"

namespace stowage {
namespace {

constexpr char kHashed[] = "sha256:";
constexpr size_t kLeastToken = 16;
constexpr size_t kMostToken = 1024;

std::optional<Digest> DigestOf(const std::string& credential) {
  if (!absl::StartsWith(credential, kHashed)) {
    const bool valid = credential.size() >= kLeastToken && credential.size() <= kMostToken &&
                       std::all_of(credential.begin(), credential.end(), absl::ascii_isgraph);
    return valid ? std::optional<Digest>(Sha256(credential)) : std::nullopt;
  }
  const std::string hex = credential.substr(sizeof(kHashed) - 1);
  const bool valid =
      hex.size() == 2 * Digest::kSize && std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
  if (!valid) return std::nullopt;
  const std::string binary = absl::HexStringToBytes(hex);
  std::array<uint8_t, Digest::kSize> bytes{};
  std::copy(binary.begin(), binary.end(), bytes.begin());
  return Digest(bytes);
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(const std::string& path, const std::string& text) {
  const auto lines = ReadCredentialLines(path, text);
  if (!lines.ok()) return lines.status();
  TokenTable table;
  for (const CredentialLine& line : *lines) {
    const std::optional<Digest> digest = DigestOf(line.credential);
    if (!digest) {
      return CredentialLineError(path, line.number,
                                 "the token must have 16 to 1024 printable characters, or be "
                                 "sha256: and 64 hexadecimal digits");
    }
    Caller caller = line.caller;
    if (caller.identity.empty()) caller.identity = absl::StrCat("token of line ", line.number);
    if (!table.tokens_.emplace(*digest, std::move(caller)).second) {
      return CredentialLineError(path, line.number, "the token comes twice");
    }
  }
  if (table.tokens_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no token"));
  }
  return table;
}

const Caller* TokenTable::Find(const std::string& token) const {
  const auto found = tokens_.find(Sha256(token));
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace stowage
