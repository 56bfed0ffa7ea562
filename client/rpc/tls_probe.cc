#include "client/rpc/tls_probe.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

using Kind = TlsFinding::Kind;

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* value) const { Free(value); }
};
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freer<SSL, SSL_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freer<BIO, BIO_vfree>>;

// The library writes to sockets whose peer has hung up; the program must not die of it.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{};
    sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
};

Memory Reader(const std::string& pem) {
  return Memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string LastError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "the connection was closed" : reason;
}

void TrustCas(SSL_CTX* context, const std::string& pem) {
  if (pem.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return;
  }
  const Memory reader = Reader(pem);
  while (const Certificate ca{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get());
  }
}

bool UseIdentity(SSL_CTX* context, const TlsFiles& files) {
  if (files.cert.empty()) return true;
  const Memory cert_reader = Reader(files.cert);
  const Memory key_reader = Reader(files.key);
  const Certificate cert(PEM_read_bio_X509(cert_reader.get(), nullptr, nullptr, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_reader.get(), nullptr, nullptr, nullptr));
  if (cert == nullptr || key == nullptr) return false;
  if (SSL_CTX_use_certificate(context, cert.get()) != 1) return false;
  while (X509* const link = PEM_read_bio_X509(cert_reader.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add_extra_chain_cert(context, link);
  }
  return SSL_CTX_use_PrivateKey(context, key.get()) == 1;  // checks that they belong together
}

std::string Dates(const X509* cert) {
  const Memory out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), X509_get0_notBefore(cert));
  BIO_puts(out.get(), " to ");
  ASN1_TIME_print(out.get(), X509_get0_notAfter(cert));
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return absl::StrCat("valid from ", std::string(data, static_cast<size_t>(size)));
}

std::string Names(X509* cert) {
  const int at = X509_get_ext_by_NID(cert, NID_subject_alt_name, -1);
  if (at < 0) return "it is for no name at all";
  const Memory out(BIO_new(BIO_s_mem()));
  X509V3_EXT_print(out.get(), X509_get_ext(cert, at), 0, 0);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return absl::StrCat("it is for ", std::string(data, static_cast<size_t>(size)));
}

bool IsFor(X509* cert, const std::string& name) {
  return X509_check_host(cert, name.data(), name.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(cert, name.c_str(), 0) == 1;
}

TlsFinding JudgeServer(SSL* session, const std::string& name) {
  const Certificate cert(SSL_get1_peer_certificate(session));
  if (cert == nullptr) return {Kind::kBadCertificate, "there is none"};
  const long verdict = SSL_get_verify_result(session);
  switch (verdict) {
    case X509_V_OK:
      break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {Kind::kExpired, Dates(cert.get())};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {Kind::kNotYetValid, Dates(cert.get())};
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return {Kind::kUnknownCa, X509_verify_cert_error_string(verdict)};
    default:
      return {Kind::kBadCertificate, X509_verify_cert_error_string(verdict)};
  }
  if (!IsFor(cert.get(), name)) return {Kind::kWrongName, Names(cert.get())};
  return {};
}

// A server says what it thinks of the client's certificate after the handshake (RFC 8446): the first
// words show it.
TlsFinding JudgeClient(SSL* session, bool has_identity) {
  const std::string hello = Http2Hello();
  ERR_clear_error();
  std::string answer(64, '\0');
  int got = SSL_write(session, hello.data(), static_cast<int>(hello.size()));
  if (got > 0) got = SSL_read(session, answer.data(), static_cast<int>(answer.size()));
  answer.resize(got > 0 ? static_cast<size_t>(got) : 0);
  if (LooksLikeHttp2(answer)) return {};
  if (!answer.empty()) return {Kind::kNotHttp2, "it does not speak HTTP/2"};
  if (SSL_get_error(session, got) == SSL_ERROR_WANT_READ) return {Kind::kNotHttp2, "it is silent"};
  return {has_identity ? Kind::kClientCertRefused : Kind::kClientCertWanted, LastError()};
}

}  // namespace

absl::StatusOr<TlsFinding> ProbeTls(const Endpoint& endpoint, const std::string& name,
                                    const TlsFiles& files, std::chrono::milliseconds patience) {
  const NoSigpipe no_sigpipe;
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return absl::InternalError(LastError());
  TrustCas(context.get(), files.ca);
  if (!UseIdentity(context.get(), files)) return TlsFinding{Kind::kBadClientFiles, LastError()};
  ERR_clear_error();
  const absl::StatusOr<ProbeSocket> socket = ProbeSocket::Connect(endpoint, patience);
  if (!socket.ok()) return socket.status();
  const Session session(SSL_new(context.get()));
  // Nothing is verified on the way, so that all can be told at the end.
  SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), kHttp2, sizeof(kHttp2));
  SSL_set_tlsext_host_name(session.get(), name.c_str());
  SSL_set_fd(session.get(), socket->fd());
  if (SSL_connect(session.get()) != 1) {
    // Up to TLS 1.2 a missing client certificate ends the handshake itself.
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) {
      return TlsFinding{Kind::kClientCertWanted, LastError()};
    }
    return TlsFinding{Kind::kNotTls, LastError()};
  }
  TlsFinding finding = JudgeServer(session.get(), name);
  if (finding.kind == Kind::kGood) finding = JudgeClient(session.get(), !files.cert.empty());
  return finding;
}

}  // namespace stowage
