#include "server/rpc/certificate_check.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/file_watcher.h"

namespace stowage {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Source = std::unique_ptr<BIO, decltype(&BIO_free)>;

absl::Status Error(const std::string& path, const std::string& rule) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", rule));
}

// Without one, OpenSSL would ask on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

absl::StatusOr<Source> Open(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok()) return text.status();
  Source source(BIO_new(BIO_s_mem()), BIO_free);
  BIO_write(source.get(), text->data(), static_cast<int>(text->size()));
  return source;
}

// The first certificate of a file, valid now.
absl::StatusOr<Certificate> Read(const std::string& path) {
  const absl::StatusOr<Source> source = Open(path);
  if (!source.ok()) return source.status();
  Certificate certificate(PEM_read_bio_X509(source->get(), nullptr, NoPassphrase, nullptr),
                          X509_free);
  if (!certificate) return Error(path, "holds no certificate in PEM");
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return Error(path, "the certificate is not valid yet");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Error(path, "the certificate has expired");
  }
  return certificate;
}

}  // namespace

absl::Status CheckServerCertificate(const std::string& cert_path, const std::string& key_path) {
  const absl::StatusOr<Certificate> certificate = Read(cert_path);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<Source> source = Open(key_path);
  if (!source.ok()) return source.status();
  const Key key(PEM_read_bio_PrivateKey(source->get(), nullptr, NoPassphrase, nullptr),
                EVP_PKEY_free);
  if (!key) return Error(key_path, "holds no private key in PEM without a passphrase");
  if (X509_check_private_key(certificate->get(), key.get()) != 1) {
    return Error(key_path, absl::StrCat("is not the key of ", cert_path));
  }
  return absl::OkStatus();
}

absl::Status CheckAuthorities(const std::string& path) { return Read(path).status(); }

}  // namespace stowage
