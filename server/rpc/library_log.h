// What gRPC and protobuf themselves have to say (a handshake that failed, a string that is not UTF-8),
// as events "grpc" and "protobuf" of the log. Left to themselves they write to standard error, each
// line on the thread of the call that caused it: whoever sends bad bytes could fill the pipe, and then
// every call would wait for its reader.
#ifndef STOWAGE_SERVER_RPC_LIBRARY_LOG_H_
#define STOWAGE_SERVER_RPC_LIBRARY_LOG_H_

#include "server/observe/log.h"

namespace stowage {

// As long as it lives; at most one of them at a time.
class LibraryLog {
 public:
  explicit LibraryLog(Log* log);
  ~LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_LIBRARY_LOG_H_
