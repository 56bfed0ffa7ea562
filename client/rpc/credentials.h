// What a client shows of itself: its certificate and its bearer token. Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_CREDENTIALS_H_
#define STOWAGE_CLIENT_RPC_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "client/rpc/grpc_options.h"

namespace stowage {

// PEM files as they are now. Empty where no file is named.
struct TlsFiles {
  std::string ca;
  std::string cert;
  std::string key;
};
// INVALID_ARGUMENT for a file that cannot be read or is no PEM.
absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& tls);

// TLS as the options say, else insecure. Errors: ReadTlsFiles.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const GrpcOptions& options);

// The token that calls carry. Thread-safe.
class BearerToken {
 public:
  explicit BearerToken(const GrpcOptions& options)
      : token_(options.token), path_(options.token_file) {}

  // Empty without a token. Of a file: what it holds now, white space at its end aside; looked at
  // once per call (one stat) and read when it has changed. INVALID_ARGUMENT for a file that cannot
  // be read, and for a token that no header can carry.
  absl::StatusOr<std::string> Get();

 private:
  const std::string token_;
  const std::string path_;
  std::mutex mutex_;
  std::string stamp_;  // of the file when it was read
  std::string read_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_CREDENTIALS_H_
