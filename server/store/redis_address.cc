#include "server/store/redis_address.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

constexpr char kSchemeEnd[] = "://";
constexpr int kDefaultPort = 6379;
constexpr int kSentinelPort = 26379;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

std::optional<int> ParsePort(absl::string_view text) {
  int port = 0;
  if (!absl::SimpleAtoi(text, &port) || port < 1 || port > 65535) return std::nullopt;
  return port;
}

// What stands for the %XX in it.
std::optional<std::string> Unescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    uint32_t byte = 0;
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) ||
        !absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte)) {
      return std::nullopt;
    }
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

enum class SchemeKind { kServer, kSentinel, kCluster };

struct Scheme {
  const char* name;
  SchemeKind kind;
  bool is_tls;
};

constexpr std::array<Scheme, 6> kSchemes = {{
    {"redis", SchemeKind::kServer, false},
    {"rediss", SchemeKind::kServer, true},
    {"redis+sentinel", SchemeKind::kSentinel, false},
    {"rediss+sentinel", SchemeKind::kSentinel, true},
    {"redis+cluster", SchemeKind::kCluster, false},
    {"rediss+cluster", SchemeKind::kCluster, true},
}};

absl::StatusOr<Scheme> SchemeOf(absl::string_view name) {
  for (const Scheme& scheme : kSchemes) {
    if (name == scheme.name) return scheme;
  }
  return Wrong(
      "the scheme of the URL must be redis, redis+sentinel or redis+cluster, or rediss for TLS");
}

absl::Status ParseUser(absl::string_view text, RedisAddress* address) {
  const size_t colon = text.find(':');
  const std::optional<std::string> user = Unescaped(text.substr(0, colon));
  const std::optional<std::string> password =
      colon == absl::string_view::npos ? std::string() : Unescaped(text.substr(colon + 1));
  if (!user || !password) {
    return Wrong("a % in the user or the password of the URL must have two hexadecimal digits");
  }
  if (!user->empty() && password->empty() && colon != absl::string_view::npos) {
    return Wrong("the password of the URL must not be empty after its colon");
  }
  address->user = *user;
  address->password = *password;
  return absl::OkStatus();
}

// "host", "host:port", "[address]" or "[address]:port".
absl::Status ParseHost(absl::string_view text, int default_port, RedisHost* host) {
  size_t end = text.rfind(':');
  if (absl::StartsWith(text, "[")) {
    const size_t bracket = text.find(']');
    if (bracket == absl::string_view::npos) return Wrong("the URL lacks a ] after the address");
    end = bracket + 1;
    host->host = std::string(text.substr(1, bracket - 1));
  } else {
    host->host = std::string(text.substr(0, end));
  }
  if (host->host.empty()) return Wrong("the URL must have a host");
  host->port = default_port;
  if (end == absl::string_view::npos || end == text.size()) return absl::OkStatus();
  const std::optional<int> port =
      text[end] == ':' ? ParsePort(text.substr(end + 1)) : std::optional<int>();
  if (!port) return Wrong("the port of the URL must be in [1, 65535]");
  host->port = *port;
  return absl::OkStatus();
}

absl::Status ParseHosts(absl::string_view text, int default_port, std::vector<RedisHost>* hosts) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    RedisHost host;
    if (absl::Status status = ParseHost(part, default_port, &host); !status.ok()) return status;
    hosts->push_back(std::move(host));
  }
  return absl::OkStatus();
}

// Takes the name of the primary off the start of what follows the hosts.
absl::Status ParsePrimary(absl::string_view* path, RedisAddress* address) {
  const size_t slash = path->find('/');
  const std::optional<std::string> name = Unescaped(path->substr(0, slash));
  if (!name) return Wrong("a % in the primary's name must have two hexadecimal digits");
  if (name->empty()) return Wrong("the URL must name a primary after the sentinels: /PRIMARY");
  address->primary = *name;
  path->remove_prefix(slash == absl::string_view::npos ? path->size() : slash + 1);
  return absl::OkStatus();
}

