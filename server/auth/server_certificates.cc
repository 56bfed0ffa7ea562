#include "server/auth/server_certificates.h"

#include <utility>

#include "server/auth/certificate_check.h"

namespace stowage {
namespace {

constexpr unsigned kCopiesReadEverySeconds = 1;  // gRPC's least

}  // namespace

absl::StatusOr<std::unique_ptr<ServerCertificates>> ServerCertificates::Make(
    const ServerTlsOptions& tls, ServerMetrics* metrics, Log* log) {
  std::unique_ptr<ServerCertificates> made(new ServerCertificates());
  const absl::StatusOr<std::string> identity = made->Keep(
      tls.cert, [tls] { return ReadServerCertificate(tls.cert, tls.key); },
      [metrics](const std::string& good) { metrics->CertificateExpires(CertificateEnd(good)); },
      tls.reload_interval, metrics, log);
  if (!identity.ok()) return identity.status();
  absl::StatusOr<std::string> authorities = "";
  if (!tls.client_ca.empty()) {
    authorities = made->Keep(
        tls.client_ca, [tls] { return ReadAuthorities(tls.client_ca); }, [](const std::string&) {},
        tls.reload_interval, metrics, log);
  }
  if (!authorities.ok()) return authorities.status();
  made->provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      *identity, *identity, *authorities, kCopiesReadEverySeconds);
  return made;
}

absl::StatusOr<std::string> ServerCertificates::Keep(
    const std::string& name, std::function<absl::StatusOr<std::string>()> read,
    const std::function<void(const std::string& good)>& tell, std::chrono::milliseconds interval,
    ServerMetrics* metrics, Log* log) {
  const absl::StatusOr<std::string> text = read();
  if (!text.ok()) return text.status();
  absl::StatusOr<std::unique_ptr<MemoryFile>> copy = MemoryFile::Make(*text);
  if (!copy.ok()) return copy.status();
  MemoryFile* const file = copies_.emplace_back(*std::move(copy)).get();
  tell(*text);
  const WatchedFile watched{name, std::move(read), [file, tell](const std::string& good) {
                              absl::Status replaced = file->Replace(good);
                              if (replaced.ok()) tell(good);
                              return replaced;
                            }};
  watchers_.push_back(std::make_unique<FileWatcher>(watched, *text, interval, metrics, log));
  return file->path();
}

}  // namespace stowage
