// Says who calls: by bearer token, else by the certificate of the connection.
//
// Both files are watched: a new text holds from the next call on, and the metrics are told the tenants
// that it names; one with a mistake changes nothing, is logged and counted. Errors are UNAUTHENTICATED with a reason, and say what was wrong,
// never what was sent:
//
//   TOKEN_MISSING             no token, and no certificate that could stand for it
//   TOKEN_MALFORMED           not one "authorization: Bearer TOKEN"
//   TOKEN_UNKNOWN             nobody's
//   CERTIFICATE_NOT_ALLOWED   no name of the certificate is on the list
//
// Thread-safe.
#ifndef STOWAGE_SERVER_AUTH_AUTHENTICATOR_H_
#define STOWAGE_SERVER_AUTH_AUTHENTICATOR_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/string_ref.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/file_watcher.h"
#include "server/auth/identity.h"
#include "server/auth/san_table.h"
#include "server/auth/token_file.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"

namespace stowage {

struct AuthOptions {
  std::string token_file;  // empty: no tokens
  bool client_certificates = false;
  std::vector<std::string> allow_san;
  std::string identities_file;  // may be empty
  std::chrono::milliseconds reload_interval = std::chrono::seconds(10);

  bool wants_identity() const { return !token_file.empty() || client_certificates; }
};

class Authenticator {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // INVALID_ARGUMENT for a file that cannot be read or has a mistake. The pointers outlive the
  // object.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Make(const AuthOptions& options,
                                                             ServerMetrics* metrics, Log* log);

  absl::StatusOr<Caller> Authenticate(const Metadata& metadata,
                                      const grpc::AuthContext* peer) const;

 private:
  Authenticator(const AuthOptions& options, ServerMetrics* metrics, Log* log)
      : options_(options), metrics_(metrics), log_(log) {}

  absl::StatusOr<Caller> ByToken(const std::string& header) const;
  absl::StatusOr<Caller> ByCertificate(const grpc::AuthContext* peer) const;
  absl::Status UseTokens(const std::string& text);
  absl::Status UseIdentities(const std::string& text);
  std::unique_ptr<FileWatcher> Watch(const std::string& path, const std::string& text,
                                     absl::Status (Authenticator::*use)(const std::string&));

  const AuthOptions options_;
  ServerMetrics* const metrics_;
  Log* const log_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TokenTable> tokens_;            // null: no tokens
  std::shared_ptr<const SanTable> names_;               // null: no certificates
  std::vector<std::unique_ptr<FileWatcher>> watchers_;  // last: their threads use all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_AUTHENTICATOR_H_
