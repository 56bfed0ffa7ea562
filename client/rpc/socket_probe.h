// Looks at what listens at an address, below gRPC, which only ever says UNAVAILABLE. Internal to
// client/rpc.
#ifndef STOWAGE_CLIENT_RPC_SOCKET_PROBE_H_
#define STOWAGE_CLIENT_RPC_SOCKET_PROBE_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

// What of an address a socket is opened to.
struct Endpoint {
  std::string host;  // a name or an IP address; empty for a unix socket
  std::string port;
  std::string path;  // of a unix socket; '\0' and a name for an abstract one
};

// "host:port", "[::1]:port", "dns:///host:port", "ipv4:..." (its first), "unix:/path".
// INVALID_ARGUMENT for an address without a port.
absl::StatusOr<Endpoint> ParseEndpoint(const std::string& address);

// What a name of "dns:" stands for now, at least one "1.2.3.4:7070" or "[::1]:7070". Waits for the resolver of this machine.
// UNAVAILABLE with its reason; errors of ParseEndpoint.
absl::StatusOr<std::vector<std::string>> LookUp(const std::string& address);

// The parts of "ipv4:..." and "ipv6:...". Errors of ParseEndpoint for each.
absl::StatusOr<std::vector<std::string>> ListedAddresses(const std::string& address);

// Those that calls to `address` are spread over, each an address of its own: the parts of a list, what a
// name of "dns:" stands for. Else, and for a name that is unknown, `address` alone. Waits for the
// resolver of this machine. Errors of ParseEndpoint for each.
absl::StatusOr<std::vector<std::string>> Replicas(const std::string& address);

// Closed by its destructor.
class ProbeSocket {
 public:
  // Every step takes at most `patience`. NOT_FOUND: the name is unknown, or there is no such socket
  // file; UNAVAILABLE: nothing listens there; DEADLINE_EXCEEDED: no answer; PERMISSION_DENIED.
  static absl::StatusOr<ProbeSocket> Connect(const Endpoint& endpoint,
                                             std::chrono::milliseconds patience);
  ProbeSocket(ProbeSocket&& other) noexcept;
  ProbeSocket& operator=(ProbeSocket&&) = delete;
  ~ProbeSocket();

  int fd() const { return fd_; }
  bool Send(const std::string& bytes) const;
  // At most `size` bytes, whatever comes first; empty at the end and after `patience`.
  std::string Receive(size_t size) const;

 private:
  explicit ProbeSocket(int fd) : fd_(fd) {}

  int fd_;
};

enum class PeerKind {
  kHttp2,    // in the clear, as a server of gRPC without TLS
  kHttp1,    // some web server
  kMetrics,  // of which /metrics is read by Prometheus
  kTls,      // wants TLS, or hangs up on what is none
  kSilent,   // says nothing
};

// Says hello as an HTTP/2 client does and looks at the answer. At most a few kilobytes are read.
// Errors as of ProbeSocket::Connect.
absl::StatusOr<PeerKind> ProbePeer(const Endpoint& endpoint, std::chrono::milliseconds patience);

// The first words of a client of HTTP/2.
std::string Http2Hello();
bool LooksLikeHttp2(const std::string& answer);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_SOCKET_PROBE_H_
