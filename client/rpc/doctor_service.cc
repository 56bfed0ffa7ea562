#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/rpc/doctor_checks.h"
#include "client/rpc/grpc_connection.h"
#include "solvers/base/version.h"
#include "solvers/model/canonical.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;

bool Refused(Examination* examination, const absl::Status& status) {
  const std::string words(status.message());
  const bool has_token =
      !examination->server.token.empty() || !examination->server.token_file.empty();
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      return examination->Wrong(
          absl::StrCat("the server does not know the caller: ", words),
          has_token ? "give a token that the server's file of tokens has, or reload that file"
                    : "give a token (token_file) or a client certificate");
    case absl::StatusCode::kPermissionDenied:
      return examination->Wrong(absl::StrCat("the caller may not even ask: ", words),
                                "have the server's administrator give it a role");
    case absl::StatusCode::kUnimplemented:
      return examination->Wrong(
          absl::StrCat("a server of gRPC, not stowaged: ", words),
          "give the port that stowaged listens at; an older one must be upgraded");
    case absl::StatusCode::kInternal:
      return examination->Wrong(words, "the server is of another version or broken: upgrade it");
    default:
      return examination->Wrong(absl::StrCat("the server does not answer: ",
                                             absl::StatusCodeToString(status.code()), ": ", words),
                                "look into its log; it may be starting, draining or overloaded");
  }
}

bool CheckVersions(Examination* examination, const Capabilities& server) {
  if (server.key_encoding_version != kEncodingVersion) {
    return examination->Wrong(
        absl::StrCat("the server keeps plans under keys of version ", server.key_encoding_version,
                     ", this client asks with version ", kEncodingVersion,
                     ": no plan will be found"),
        server.key_encoding_version > kEncodingVersion ? "upgrade this client"
                                                       : "upgrade the server");
  }
  if (server.server_version != kVersion) {
    examination->Note(absl::StrCat("the server is of version ", server.server_version,
                                   ", this client of ", kVersion),
                      "they work together; upgrade the older one when there is time");
  }
  return true;
}

bool CheckRights(Examination* examination, const Capabilities& server) {
  if (server.role == "reader") {
    return examination->Wrong(
        absl::StrCat(server.identity, " is a reader: it may look plans up, not have them made"),
        "have the server's administrator make it a planner");
  }
  if (!server.identity.empty()) {
    examination->Good(absl::StrCat("the server takes the caller for ", server.identity, ", ",
                                   server.role, " of tenant \"", server.tenant, "\""));
  }
  return true;
}

bool CheckCalls(Examination* examination, const Capabilities& server) {
  for (const char* needed : {"GetPlan", "ComputePlan"}) {
    const auto& rpcs = server.implemented_rpcs;
    if (std::find(rpcs.begin(), rpcs.end(), needed) != rpcs.end()) continue;
    return examination->Wrong(absl::StrCat("the server does not have ", needed),
                              "upgrade the server");
  }
  return true;
}

}  // namespace

bool CheckService(Examination* examination) {
  const auto connection = MakeGrpcConnection(examination->server);
  Clock::duration fastest = Clock::duration::max();
  absl::StatusOr<Capabilities> server = absl::UnknownError("");
  // The first one connects.
  for (int i = 0; i < 4; ++i) {
    const Clock::time_point start = Clock::now();
    server = connection->GetCapabilities(CallOptions::Within(examination->options.patience));
    if (!server.ok()) return Refused(examination, server.status());
    fastest = std::min(fastest, Clock::now() - start);
  }
  const double milliseconds = std::chrono::duration<double, std::milli>(fastest).count();
  examination->Good(
      absl::StrCat(connection->name(), " answers, version ", server->server_version,
                   server->build.empty() ? "" : absl::StrCat(" (", server->build, ")"), ", in ",
                   absl::StrFormat("%.1f ms", milliseconds)));
  if (fastest > examination->options.slow_link) {
    examination->Note(
        "the link to the server is slow: plans are small, profiles of large graphs "
        "are not",
        "run stowaged in the same cluster as the jobs");
  }
  return CheckVersions(examination, *server) && CheckRights(examination, *server) &&
         CheckCalls(examination, *server);
}

}  // namespace stowage
