#include "client/rpc/doctor.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/rpc/credentials.h"
#include "client/rpc/doctor_checks.h"
#include "client/rpc/socket_probe.h"

namespace stowage {
namespace {

std::string Printable(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

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

bool Diagnosis::healthy() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.kind == Finding::Kind::kWrong; });
}

void Examination::Add(Finding::Kind kind, const std::string& what, const std::string& remedy) {
  diagnosis.findings.push_back({kind, Printable(what), Printable(remedy)});
}

bool CheckOptions(Examination* examination) {
  const GrpcOptions& server = examination->server;
  absl::Status status = CheckGrpcOptions(server);
  if (status.ok()) status = ParseEndpoint(server.address).status();
  if (status.ok()) status = ReadTlsFiles(server.tls).status();
  if (status.ok()) status = BearerToken(server).Get().status();
  if (status.ok()) return true;
  return examination->Wrong(std::string(status.message()), "mend the option or the file");
}

bool CheckEnvironment(Examination* examination) {
  std::vector<std::string> proxies;
  for (const char* name :
       {"grpc_proxy", "https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') proxies.push_back(name);
  }
  if (!proxies.empty() && !IsUnixAddress(examination->server.address)) {
    examination->Note(
        absl::StrCat(absl::StrJoin(proxies, ", "), " name a proxy: calls to stowaged go past it"),
        "if the server is to be had through the proxy alone, run stowaged on this side of it");
  }
  return true;
}

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

Diagnosis Diagnose(const GrpcOptions& server, const DoctorOptions& options) {
  Examination examination(server, options);
  for (const auto check : {CheckOptions, CheckEnvironment, CheckPeer, CheckTls, CheckService}) {
    if (!check(&examination)) break;
  }
  return std::move(examination.diagnosis);
}

std::string DiagnosisText(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings) {
    const char* const kind = finding.kind == Finding::Kind::kGood   ? "good   "
                             : finding.kind == Finding::Kind::kNote ? "note   "
                                                                    : "WRONG  ";
    absl::StrAppend(&text, kind, finding.what, "\n");
    if (!finding.remedy.empty()) absl::StrAppend(&text, "       ", finding.remedy, "\n");
  }
  return text;
}

}  // namespace stowage
