#include "client/rpc/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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

// One of several servers that an address stands for.
struct Replica {
  std::string address;
  Diagnosis diagnosis;
  bool connects = false;  // calls go past one that does not
};

Replica LookAt(const std::string& address, const Examination& all) {
  GrpcOptions server = all.server;
  server.address = address;
  // Certificates are for the name, whichever address they are shown at.
  if (server.tls.enabled && server.tls.server_name.empty() &&
      absl::StartsWith(all.server.address, "dns:")) {
    server.tls.server_name = ParseEndpoint(all.server.address)->host;
  }
  Examination examination(server, all.options);
  const bool connects = CheckPeer(&examination) && CheckTls(&examination);
  if (connects) CheckService(&examination);
  return {address, std::move(examination.diagnosis), connects};
}

// What is wrong with one that calls go past is a note, as long as there are others.
void Report(const Replica& replica, bool others, Examination* all) {
  for (const Finding& finding : replica.diagnosis.findings) {
    const bool passed_over = finding.kind == Finding::Kind::kWrong && !replica.connects && others;
    const bool named = absl::StrContains(finding.what, replica.address);
    all->Add(passed_over ? Finding::Kind::kNote : finding.kind,
             absl::StrCat(named ? "" : absl::StrCat(replica.address, ": "), finding.what,
                          passed_over ? "; calls go to the others" : ""),
             finding.remedy);
  }
}

void LookAtEach(const std::vector<std::string>& addresses, Examination* all) {
  all->Good(absl::StrCat(all->server.address, " stands for ", addresses.size(),
                         " servers: ", absl::StrJoin(addresses, ", ")));
  std::vector<Replica> replicas;
  for (const std::string& address : addresses) replicas.push_back(LookAt(address, *all));
  const bool others = std::any_of(replicas.begin(), replicas.end(),
                                  [](const Replica& replica) { return replica.connects; });
  for (const Replica& replica : replicas) Report(replica, others, all);
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
  if (status.ok()) status = Replicas(server.address).status();
  if (status.ok()) status = ReadTlsFiles(server.tls).status();
  if (status.ok()) status = BearerToken(server).Get().status();
  if (status.ok()) return true;
  return examination->Wrong(std::string(status.message()), "mend the option or the file");
}

void CheckEnvironment(Examination* examination) {
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
}

Diagnosis Diagnose(const GrpcOptions& server, const DoctorOptions& options) {
  Examination examination(server, options);
  if (!CheckOptions(&examination)) return std::move(examination.diagnosis);
  CheckEnvironment(&examination);
  const absl::StatusOr<std::vector<std::string>> addresses = Replicas(server.address);
  if (addresses->size() > 1) {
    LookAtEach(*addresses, &examination);
  } else {
    for (const auto check : {CheckPeer, CheckTls, CheckService}) {
      if (!check(&examination)) break;
    }
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
