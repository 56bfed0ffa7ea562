#include "client/rpc/socket_probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/rpc/grpc_options.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;

absl::Status ConnectError(int error) {
  const std::string words = std::strerror(error);
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(words);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(words);
    case EAGAIN:
    case EINPROGRESS:
    case ETIMEDOUT:
      return absl::DeadlineExceededError("no answer");
    default:
      return absl::UnavailableError(words);
  }
}

absl::StatusOr<int> Open(const sockaddr* name, socklen_t size, milliseconds patience) {
  const int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ConnectError(errno);
  timeval limit{};
  limit.tv_sec = patience.count() / 1000;
  limit.tv_usec = patience.count() % 1000 * 1000;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (connect(fd, name, size) == 0) return fd;
  const absl::Status status = ConnectError(errno);
  close(fd);
  return status;
}

absl::StatusOr<int> OpenUnix(const std::string& path, milliseconds patience) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return absl::NotFoundError("too long for a socket");
  path.copy(name.sun_path, path.size());
  const size_t end = path[0] == '\0' ? 0 : 1;  // a name in the file system ends with 0
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size() + end;
  return Open(reinterpret_cast<const sockaddr*>(&name), static_cast<socklen_t>(size), patience);
}

absl::StatusOr<int> OpenTcp(const Endpoint& endpoint, milliseconds patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
  if (error != 0) return absl::NotFoundError(gai_strerror(error));
  absl::StatusOr<int> fd = absl::NotFoundError("no address");
  for (const addrinfo* one = found; one != nullptr && !fd.ok(); one = one->ai_next) {
    fd = Open(one->ai_addr, one->ai_addrlen, patience);
  }
  freeaddrinfo(found);
  return fd;
}

std::string AddressOf(const sockaddr* name, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(name, size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return name->sa_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                     : absl::StrCat(host, ":", port);
}

bool IsMetrics(const Endpoint& endpoint, milliseconds patience) {
  const absl::StatusOr<ProbeSocket> socket = ProbeSocket::Connect(endpoint, patience);
  if (!socket.ok()) return false;
  socket->Send(absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", endpoint.host,
                            "\r\nConnection: close\r\n\r\n"));
  std::string answer;
  while (answer.size() < 4096) {
    const std::string more = socket->Receive(4096);
    if (more.empty()) break;
    answer += more;
    if (absl::StrContains(answer, "# TYPE ")) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(const std::string& address) {
  if (absl::StartsWith(address, "unix-abstract:")) {
    return Endpoint{"", "", std::string(1, '\0') + address.substr(std::strlen("unix-abstract:"))};
  }
  if (absl::StartsWith(address, "unix:")) {
    std::string path = address.substr(std::strlen("unix:"));
    if (absl::StartsWith(path, "//")) path.erase(0, 2);
    if (path.empty()) return FieldError("address", address, "must name a socket");
    return Endpoint{"", "", path};
  }
  std::string rest = address;
  for (const char* scheme : {"dns:", "ipv4:", "ipv6:"}) {
    if (!absl::StartsWith(rest, scheme)) continue;
    rest.erase(0, std::strlen(scheme));
    // "dns://resolver/name:port": who resolves is gRPC's business.
    if (absl::StartsWith(rest, "//")) rest.erase(0, rest.find('/', 2) + 1);
    rest = rest.substr(0, rest.find(','));
  }
  const size_t colon = rest.rfind(':');
  std::string host = colon != std::string::npos ? rest.substr(0, colon) : "";
  const bool in_brackets = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || colon + 1 == rest.size() || (!in_brackets && absl::StrContains(host, ':'))) {
    return FieldError("address", address, "must end with a port, as in \"host:7070\"");
  }
  return Endpoint{host, rest.substr(colon + 1), ""};
}

absl::StatusOr<std::vector<std::string>> LookUp(const std::string& address) {
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(address);
  if (!endpoint.ok()) return endpoint.status();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint->host.c_str(), endpoint->port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot look up ", endpoint->host, ": ", gai_strerror(error)));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const std::string numeric = AddressOf(one->ai_addr, one->ai_addrlen);
    const bool known = std::find(addresses.begin(), addresses.end(), numeric) != addresses.end();
    if (!numeric.empty() && !known) addresses.push_back(numeric);
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return absl::UnavailableError(absl::StrCat(endpoint->host, " has no address"));
  }
  return addresses;
}

absl::StatusOr<std::vector<std::string>> ListedAddresses(const std::string& address) {
  std::vector<std::string> addresses = absl::StrSplit(address.substr(address.find(':') + 1), ',');
  for (const std::string& one : addresses) {
    if (absl::Status status = ParseEndpoint(one).status(); !status.ok()) return status;
  }
  return addresses;
}

absl::StatusOr<std::vector<std::string>> Replicas(const std::string& address) {
  if (absl::Status status = ParseEndpoint(address).status(); !status.ok()) return status;
  if (!IsSpread(address)) return std::vector<std::string>{address};
  const bool is_name = absl::StartsWith(address, "dns:");
  const auto replicas = is_name ? LookUp(address) : ListedAddresses(address);
  if (!is_name && !replicas.ok()) return replicas.status();
  return replicas.ok() && replicas->size() > 1 ? *replicas : std::vector<std::string>{address};
}

absl::StatusOr<ProbeSocket> ProbeSocket::Connect(const Endpoint& endpoint, milliseconds patience) {
  const absl::StatusOr<int> fd =
      endpoint.host.empty() ? OpenUnix(endpoint.path, patience) : OpenTcp(endpoint, patience);
  if (!fd.ok()) return fd.status();
  return ProbeSocket(*fd);
}

ProbeSocket::ProbeSocket(ProbeSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ProbeSocket::~ProbeSocket() {
  if (fd_ >= 0) close(fd_);
}

bool ProbeSocket::Send(const std::string& bytes) const {
  return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::string ProbeSocket::Receive(size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

std::string Http2Hello() {
  // The preface and an empty frame of settings (RFC 9113, sections 3.4 and 6.5).
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\x04\0\0\0\0\0", 9);
}

bool LooksLikeHttp2(const std::string& answer) {
  // Frames start with their length, 3 bytes, and their type; a server's first one is its settings.
  return answer.size() >= 9 && answer[0] == '\0' && answer[3] == '\x04';
}

absl::StatusOr<PeerKind> ProbePeer(const Endpoint& endpoint, milliseconds patience) {
  const absl::StatusOr<ProbeSocket> socket = ProbeSocket::Connect(endpoint, patience);
  if (!socket.ok()) return socket.status();
  const bool sent = socket->Send(Http2Hello());
  errno = 0;
  const std::string answer = sent ? socket->Receive(64) : "";
  if (LooksLikeHttp2(answer)) return PeerKind::kHttp2;
  if (absl::StartsWith(answer, "HTTP/1")) {
    return IsMetrics(endpoint, patience) ? PeerKind::kMetrics : PeerKind::kHttp1;
  }
  const bool silent = answer.empty() && (errno == EAGAIN || errno == EWOULDBLOCK);
  // An alert (RFC 8446, section 5.1), or hanging up on what is no handshake.
  const bool tls = answer.empty() || absl::StartsWith(answer, "\x15\x03");
  return tls && !silent ? PeerKind::kTls : PeerKind::kSilent;
}

}  // namespace stowage
