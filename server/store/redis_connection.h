// One connection to a Redis server, with a deadline on everything.
//
// The only file that includes hiredis is redis_connection.cc. hiredis connects, formats and parses;
// bytes are sent and received here: its own calls bound each read, not the whole reply, and raise
// SIGPIPE. Of TLS (redis_tls.h) they are what is sealed.
#ifndef STOWAGE_SERVER_STORE_REDIS_CONNECTION_H_
#define STOWAGE_SERVER_STORE_REDIS_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/name_lookup.h"
#include "server/store/redis_address.h"
#include "server/store/redis_tls.h"

struct redisContext;

namespace stowage {

// The first word of what a server says that has become a replica.
inline constexpr char kReplicaRefuses[] = "READONLY";

using RedisCommand = std::vector<std::string>;

struct RedisReply {
  enum class Kind { kNothing, kInteger, kText, kList, kError };
  Kind kind = Kind::kNothing;
  int64_t integer = 0;
  std::string text;  // of an error: its word, such as "WRONGTYPE", nothing else
  std::vector<RedisReply> list;
  RedisHost
      where;  // of MOVED and ASK: who has it; no host: who said so has another port; port 0: not said
};

// What an error's first word means: UNAVAILABLE for a server that cannot serve at all now (NOAUTH,
// LOADING, MOVED, ...), FAILED_PRECONDITION for one that takes no writes (READONLY, OOM, MISCONF),
// INTERNAL for what is wrong with one command (WRONGTYPE). OK for what is no error. Messages are
// texts of ours: a server's own may repeat arguments.
absl::Status StatusOf(const RedisReply& reply);

// Not thread-safe.
class RedisConnection {
 public:
  using Clock = std::chrono::steady_clock;

  // Connected, by TLS where the address says so, authenticated, in its database. UNAVAILABLE with the reason.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(const RedisAddress& address,
                                                               Clock::time_point deadline,
                                                               NameLookup* names = SystemNames());
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Sends all commands at once and returns a reply to each. `deadline` moves by what the bytes take
  // that have passed, at kLeastRate: a large entry is late only when nothing moves. UNAVAILABLE: no
  // answer in time, or the connection broke. RESOURCE_EXHAUSTED: the replies are over `largest` bytes. After an error of
  // either kind the connection is of no further use: a late reply would be taken for the next one.
  absl::StatusOr<std::vector<RedisReply>> Run(const std::vector<RedisCommand>& commands,
                                              Clock::time_point deadline, size_t largest);

  // False when the other side has closed it, or sent what nobody asked for.
  bool IsQuiet() const;

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  static constexpr int64_t kLeastRate = int64_t{8} << 20;  // bytes per second

  explicit RedisConnection(redisContext* context) : context_(context) {}

  // Connected, and nothing else yet. The addresses of a name are tried one after the other: one that is silent leaves
  // the others their share of the time.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Connect(const RedisAddress& address,
                                                                  Clock::time_point deadline,
                                                                  NameLookup* names);
  // What hiredis has come to, whose owner it becomes.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Checked(redisContext* context);
  absl::Status StartTls(const RedisAddress& address, Clock::time_point deadline);
  absl::Status Introduce(const RedisAddress& address, Clock::time_point deadline);
  // All move the deadline.
  absl::Status Send(const std::string& bytes, Clock::time_point* deadline);
  absl::Status SendSealed(Clock::time_point* deadline);  // what TLS has to say
  // What has come, some bytes at least, as it came.
  absl::StatusOr<absl::string_view> Receive(Clock::time_point* deadline);
  // What of it is of replies is handed to the parser.
  absl::Status ReceiveReplies(Clock::time_point* deadline);
  absl::Status WaitFor(short events, Clock::time_point deadline);

  std::unique_ptr<redisContext, Free> context_;
  std::unique_ptr<RedisTls> tls_;  // null: none
  std::string received_;           // room for it
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_CONNECTION_H_
