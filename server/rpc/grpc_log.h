// What gRPC itself has to say (a handshake that failed, say), as events "grpc" of the log instead of
// lines of its own on standard error.
#ifndef STOWAGE_SERVER_RPC_GRPC_LOG_H_
#define STOWAGE_SERVER_RPC_GRPC_LOG_H_

#include "server/log/log.h"

namespace stowage {

// As long as it lives; at most one of them at a time.
class GrpcLog {
 public:
  explicit GrpcLog(Log* log);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_GRPC_LOG_H_
