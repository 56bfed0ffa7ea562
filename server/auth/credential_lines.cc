#include "server/auth/credential_lines.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stowage {
namespace {

constexpr size_t kMaxTenant = 64;
constexpr size_t kMaxName = 128;

bool IsWord(const std::string& text, size_t most) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

absl::Status CredentialLineError(const std::string& path, int line, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", rule));
}

absl::StatusOr<std::vector<CredentialLine>> ReadCredentialLines(const std::string& path,
                                                                const std::string& text) {
  std::vector<CredentialLine> read;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty() || fields[0][0] == '#') continue;
    if (fields.size() < 3 || fields.size() > 4) {
      return CredentialLineError(path, number, "must be CREDENTIAL TENANT ROLE [NAME]");
    }
    if (!IsWord(fields[1], kMaxTenant)) {
      return CredentialLineError(
          path, number, "the tenant must be 1 to 64 of A-Z a-z 0-9 . _ - or \"-\" for none");
    }
    const std::optional<Role> role = ParseRole(fields[2]);
    if (!role) {
      return CredentialLineError(path, number, absl::StrCat("the role must be ", kRoles));
    }
    if (fields.size() == 4 && !IsWord(fields[3], kMaxName)) {
      return CredentialLineError(path, number, "the name must be 1 to 128 of A-Z a-z 0-9 . _ -");
    }
    const std::string name = fields.size() == 4 ? fields[3] : "";
    read.push_back({number, fields[0], {name, fields[1] == "-" ? "" : fields[1], *role}});
  }
  return read;
}

}  // namespace stowage
