#include "client/rpc/server_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, server, "",
          "stowaged to ask (\"host:port\", \"unix:/path\"); empty asks none");
ABSL_FLAG(bool, tls, false, "reach the server over TLS");
ABSL_FLAG(std::string, ca_file, "",
          "PEM file of the CAs that may have signed the server's certificate; empty: the system's");
ABSL_FLAG(std::string, cert_file, "", "PEM file of the client's certificate, if the server asks");
ABSL_FLAG(std::string, key_file, "", "PEM file of its key");
ABSL_FLAG(std::string, server_name, "",
          "name that the server's certificate must be for; empty: that of --server");
ABSL_FLAG(std::string, token_file, "", "file of the bearer token; sent over TLS and unix sockets");

namespace stowage {

std::vector<std::string> WithServerFlags(std::vector<std::string> flags) {
  for (const char* flag :
       {"server", "tls", "ca_file", "cert_file", "key_file", "server_name", "token_file"}) {
    flags.push_back(flag);
  }
  return flags;
}

GrpcOptions ServerFromFlags() {
  GrpcOptions options;
  options.address = absl::GetFlag(FLAGS_server);
  options.tls.enabled = absl::GetFlag(FLAGS_tls);
  options.tls.ca_file = absl::GetFlag(FLAGS_ca_file);
  options.tls.cert_file = absl::GetFlag(FLAGS_cert_file);
  options.tls.key_file = absl::GetFlag(FLAGS_key_file);
  options.tls.server_name = absl::GetFlag(FLAGS_server_name);
  options.token_file = absl::GetFlag(FLAGS_token_file);
  return options;
}

}  // namespace stowage
