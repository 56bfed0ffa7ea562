#include "server/auth/authenticator.h"

#include <grpc/grpc_security_constants.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

constexpr char kScheme[] = "Bearer ";

absl::Status Unauthenticated(const std::string& reason, const std::string& message) {
  return WithReason(absl::UnauthenticatedError(message), reason);
}

std::vector<std::string> PropertyValues(const grpc::AuthContext* peer, const char* property) {
  std::vector<std::string> values;
  if (peer == nullptr) return values;
  for (const grpc::string_ref& value : peer->FindPropertyValues(property)) {
    values.emplace_back(value.data(), value.size());
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Make(const AuthOptions& options,
                                                                   ServerMetrics* metrics,
                                                                   Log* log) {
  std::unique_ptr<Authenticator> made(new Authenticator(options, metrics, log));
  if (!options.token_file.empty()) {
    const absl::StatusOr<std::string> text = ReadSmallFile(options.token_file);
    if (!text.ok()) return text.status();
    if (absl::Status status = made->UseTokens(*text); !status.ok()) return status;
    made->watchers_.push_back(made->Watch(options.token_file, *text, &Authenticator::UseTokens));
  }
  if (!options.client_certificates) return made;
  absl::StatusOr<std::string> text = "";
  if (!options.identities_file.empty()) text = ReadSmallFile(options.identities_file);
  if (!text.ok()) return text.status();
  if (absl::Status status = made->UseIdentities(*text); !status.ok()) return status;
  if (!options.identities_file.empty()) {
    made->watchers_.push_back(
        made->Watch(options.identities_file, *text, &Authenticator::UseIdentities));
  }
  return made;
}

absl::Status Authenticator::UseTokens(const std::string& text) {
  absl::StatusOr<TokenTable> table = TokenTable::Parse(options_.token_file, text);
  if (!table.ok()) return table.status();
  metrics_->TenantsNamed(table->tenants());
  auto tokens = std::make_shared<const TokenTable>(*std::move(table));
  std::lock_guard<std::mutex> lock(mutex_);
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

absl::Status Authenticator::UseIdentities(const std::string& text) {
  absl::StatusOr<SanTable> table =
      SanTable::Parse(options_.allow_san, options_.identities_file, text);
  if (!table.ok()) return table.status();
  metrics_->TenantsNamed(table->tenants());
  auto names = std::make_shared<const SanTable>(*std::move(table));
  std::lock_guard<std::mutex> lock(mutex_);
  names_ = std::move(names);
  return absl::OkStatus();
}

std::unique_ptr<FileWatcher> Authenticator::Watch(
    const std::string& path, const std::string& text,
    absl::Status (Authenticator::*use)(const std::string&)) {
  const WatchedFile file{path, [path] { return ReadSmallFile(path); },
                         [this, use](const std::string& changed) { return (this->*use)(changed); }};
  return std::make_unique<FileWatcher>(file, text, options_.reload_interval, metrics_, log_);
}

absl::StatusOr<Caller> Authenticator::Authenticate(const Metadata& metadata,
                                                   const grpc::AuthContext* peer) const {
  const auto [first, last] = metadata.equal_range("authorization");
  if (first == last || options_.token_file.empty()) return ByCertificate(peer);
  if (std::next(first) != last) {
    return Unauthenticated("TOKEN_MALFORMED", "more than one authorization header");
  }
  return ByToken(std::string(first->second.data(), first->second.size()));
}

absl::StatusOr<Caller> Authenticator::ByToken(const std::string& header) const {
  if (!absl::StartsWithIgnoreCase(header, kScheme)) {
    return Unauthenticated("TOKEN_MALFORMED", "authorization must be \"Bearer TOKEN\"");
  }
  std::shared_ptr<const TokenTable> tokens;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tokens = tokens_;
  }
  const Caller* const caller = tokens->Find(header.substr(sizeof(kScheme) - 1));
  if (caller == nullptr) {
    return Unauthenticated("TOKEN_UNKNOWN", "the bearer token is not one of this server's");
  }
  return *caller;
}

absl::StatusOr<Caller> Authenticator::ByCertificate(const grpc::AuthContext* peer) const {
  // Without a certificate of its own the peer has no such property.
  const bool has_certificate =
      peer != nullptr && !peer->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty();
  if (!options_.client_certificates || !has_certificate) {
    return Unauthenticated(
        "TOKEN_MISSING", options_.client_certificates
                             ? "the server asks for a client certificate or a bearer token"
                             : "the server asks for a bearer token (authorization: Bearer TOKEN)");
  }
  std::shared_ptr<const SanTable> table;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    table = names_;
  }
  const std::optional<Caller> caller =
      table->Find({PropertyValues(peer, GRPC_PEER_DNS_PROPERTY_NAME),
                   PropertyValues(peer, GRPC_PEER_URI_PROPERTY_NAME),
                   PropertyValues(peer, GRPC_PEER_IP_PROPERTY_NAME)});
  if (!caller) {
    return Unauthenticated(
        "CERTIFICATE_NOT_ALLOWED",
        "no subject alternative name of the client's certificate is allowed here");
  }
  return *caller;
}

}  // namespace stowage
