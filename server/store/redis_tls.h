// TLS 1.2 or later to a Redis, as bytes in and bytes out: who owns the socket moves them
// (redis_connection.h), with its deadlines.
#ifndef STOWAGE_SERVER_STORE_REDIS_TLS_H_
#define STOWAGE_SERVER_STORE_REDIS_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/redis_address.h"

struct ssl_st;  // OpenSSL's SSL

namespace stowage {

// Not thread-safe.
class RedisTls {
 public:
  // Reads the files, as they are by now. `server`: the name or the address that the server's certificate must
  // be for. UNAVAILABLE, with the file, where one cannot be used.
  static absl::StatusOr<std::unique_ptr<RedisTls>> Make(const RedisTlsFiles& files,
                                                        const std::string& server);
  ~RedisTls();
  RedisTls(const RedisTls&) = delete;
  RedisTls& operator=(const RedisTls&) = delete;

  // Shakes hands as far as what was received allows. True: the server is who it should be, and Say may be called.
  // UNAVAILABLE with what is wrong. In either case there may be something to send.
  absl::StatusOr<bool> ShakeHands();

  // What the server sent, in pieces of any size.
  void Receive(absl::string_view bytes);
  // What of it can be read by now is appended. UNAVAILABLE: it is none, or the server has ended it.
  absl::Status Hear(std::string* text);
  absl::Status Say(absl::string_view text);
  // What is to be sent to the server, all of it at once.
  std::string ToSend();

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };

  explicit RedisTls(ssl_st* session) : session_(session) {}

  const std::unique_ptr<ssl_st, Free> session_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_TLS_H_
