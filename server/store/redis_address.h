// Where a Redis is, and as whom to talk to it.
#ifndef STOWAGE_SERVER_STORE_REDIS_ADDRESS_H_
#define STOWAGE_SERVER_STORE_REDIS_ADDRESS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stowage {

struct RedisHost {
  std::string host;
  int port = 0;
};

// PEM files, read again for each new connection.
struct RedisTlsFiles {
  std::string ca;    // authorities of servers' certificates; empty: those of the system
  std::string cert;  // of this client, with its chain; empty: none
  std::string key;
  std::string server_name;  // that the server's certificate must be for; empty: its host
};

struct RedisAddress {
  // A host's address or name (name_lookup.h), or the path of a unix socket.
  std::string host_or_path;
  int port = 0;          // 0: a unix socket
  std::string user;      // may be empty: the default one
  std::string password;  // may be empty; appears in no message
  // Where there is one, each new connection takes the password that it says by then, without blanks around
  // it: one that is changed there and in Redis holds without a restart. If it cannot be read, or says
  // nothing, `password` holds.
  std::string password_file = "";
  int database = 0;
  // Where there are any, host and port are where these say that the primary of this name is.
  std::vector<RedisHost> sentinels = {};
  std::string primary = "";
  // What sentinels are shown, as above; without any they are asked without.
  std::string sentinel_user = "";
  std::string sentinel_password = "";
  std::string sentinel_password_file = "";
  // Where there are any, some servers of a cluster, of which the others are asked for.
  std::vector<RedisHost> nodes = {};
  // Where there is one, all connections are of TLS, and the certificate of whoever is connected to must be for
  // its host as it is written, or as a sentinel or the cluster says it.
  std::optional<RedisTlsFiles> tls = std::nullopt;
};

// "host:port", "[address]:port", "/path/of/a/socket", or a URL:
//
//   redis://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE]
//   redis+sentinel://[[USER][:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]/PRIMARY[/DATABASE]
//   redis+cluster://[[USER][:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]
//   rediss://, rediss+sentinel://, rediss+cluster://: the same with TLS
//
// where HOST may be an address of IPv6 in brackets, PORT is 6379 unless it is said (26379 of a sentinel), DATABASE
// is 0, PRIMARY is what sentinels call it, and what may not stand in a URL is %XX in USER, PASSWORD and PRIMARY.
// INVALID_ARGUMENT for anything else, with what is wrong and no part that may be a password.
absl::StatusOr<RedisAddress> ParseRedisAddress(const std::string& text);

// The hosts that the address names; none of a unix socket.
std::vector<RedisHost> HostsOf(const RedisAddress& address);

// The text with *** for what may be a password, to be shown.
std::string WithoutPassword(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_ADDRESS_H_
