// Certificates made on the spot, and files that hold credentials.
#ifndef STOWAGE_TESTS_CLIENT_RPC_TEST_CERTIFICATES_H_
#define STOWAGE_TESTS_CLIENT_RPC_TEST_CERTIFICATES_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace stowage {

struct TestIdentity {
  std::string cert;  // PEM
  std::string key;
};

struct TestLifetime {
  long from = -3600;  // seconds from now
  long until = 3600;
};

// A certificate authority that lives as long as the test.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // For the subject alternative names, as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1".
  TestIdentity Issue(const std::string& alternative_names, const TestLifetime& lifetime = {}) const;

  const std::string& cert() const { return cert_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string cert_;
};

// TLS with the identity; clients must show a certificate of `client_ca` (PEM) unless it is empty.
std::shared_ptr<grpc::ServerCredentials> TlsServer(const TestIdentity& identity,
                                                   const std::string& client_ca = "");

// A folder of files, which goes away with this object.
class CredentialFolder {
 public:
  // Writes a file, or replaces it at once as those who rotate credentials do; its path.
  std::string Write(const std::string& name, const std::string& text);
  std::string PathOf(const std::string& name) const { return folder_ / name; }

 private:
  const TemporaryFolder folder_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_TEST_CERTIFICATES_H_
