#include "server/auth/certificate_check.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/auth/file_watcher.h"

namespace stowage {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

absl::Status Error(const std::string& path, const std::string& rule) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", rule));
}

// Without one, OpenSSL would ask on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Memory Open(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

std::string PemOf(EVP_PKEY* key) {
  const Memory out(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

// The first certificate of a file's text, valid now.
absl::StatusOr<Certificate> FirstOf(const std::string& path, const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(Open(text).get(), nullptr, NoPassphrase, nullptr),
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

absl::StatusOr<std::string> ReadServerCertificate(const std::string& cert_path,
                                                  const std::string& key_path) {
  const absl::StatusOr<std::string> chain = ReadSmallFile(cert_path);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<Certificate> certificate = FirstOf(cert_path, *chain);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> text = ReadSmallFile(key_path);
  if (!text.ok()) return text.status();
  const Key key(PEM_read_bio_PrivateKey(Open(*text).get(), nullptr, NoPassphrase, nullptr),
                EVP_PKEY_free);
  if (!key) return Error(key_path, "holds no private key in PEM without a passphrase");
  if (X509_check_private_key(certificate->get(), key.get()) != 1) {
    return Error(key_path, absl::StrCat("is not the key of ", cert_path));
  }
  // The key first and alone: either file may hold what the other one is for, too.
  return absl::StrCat(PemOf(key.get()), *chain);
}

double CertificateEnd(const std::string& text) {
  const Certificate certificate(PEM_read_bio_X509(Open(text).get(), nullptr, NoPassphrase, nullptr),
                                X509_free);
  std::tm end{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) return 0;
  return static_cast<double>(timegm(&end));
}

absl::StatusOr<std::string> ReadAuthorities(const std::string& path) {
  absl::StatusOr<std::string> bundle = ReadSmallFile(path);
  if (!bundle.ok()) return bundle.status();
  const absl::StatusOr<Certificate> first = FirstOf(path, *bundle);
  return first.ok() ? bundle : first.status();
}

}  // namespace stowage
