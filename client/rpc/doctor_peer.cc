#include "absl/strings/str_cat.h"
#include "client/rpc/doctor_checks.h"
#include "client/rpc/socket_probe.h"

namespace stowage {
namespace {

bool Unreachable(Examination* examination, const absl::Status& status) {
  const std::string& address = examination->server.address;
  const std::string words(status.message());
  if (absl::IsNotFound(status) && IsUnixAddress(address)) {
    return examination->Wrong(absl::StrCat("there is no socket at ", address, ": ", words),
                              "start stowaged, or give the path that it listens at");
  }
  if (absl::IsNotFound(status)) {
    return examination->Wrong(absl::StrCat("the name in ", address, " is unknown: ", words),
                              "look at its spelling, and at the DNS of this machine or pod");
  }
  if (absl::IsPermissionDenied(status)) {
    return examination->Wrong(absl::StrCat("this user may not open ", address, ": ", words),
                              "give it the right to read and write the socket");
  }
  if (absl::IsDeadlineExceeded(status)) {
    return examination->Wrong(
        absl::StrCat("nothing answers at ", address, " within ",
                     examination->options.patience.count(), " ms"),
        "look at the address, and at firewalls and network policies on the way");
  }
  return examination->Wrong(absl::StrCat("nothing listens at ", address, ": ", words),
                            "start stowaged there, or give the port that it listens at");
}

bool Stranger(Examination* examination, PeerKind peer) {
  const std::string& address = examination->server.address;
  if (peer == PeerKind::kMetrics) {
    return examination->Wrong(absl::StrCat(address, " is a port for metrics, not for plans"),
                              "give the port of stowaged's RPCs instead of the one for metrics");
  }
  if (peer == PeerKind::kHttp1) {
    return examination->Wrong(absl::StrCat(address, " is a web server, not stowaged"),
                              "give the port that stowaged listens at");
  }
  return examination->Wrong(
      absl::StrCat("what listens at ", address, " takes connections and says nothing"),
      "give the port that stowaged listens at; if it is, it hangs: restart it");
}

}  // namespace

bool CheckPeer(Examination* examination) {
  const GrpcOptions& server = examination->server;
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(server.address);
  const absl::StatusOr<PeerKind> peer = ProbePeer(*endpoint, examination->options.patience);
  if (!peer.ok()) return Unreachable(examination, peer.status());
  switch (*peer) {
    case PeerKind::kHttp2:
      if (!server.tls.enabled) return true;
      return examination->Wrong(absl::StrCat(server.address, " speaks without TLS"),
                                "switch TLS off here, or on at the server");
    case PeerKind::kTls:
      if (server.tls.enabled) return true;
      return examination->Wrong(absl::StrCat(server.address, " does not speak without TLS"),
                                "switch TLS on, with the CA that signed the server's certificate");
    case PeerKind::kHttp1:
    case PeerKind::kMetrics:
    case PeerKind::kSilent:
      break;
  }
  return Stranger(examination, *peer);
}

}  // namespace stowage
