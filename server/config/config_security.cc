#include "server/config/config_security.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/auth/certificate_check.h"
#include "server/auth/file_watcher.h"
#include "server/auth/san_table.h"
#include "server/auth/token_file.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"

namespace stowage {
namespace {

absl::Status Needs(const ConfigSources& sources, const std::string& flag, const std::string& value,
                   bool given, const std::string& what) {
  if (value.empty() || given) return absl::OkStatus();
  return FlagError(sources, flag, value, absl::StrCat("needs ", what));
}

// Flags that mean nothing alone.
absl::Status CheckTogether(const ConfigSources& sources) {
  const std::string cert = absl::GetFlag(FLAGS_tls_cert);
  const std::string ca = absl::GetFlag(FLAGS_tls_client_ca);
  const std::string names = absl::StrJoin(absl::GetFlag(FLAGS_allow_san), ",");
  const std::string identities = absl::GetFlag(FLAGS_identities_file);
  const absl::Status checks[] = {
      Needs(sources, "tls_cert", cert, !absl::GetFlag(FLAGS_tls_key).empty(), "--tls_key"),
      Needs(sources, "tls_key", absl::GetFlag(FLAGS_tls_key), !cert.empty(), "--tls_cert"),
      Needs(sources, "tls_client_ca", ca, !cert.empty(), "--tls_cert"),
      Needs(sources, "tls_client_ca", ca, !names.empty() || !identities.empty(),
            "--allow_san or --identities_file; --allow_san=* lets in every certificate of these "
            "authorities"),
      Needs(sources, "allow_san", names, !ca.empty(), "--tls_client_ca"),
      Needs(sources, "identities_file", identities, !ca.empty(), "--tls_client_ca"),
  };
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Whether others than this machine's users get in, or could listen.
absl::Status CheckOpenness(const ConfigSources& sources) {
  const std::string listen = absl::GetFlag(FLAGS_listen);
  if (IsLocalAddress(listen)) return absl::OkStatus();
  const bool tls = TlsOf().enabled();
  const bool identified = AuthOf().wants_identity();
  if (identified && !tls) {
    return FlagError(sources, "listen", listen,
                     "others reach this address, and without TLS tokens would be sent for all to "
                     "read: set --tls_cert and --tls_key, or listen on 127.0.0.1 or unix:PATH");
  }
  if (absl::GetFlag(FLAGS_insecure_network) || (tls && identified)) return absl::OkStatus();
  return FlagError(
      sources, "listen", listen,
      absl::StrCat(
          "others reach this address, and everyone may read, change and delete plans: set ",
          tls ? "" : "--tls_cert and --tls_key, and ",
          "--token_file or --tls_client_ca; or --insecure_network where all who reach it "
          "are trusted"));
}

absl::Status CheckFiles(const ConfigSources& sources) {
  const ServerTlsOptions tls = TlsOf();
  const AuthOptions auth = AuthOf();
  const auto explain = [&sources](const std::string& flag, const std::string& value,
                                  const absl::Status& status) {
    if (status.ok()) return status;
    return FlagError(sources, flag, value, std::string(status.message()));
  };
  absl::Status status;
  if (tls.enabled()) {
    status = explain("tls_cert", tls.cert, ReadServerCertificate(tls.cert, tls.key).status());
  }
  if (status.ok() && !tls.client_ca.empty()) {
    status = explain("tls_client_ca", tls.client_ca, ReadAuthorities(tls.client_ca).status());
  }
  if (status.ok() && !auth.token_file.empty()) {
    const auto text = ReadSmallFile(auth.token_file);
    status = text.ok() ? TokenTable::Parse(auth.token_file, *text).status() : text.status();
    status = explain("token_file", auth.token_file, status);
  }
  if (!status.ok() || !auth.client_certificates) return status;
  status = explain("allow_san", absl::StrJoin(auth.allow_san, ","),
                   SanTable::Parse(auth.allow_san, "", "").status());
  if (!status.ok() || auth.identities_file.empty()) return status;
  const auto text = ReadSmallFile(auth.identities_file);
  status = text.ok() ? SanTable::Parse({}, auth.identities_file, *text).status() : text.status();
  return explain("identities_file", auth.identities_file, status);
}

absl::Status CheckSocketMode(const ConfigSources& sources) {
  if (UnixSocketMode()) return absl::OkStatus();
  return FlagError(sources, "unix_socket_mode", absl::GetFlag(FLAGS_unix_socket_mode),
                   "must be permissions in octal, 0 to 0777");
}

}  // namespace

absl::Status CheckSecurity(const ConfigSources& sources) {
  for (const auto& check : {CheckTogether, CheckOpenness, CheckFiles, CheckSocketMode}) {
    if (absl::Status status = check(sources); !status.ok()) return status;
  }
  return absl::OkStatus();
}

ServerTlsOptions TlsOf() {
  ServerTlsOptions tls;
  tls.cert = absl::GetFlag(FLAGS_tls_cert);
  tls.key = absl::GetFlag(FLAGS_tls_key);
  tls.client_ca = absl::GetFlag(FLAGS_tls_client_ca);
  tls.require_client_certificate = absl::GetFlag(FLAGS_token_file).empty();
  tls.reload_interval = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_reload_interval));
  return tls;
}

AuthOptions AuthOf() {
  AuthOptions auth;
  auth.token_file = absl::GetFlag(FLAGS_token_file);
  auth.client_certificates = !absl::GetFlag(FLAGS_tls_client_ca).empty();
  auth.allow_san = absl::GetFlag(FLAGS_allow_san);
  auth.identities_file = absl::GetFlag(FLAGS_identities_file);
  auth.reload_interval = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_reload_interval));
  return auth;
}

std::optional<mode_t> UnixSocketMode() {
  const std::string text = absl::GetFlag(FLAGS_unix_socket_mode);
  const bool octal =
      !text.empty() && text.size() <= 4 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  if (!octal) return std::nullopt;
  const auto mode = static_cast<mode_t>(std::stoul(text, nullptr, 8));
  return mode <= 0777 ? std::optional<mode_t>(mode) : std::nullopt;
}

}  // namespace stowage
