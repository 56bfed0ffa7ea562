// Which certificates of clients are let in: by their subject alternative names of the kinds DNS,
// URI and IP.
//
// A pattern is a name, alike in every character (letters' case apart in DNS names); of a DNS name
// the first label may be * and stands for exactly one label. "*" alone is any certificate. What has
// "://" or begins with "urn:" is a URI, what reads as an address is an IP, the rest is DNS.
//
// Immutable, so thread-safe. O(patterns x names) per search.
#ifndef STOWAGE_SERVER_AUTH_SAN_TABLE_H_
#define STOWAGE_SERVER_AUTH_SAN_TABLE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/credential_lines.h"
#include "server/auth/identity.h"

namespace stowage {

// Of one certificate.
struct CertificateNames {
  std::vector<std::string> dns;
  std::vector<std::string> uri;
  std::vector<std::string> ip;
};

class SanPattern {
 public:
  // INVALID_ARGUMENT that says the rule.
  static absl::StatusOr<SanPattern> Parse(const std::string& text);

  // The name that matched; "" for none. "*" matches a certificate without names as "*".
  std::string Match(const CertificateNames& names) const;

 private:
  enum class Kind { kAny, kDns, kUri, kIp };
  Kind kind_ = Kind::kAny;
  std::string name_;  // in the one form that names are compared in
};

class SanTable {
 public:
  // `file` is the text of a file of credential_lines.h whose credentials are patterns. Who matches
  // one of its lines is who the first such line says; who matches only `allowed` is a planner of no
  // tenant.
  static absl::StatusOr<SanTable> Parse(const std::vector<std::string>& allowed,
                                        const std::string& path, const std::string& file);

  // Nothing: not let in. The identity is the line's name, if it has one, else the name that matched.
  std::optional<Caller> Find(const CertificateNames& names) const;

  // Each that the file names, as often as it does.
  std::vector<std::string> tenants() const { return TenantsOf(patterns_); }

 private:
  std::vector<std::pair<SanPattern, Caller>> patterns_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_SAN_TABLE_H_
