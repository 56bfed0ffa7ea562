// Arbitrary text as the address of a server or of a Redis: refused, or a host and its port, or a
// path.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/socket_probe.h"
#include "server/store/redis_connection.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

void CheckServer(const std::string& text) {
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(text);
  if (!endpoint.ok()) {
    Require(absl::IsInvalidArgument(endpoint.status()), "bad text is a bad argument", text);
    return;
  }
  if (endpoint->path.empty()) {
    Require(!endpoint->host.empty() && !endpoint->port.empty(), "a host has a port", text);
  } else {
    Require(endpoint->host.empty() && endpoint->port.empty(), "a path is alone", text);
    Require(absl::StartsWith(text, "unix"), "a path is said to be one", text);
  }
}

void CheckRedis(const std::string& text) {
  const absl::StatusOr<RedisAddress> address = ParseRedisAddress(text);
  if (!address.ok()) {
    Require(absl::IsInvalidArgument(address.status()), "bad text is a bad argument", text);
    return;
  }
  Require(address->sentinels.empty() == address->primary.empty(), "sentinels know a name", text);
  const int ways = (address->sentinels.empty() ? 0 : 1) + (address->nodes.empty() ? 0 : 1) +
                   (address->host_or_path.empty() ? 0 : 1);
  Require(ways == 1, "it is somewhere, in one way", text);
  const std::vector<RedisHost> hosts = HostsOf(*address);
  Require(hosts.empty() == (text[0] == '/'), "a path has no host", text);
  for (const RedisHost& host : hosts) {
    Require(!host.host.empty(), "a host has a name", text);
    Require(host.port >= 1 && host.port <= 65535, "a port is one", text);
  }
  Require(address->database >= 0, "a database is a number", text);
  if (absl::StrContains(text, "://")) return;
  Require(address->user.empty() && address->password.empty() && address->database == 0,
          "what is no URL says nothing else", text);
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  stowage::CheckServer(text);
  stowage::CheckRedis(text);
  return 0;
}
