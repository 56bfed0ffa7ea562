// The name of one call, in the log of whoever made it and of whoever answered.
#ifndef STOWAGE_SERVER_RPC_REQUEST_ID_H_
#define STOWAGE_SERVER_RPC_REQUEST_ID_H_

#include <grpcpp/support/string_ref.h>

#include <cstdint>
#include <map>
#include <string>

namespace stowage {

inline constexpr char kRequestIdHeader[] = "x-request-id";

// What the caller sent, if it is 1 to 64 of A-Z a-z 0-9 . _ -; else a new one of 16 hexadecimal
// digits, which are written when somebody asks for them. A value.
class RequestId {
 public:
  explicit RequestId(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

  bool is_callers() const { return !callers_.empty(); }
  std::string text() const;

 private:
  std::string callers_;
  uint64_t drawn_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_REQUEST_ID_H_
