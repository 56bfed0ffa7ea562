// Whether files of certificates can be used, said before a handshake fails without a word.
#ifndef STOWAGE_SERVER_AUTH_CERTIFICATE_CHECK_H_
#define STOWAGE_SERVER_AUTH_CERTIFICATE_CHECK_H_

#include <string>

#include "absl/status/statusor.h"

namespace stowage {

// The server's chain and its key, as one text in PEM: what was looked at is what is used. INVALID_ARGUMENT: a
// file that cannot be read or holds no PEM, a key that is not the certificate's, a certificate that is
// not valid now. Says files, never contents.
absl::StatusOr<std::string> ReadServerCertificate(const std::string& cert_path,
                                                  const std::string& key_path);

// When the first certificate of such a text ends, in seconds since 1970; 0 for none.
double CertificateEnd(const std::string& text);

// The same of a bundle of authorities: at least one certificate, the first valid now.
absl::StatusOr<std::string> ReadAuthorities(const std::string& path);

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_CERTIFICATE_CHECK_H_
