#include "tests/client/rpc/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <fstream>

namespace stowage {
namespace {

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* value) const { Free(value); }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;

Key NewKey() { return Key(EVP_EC_gen("P-256")); }

template <class Writer>
std::string Pem(const Writer& write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  if (write(memory) != 1) abort();
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

std::string CertPem(X509* cert) {
  return Pem([cert](BIO* out) { return PEM_write_bio_X509(out, cert); });
}

std::string KeyPem(EVP_PKEY* key) {
  return Pem([key](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void AddExtension(X509* cert, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr || X509_add_ext(cert, extension, -1) != 1) abort();
  X509_EXTENSION_free(extension);
}

// Unsigned and without extensions.
Certificate NewCertificate(const std::string& name, EVP_PKEY* key, const TestLifetime& lifetime) {
  Certificate cert(X509_new());
  X509_set_version(cert.get(), 2);
  int64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert.get()), static_cast<uint64_t>(serial) >> 1);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), lifetime.from);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), lifetime.until);
  X509_set_pubkey(cert.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return cert;
}

}  // namespace

struct TestAuthority::Parts {
  Key key;
  Certificate cert;
};

TestAuthority::TestAuthority(const std::string& name) : parts_(std::make_unique<Parts>()) {
  parts_->key = NewKey();
  parts_->cert = NewCertificate(name, parts_->key.get(), {});
  X509* const cert = parts_->cert.get();
  X509_set_issuer_name(cert, X509_get_subject_name(cert));
  AddExtension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(cert, cert, NID_subject_key_identifier, "hash");
  if (X509_sign(cert, parts_->key.get(), EVP_sha256()) == 0) abort();
  cert_ = CertPem(cert);
}

TestAuthority::~TestAuthority() = default;

TestIdentity TestAuthority::Issue(const std::string& alternative_names,
                                  const TestLifetime& lifetime) const {
  const Key key = NewKey();
  const Certificate cert = NewCertificate("test", key.get(), lifetime);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(parts_->cert.get()));
  AddExtension(cert.get(), parts_->cert.get(), NID_subject_alt_name, alternative_names);
  if (X509_sign(cert.get(), parts_->key.get(), EVP_sha256()) == 0) abort();
  return {CertPem(cert.get()), KeyPem(key.get())};
}

std::shared_ptr<grpc::ServerCredentials> TlsServer(const TestIdentity& identity,
                                                   const std::string& client_ca) {
  grpc::SslServerCredentialsOptions options(
      client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                        : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = client_ca;
  options.pem_key_cert_pairs.push_back({identity.key, identity.cert});
  return grpc::SslServerCredentials(options);
}

std::string CredentialFolder::Write(const std::string& name, const std::string& text) {
  const std::string path = PathOf(name);
  std::ofstream(path + ".new") << text;
  if (std::rename((path + ".new").c_str(), path.c_str()) != 0) abort();
  return path;
}

}  // namespace stowage
