// What the server's port shows and trusts, from the last files that could be used.
//
// gRPC watches files, too, but takes them as they are: with a certificate beside the key of another
// one no handshake succeeds any more. So it watches copies in memory that change when new files have
// been found good, certificate and key at once.
#ifndef STOWAGE_SERVER_AUTH_SERVER_CERTIFICATES_H_
#define STOWAGE_SERVER_AUTH_SERVER_CERTIFICATES_H_

#include <grpcpp/security/tls_certificate_provider.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/file_watcher.h"
#include "server/auth/memory_file.h"
#include "server/auth/tls_credentials.h"

namespace stowage {

class ServerCertificates {
 public:
  // The errors of certificate_check.h, and RESOURCE_EXHAUSTED. Files that change for the worse are
  // refused: logged, unless the log is null, and counted. The pointers outlive the object, and the
  // object the server.
  static absl::StatusOr<std::unique_ptr<ServerCertificates>> Make(const ServerTlsOptions& tls,
                                                                  ServerMetrics* metrics, Log* log);

  // Connections show what was good up to a second before they are made.
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider() const {
    return provider_;
  }

 private:
  // A file in memory of what is read, now and whenever it changes; then `tell` is called with it.
  absl::StatusOr<std::string> Keep(const std::string& name,
                                   std::function<absl::StatusOr<std::string>()> read,
                                   const std::function<void(const std::string& good)>& tell,
                                   std::chrono::milliseconds interval, ServerMetrics* metrics,
                                   Log* log);

  std::vector<std::unique_ptr<MemoryFile>> copies_;
  std::vector<std::unique_ptr<FileWatcher>> watchers_;  // their threads use the copies
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_SERVER_CERTIFICATES_H_
