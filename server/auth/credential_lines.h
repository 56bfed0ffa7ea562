// Files that say who is who, the one of tokens and the one of certificates' names: lines of
//
//   CREDENTIAL TENANT ROLE [NAME]
//
// parted by blanks; lines that are blank or begin with # say nothing. TENANT is 1 to 64 of A-Z a-z
// 0-9 . _ - and "-" alone is the tenant of servers without identities. ROLE is one of
// identity.h. NAME (as TENANT, but any length up to 128) is how logs call it.
//
// Errors name file and line, and never show what is in it: the one field out of place may be a
// secret.
#ifndef STOWAGE_SERVER_AUTH_CREDENTIAL_LINES_H_
#define STOWAGE_SERVER_AUTH_CREDENTIAL_LINES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/auth/identity.h"

namespace stowage {

struct CredentialLine {
  int number = 0;
  std::string credential;
  Caller caller;  // its identity is NAME, "" without one
};

// INVALID_ARGUMENT "path:line: rule".
absl::StatusOr<std::vector<CredentialLine>> ReadCredentialLines(const std::string& path,
                                                                const std::string& text);

// Of what the lines became; without the tenant of servers without identities.
template <class Callers>
std::vector<std::string> TenantsOf(const Callers& callers) {
  std::vector<std::string> tenants;
  for (const auto& [credential, caller] : callers) {
    if (!caller.tenant.empty()) tenants.push_back(caller.tenant);
  }
  return tenants;
}

absl::Status CredentialLineError(const std::string& path, int line, const std::string& rule);

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_CREDENTIAL_LINES_H_
