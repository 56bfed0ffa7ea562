// Turns a caller away of whom nobody knows who it is, before its message is read.
//
// Health and reflection stay open: probes have no tokens. Handlers ask again who calls, for what
// gRPC keeps of this answer belongs to the connection, and one connection may carry the calls of
// many. A status from here reaches the client without details (gRPC has no way for them before the
// message is read), so its message begins with the reason, and proto/codec/grpc_status.h reads it there.
#ifndef STOWAGE_SERVER_AUTH_AUTH_PROCESSOR_H_
#define STOWAGE_SERVER_AUTH_AUTH_PROCESSOR_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include "server/auth/authenticator.h"

namespace stowage {

class AuthProcessor final : public grpc::AuthMetadataProcessor {
 public:
  // The pointers outlive the server.
  AuthProcessor(const Authenticator* authenticator, ServerMetrics* metrics, Log* log)
      : authenticator_(authenticator), metrics_(metrics), log_(log) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  const Authenticator* const authenticator_;
  ServerMetrics* const metrics_;
  Log* const log_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_AUTH_PROCESSOR_H_
