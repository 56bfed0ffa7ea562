#include "client/rpc/credentials.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/small_file.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status ReadPem(const std::string& field, const std::string& path, std::string* out) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> pem = ReadSmallFile(field, path);
  if (!pem.ok()) return pem.status();
  if (!absl::StrContains(*pem, "-----BEGIN ")) return FieldError(field, path, "must be a PEM file");
  *out = *std::move(pem);
  return absl::OkStatus();
}

// Changes whenever the file does; empty for one that is not there.
std::string StampOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_dev, " ", info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec,
                      " ", info.st_mtim.tv_nsec);
}

// gRPC refuses headers with anything but visible characters, with an error that shows them.
absl::Status CheckToken(const std::string& field, const std::string& path,
                        const std::string& token) {
  const bool visible = std::all_of(token.begin(), token.end(),
                                   [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (!token.empty() && visible) return absl::OkStatus();
  return FieldError(field, path, "must hold a token of visible ASCII characters");
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& tls) {
  TlsFiles files;
  absl::Status status = ReadPem("tls.ca_file", tls.ca_file, &files.ca);
  if (status.ok()) status = ReadPem("tls.cert_file", tls.cert_file, &files.cert);
  if (status.ok()) status = ReadPem("tls.key_file", tls.key_file, &files.key);
  if (!status.ok()) return status;
  return files;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const GrpcOptions& options) {
  if (!options.tls.enabled) return grpc::InsecureChannelCredentials();
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(options.tls);
  if (!files.ok()) return files.status();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = std::move(files->ca);
  ssl.pem_cert_chain = std::move(files->cert);
  ssl.pem_private_key = std::move(files->key);
  return grpc::SslCredentials(ssl);
}

absl::StatusOr<std::string> BearerToken::Get() {
  if (path_.empty()) {
    if (token_.empty()) return token_;
    const absl::Status status = CheckToken("token", "(not shown)", token_);
    if (!status.ok()) return status;
    return token_;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string stamp = StampOf(path_);
  if (!stamp.empty() && stamp == stamp_) return read_;
  absl::StatusOr<std::string> text = ReadSmallFile("token_file", path_);
  if (!text.ok()) return text.status();
  absl::StripTrailingAsciiWhitespace(&*text);
  const absl::Status status = CheckToken("token_file", path_, *text);
  if (!status.ok()) return status;
  read_ = *std::move(text);
  stamp_ = stamp;
  return read_;
}

}  // namespace stowage
