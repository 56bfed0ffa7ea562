#include "server/store/redis_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/name_lookup.h"

namespace stowage {
namespace {

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

absl::Status TlsError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("TLS to Redis: ", what));
}

std::string TlsReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "the connection was closed" : reason;
}

absl::Status CannotUse(const std::string& file) {
  return TlsError(absl::StrCat(file, " cannot be used: ", TlsReason()));
}

absl::Status UseFiles(SSL_CTX* context, const RedisTlsFiles& files) {
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, files.ca.c_str()) != 1) {
    return CannotUse(files.ca);
  }
  if (files.cert.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) != 1) {
    return CannotUse(files.cert);
  }
  // Checks that the two belong together, as well.
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return CannotUse(files.key);
  }
  return absl::OkStatus();
}

bool ExpectServer(SSL* session, const std::string& server) {
  SSL_set_verify(session, SSL_VERIFY_PEER, nullptr);
  if (IsIpAddress(server)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), server.c_str()) == 1;
  }
  SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(session, server.c_str()) == 1 &&
         SSL_set_tlsext_host_name(session, server.c_str()) == 1;
}

}  // namespace

void RedisTls::Free::operator()(SSL* session) const { SSL_free(session); }

RedisTls::~RedisTls() = default;

absl::StatusOr<std::unique_ptr<RedisTls>> RedisTls::Make(const RedisTlsFiles& files,
                                                         const std::string& server) {
  ERR_clear_error();
  // The session keeps it for as long as it needs it.
  const std::unique_ptr<SSL_CTX, FreeTlsContext> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return TlsError("no memory");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (absl::Status used = UseFiles(context.get(), files); !used.ok()) return used;
  std::unique_ptr<RedisTls> tls(new RedisTls(SSL_new(context.get())));
  BIO* const received = BIO_new(BIO_s_mem());
  BIO* const to_send = BIO_new(BIO_s_mem());
  if (tls->session_ == nullptr || received == nullptr || to_send == nullptr) {
    BIO_free(received);
    BIO_free(to_send);
    return TlsError("no memory");
  }
  SSL_set_bio(tls->session_.get(), received, to_send);
  SSL_set_connect_state(tls->session_.get());
  if (!ExpectServer(tls->session_.get(), server)) return TlsError("no certificate has that name");
  return tls;
}

absl::StatusOr<bool> RedisTls::ShakeHands() {
  ERR_clear_error();
  SSL* const session = session_.get();
  const int done = SSL_do_handshake(session);
  if (done == 1) return true;
  if (SSL_get_error(session, done) == SSL_ERROR_WANT_READ) return false;
  const long verdict = SSL_get_verify_result(session);
  return verdict == X509_V_OK
             ? TlsError(TlsReason())
             : TlsError(absl::StrCat("its certificate: ", X509_verify_cert_error_string(verdict)));
}

void RedisTls::Receive(absl::string_view bytes) {
  BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
}

absl::Status RedisTls::Hear(std::string* text) {
  ERR_clear_error();
  std::array<char, 16 << 10> piece;
  while (true) {
    const int size = SSL_read(session_.get(), piece.data(), static_cast<int>(piece.size()));
    if (size > 0) {
      text->append(piece.data(), static_cast<size_t>(size));
      continue;
    }
    if (SSL_get_error(session_.get(), size) == SSL_ERROR_WANT_READ) return absl::OkStatus();
    return TlsError(TlsReason());
  }
}

absl::Status RedisTls::Say(absl::string_view text) {
  ERR_clear_error();
  size_t written = 0;
  if (text.empty()) return absl::OkStatus();
  // Into memory it goes at once.
  const int done = SSL_write_ex(session_.get(), text.data(), text.size(), &written);
  return done == 1 && written == text.size() ? absl::OkStatus() : TlsError(TlsReason());
}

std::string RedisTls::ToSend() {
  BIO* const waiting = SSL_get_wbio(session_.get());
  std::string bytes(BIO_ctrl_pending(waiting), '\0');
  const int size = BIO_read(waiting, bytes.data(), static_cast<int>(bytes.size()));
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

}  // namespace stowage