absl::Status ParseDatabase(absl::string_view text, RedisAddress* address) {
  if (text.empty()) return absl::OkStatus();
  const bool digits = text.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(text, &address->database)) {
    return Wrong(absl::StrCat("the database of the URL must be a number in [0, ",
                              std::numeric_limits<int>::max(), "]"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisAddress> ParseUrl(absl::string_view text) {
  const size_t end = text.find(kSchemeEnd);
  const absl::StatusOr<Scheme> scheme = SchemeOf(text.substr(0, end));
  if (!scheme.ok()) return scheme.status();
  absl::string_view rest = text.substr(end + sizeof kSchemeEnd - 1);
  if (rest.find_first_of("?#") != absl::string_view::npos) {
    return Wrong("the URL must end after the database; in a password ? is %3F and # is %23");
  }
  RedisAddress address;
  if (scheme->is_tls) address.tls.emplace();
  const size_t at = rest.rfind('@');
  if (at != absl::string_view::npos) {
    const absl::Status status = ParseUser(rest.substr(0, at), &address);
    if (!status.ok()) return status;
    rest.remove_prefix(at + 1);
  }
  const size_t slash = rest.find('/');
  absl::string_view path = slash == absl::string_view::npos ? "" : rest.substr(slash + 1);
  const absl::string_view hosts = rest.substr(0, slash);
  if (scheme->kind == SchemeKind::kCluster) {
    if (!path.empty()) return Wrong("the URL of a cluster must end after its hosts");
    if (absl::Status s = ParseHosts(hosts, kDefaultPort, &address.nodes); !s.ok()) return s;
    return address;
  }
  const bool has_sentinels = scheme->kind == SchemeKind::kSentinel;
  if (has_sentinels) {
    if (absl::Status status = ParsePrimary(&path, &address); !status.ok()) return status;
  }
  if (absl::Status status = ParseDatabase(path, &address); !status.ok()) return status;
  if (has_sentinels) {
    if (absl::Status s = ParseHosts(hosts, kSentinelPort, &address.sentinels); !s.ok()) return s;
    return address;
  }
  RedisHost host;
  if (absl::Status status = ParseHost(hosts, kDefaultPort, &host); !status.ok()) return status;
  address.host_or_path = host.host;
  address.port = host.port;
  return address;
}

}  // namespace

absl::StatusOr<RedisAddress> ParseRedisAddress(const std::string& text) {
  RedisAddress address;
  if (!text.empty() && text.front() == '/') {
    address.host_or_path = text;
    return address;
  }
  if (absl::StrContains(text, kSchemeEnd)) return ParseUrl(text);
  const size_t colon = text.rfind(':');
  const std::optional<int> port =
      colon == std::string::npos ? std::nullopt : ParsePort(text.substr(colon + 1));
  std::string host = text.substr(0, port ? colon : 0);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || absl::StrContains(host, "@")) {
    return Wrong(
        "must be HOST:PORT, the /PATH of a socket, or a URL as redis://HOST[:PORT][/DATABASE]");
  }
  address.host_or_path = host;
  address.port = *port;
  return address;
}

std::vector<RedisHost> HostsOf(const RedisAddress& address) {
  if (!address.sentinels.empty()) return address.sentinels;
  if (!address.nodes.empty()) return address.nodes;
  if (address.port == 0) return {};
  return {{address.host_or_path, address.port}};
}

std::string WithoutPassword(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos) return text;
  const size_t scheme = text.find(kSchemeEnd);
  const size_t start = scheme == std::string::npos ? 0 : scheme + sizeof kSchemeEnd - 1;
  const size_t colon = text.find(':', start);
  if (colon == std::string::npos || colon > at) return text;
  return absl::StrCat(text.substr(0, colon + 1), "***", text.substr(at));
}

}  // namespace stowage
