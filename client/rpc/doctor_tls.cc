#include "absl/strings/str_cat.h"
#include "client/rpc/credentials.h"
#include "client/rpc/doctor_checks.h"
#include "client/rpc/socket_probe.h"
#include "client/rpc/tls_probe.h"

namespace stowage {
namespace {

// gRPC calls every unix socket so.
constexpr char kUnixName[] = "localhost";

// What is wrong and what to do. `name` is the one that the certificate must be for.
bool Explain(Examination* examination, const TlsFinding& finding, const std::string& name) {
  const std::string& address = examination->server.address;
  const TlsOptions& tls = examination->server.tls;
  const auto wrong = [&](const std::string& what, const std::string& remedy) {
    return examination->Wrong(absl::StrCat(what, ": ", finding.detail), remedy);
  };
  const std::string certificate = absl::StrCat("the certificate of ", address);
  switch (finding.kind) {
    case TlsFinding::Kind::kGood:
      examination->Good(absl::StrCat("TLS: ", certificate, " is for ", name, " and trusted"));
      return true;
    case TlsFinding::Kind::kNotTls:
      return wrong(absl::StrCat(address, " does not shake hands as a TLS server"),
                   "give the port that stowaged listens at, or look into its log");
    case TlsFinding::Kind::kUnknownCa:
      return wrong(absl::StrCat(certificate, " is signed by nobody whom ",
                                tls.ca_file.empty() ? "this system" : tls.ca_file, " names"),
                   "name the CA that signed it (ca_file)");
    case TlsFinding::Kind::kExpired:
      return wrong(absl::StrCat(certificate, " has expired"),
                   "renew it; if it has not, set the clock of this machine");
    case TlsFinding::Kind::kNotYetValid:
      return wrong(absl::StrCat(certificate, " is not valid yet"),
                   "set the clock of this machine, or that of who signed it");
    case TlsFinding::Kind::kWrongName:
      return wrong(absl::StrCat(certificate, " is not for ", name),
                   "address the server by a name that the certificate is for, or give that name "
                   "(server_name)");
    case TlsFinding::Kind::kBadCertificate:
      return wrong(absl::StrCat(certificate, " is not good"), "issue another one");
    case TlsFinding::Kind::kBadClientFiles:
      return wrong(
          absl::StrCat(tls.cert_file, " and ", tls.key_file, " are not a certificate and its key"),
          "give the PEM files that belong together");
    case TlsFinding::Kind::kClientCertWanted:
      return wrong(absl::StrCat(address, " wants a client certificate and got none"),
                   "give one, with its key (cert_file, key_file)");
    case TlsFinding::Kind::kClientCertRefused:
      return wrong(absl::StrCat(address, " refuses the client certificate ", tls.cert_file),
                   "give one that a CA of the server's signed and that has not expired");
    case TlsFinding::Kind::kNotHttp2:
      return wrong(absl::StrCat(address, " is a TLS server, not stowaged"),
                   "give the port that stowaged listens at");
  }
  return false;
}

}  // namespace

bool CheckTls(Examination* examination) {
  const GrpcOptions& server = examination->server;
  if (!server.tls.enabled) return true;
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(server.address);
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(server.tls);
  std::string name = server.tls.server_name;
  if (name.empty()) name = endpoint->host.empty() ? kUnixName : endpoint->host;
  const absl::StatusOr<TlsFinding> finding =
      ProbeTls(*endpoint, name, *files, examination->options.patience);
  if (!finding.ok()) {
    return examination->Wrong(
        absl::StrCat(server.address, " went away: ", std::string(finding.status().message())),
        "try again; look into its log");
  }
  return Explain(examination, *finding, name);
}

}  // namespace stowage
