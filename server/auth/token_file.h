// The bearer tokens of a server: a file of credential_lines.h whose credentials are tokens, plain
// (16 to 1024 printable characters without blanks) or as sha256: and 64 hexadecimal digits.
//
// Tokens are kept, and looked for, by their digests alone: how long that takes says something about a
// digest, from which nobody gets to a token. O(log tokens) per search. Immutable, so thread-safe.
#ifndef STOWAGE_SERVER_AUTH_TOKEN_FILE_H_
#define STOWAGE_SERVER_AUTH_TOKEN_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/credential_lines.h"
#include "server/auth/identity.h"
#include "solvers/model/digest.h"

namespace stowage {

class TokenTable {
 public:
  // INVALID_ARGUMENT that names file and line, for a file without any token as well.
  static absl::StatusOr<TokenTable> Parse(const std::string& path, const std::string& text);

  // Whose token it is; null: nobody's. Lives as long as the table.
  const Caller* Find(const std::string& token) const;

  // Each that the file names, as often as it does.
  std::vector<std::string> tenants() const { return TenantsOf(tokens_); }

  size_t size() const { return tokens_.size(); }

 private:
  std::map<Digest, Caller> tokens_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_TOKEN_FILE_H_
