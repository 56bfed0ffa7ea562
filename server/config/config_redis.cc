#include "server/config/config_redis.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "server/store/redis_tls.h"

namespace stowage {
namespace {

// "--redis_user": the flag that a message speaks of.
std::string Dashed(const RedisFlags& flags, const char* end) {
  return absl::StrCat("--", flags.name, end);
}

// With the files of TLS, if it is of TLS. No `address`: there is no Redis.
absl::Status ReadRedisTls(const ConfigSources& sources, const RedisFlags& flags,
                          RedisAddress* address) {
  const RedisTlsFiles& files = flags.tls;
  const bool is_tls = address != nullptr && address->tls;
  const std::string needs_tls = absl::StrCat("needs ", Dashed(flags, "=rediss://"));
  const std::pair<const char*, const std::string*> named[] = {
      {"_ca", &files.ca}, {"_cert", &files.cert}, {"_key", &files.key}};
  for (const auto& [end, file] : named) {
    if (file->empty()) continue;
    if (!is_tls) return FlagError(sources, flags.name + end, *file, needs_tls);
    if (const auto text = ReadSmallFile(*file); !text.ok()) {
      return FlagError(sources, flags.name + end, *file, std::string(text.status().message()));
    }
  }
  if (files.cert.empty() != files.key.empty()) {
    return FlagError(sources, flags.name + "_cert", files.cert,
                     absl::StrCat("and ", Dashed(flags, "_key"), " need each other"));
  }
  if (!files.server_name.empty() && !is_tls) {
    return FlagError(sources, flags.name + "_server_name", files.server_name, needs_tls);
  }
  if (!is_tls) return absl::OkStatus();
  if (const auto usable = RedisTls::Make(files, "localhost"); !usable.ok()) {
    return FlagError(sources, flags.name + "_ca", files.ca, std::string(usable.status().message()));
  }
  address->tls = files;
  return absl::OkStatus();
}

// What the file of a flag holds, without blanks around it.
absl::StatusOr<std::string> ReadPassword(const ConfigSources& sources, const std::string& flag,
                                         const std::string& file) {
  const absl::StatusOr<std::string> password = ReadSmallFile(file);
  if (!password.ok()) {
    return FlagError(sources, flag, file, std::string(password.status().message()));
  }
  return std::string(absl::StripAsciiWhitespace(*password));
}

// What its sentinels are shown. No `address`: there is no Redis.
absl::Status ReadSentinels(const ConfigSources& sources, const RedisFlags& flags,
                           RedisAddress* address) {
  const std::string& file = flags.sentinel_password_file;
  const std::string& user = flags.sentinel_user;
  if (!user.empty() && file.empty()) {
    return FlagError(sources, flags.name + "_sentinel_user", user,
                     absl::StrCat("needs ", Dashed(flags, "_sentinel_password_file")));
  }
  if (file.empty()) return absl::OkStatus();
  const std::string flag = flags.name + "_sentinel_password_file";
  if (address == nullptr || address->sentinels.empty()) {
    return FlagError(sources, flag, file,
                     absl::StrCat("needs ", Dashed(flags, "=redis+sentinel://")));
  }
  const auto password = ReadPassword(sources, flag, file);
  if (!password.ok()) return password.status();
  address->sentinel_user = user;
  address->sentinel_password = *password;
  address->sentinel_password_file = file;
  return absl::OkStatus();
}

// Without a Redis, and a user without a password.
absl::Status CheckRedisUser(const ConfigSources& sources, const RedisFlags& flags) {
  if (flags.address.empty() && !flags.password_file.empty()) {
    return FlagError(sources, flags.name + "_password_file", flags.password_file,
                     absl::StrCat("needs ", Dashed(flags, "")));
  }
  if (!flags.user.empty() && flags.password_file.empty()) {
    return FlagError(sources, flags.name + "_user", flags.user,
                     absl::StrCat("needs ", Dashed(flags, "_password_file")));
  }
  return absl::OkStatus();
}

// As whom the address is talked to: what it says itself, or other flags.
absl::Status ReadRedisUser(const ConfigSources& sources, const RedisFlags& flags,
                           RedisAddress* address) {
  const std::string password_flag = Dashed(flags, "_password_file");
  const auto wrong = [&](const std::string& rule) {
    return FlagError(sources, flags.name, WithoutPassword(flags.address), rule);
  };
  if (!address->password.empty() && !flags.password_file.empty()) {
    return wrong(
        absl::StrCat("has a password, and ", password_flag, " another one: set one of the two"));
  }
  if (!address->user.empty() && !flags.user.empty()) {
    return wrong(absl::StrCat("has a user, and ", Dashed(flags, "_user"),
                              " another one: set one of the two"));
  }
  if (!address->user.empty() && address->password.empty() && flags.password_file.empty()) {
    return wrong(absl::StrCat("has a user without a password: needs ", password_flag,
                              ", or USER:PASSWORD@"));
  }
  if (!flags.password_file.empty()) {
    const auto password = ReadPassword(sources, flags.name + "_password_file", flags.password_file);
    if (!password.ok()) return password.status();
    address->password = *password;
    address->password_file = flags.password_file;
  }
  if (!flags.user.empty()) address->user = flags.user;
  return absl::OkStatus();
}

}  // namespace

RedisFlags PlansRedisFlags() {
  return {"redis",
          absl::GetFlag(FLAGS_redis),
          absl::GetFlag(FLAGS_redis_user),
          absl::GetFlag(FLAGS_redis_password_file),
          absl::GetFlag(FLAGS_redis_sentinel_user),
          absl::GetFlag(FLAGS_redis_sentinel_password_file),
          {absl::GetFlag(FLAGS_redis_ca), absl::GetFlag(FLAGS_redis_cert),
           absl::GetFlag(FLAGS_redis_key), absl::GetFlag(FLAGS_redis_server_name)}};
}

RedisFlags DecisionsRedisFlags() {
  return {
      "decisions_redis",
      absl::GetFlag(FLAGS_decisions_redis),
      absl::GetFlag(FLAGS_decisions_redis_user),
      absl::GetFlag(FLAGS_decisions_redis_password_file),
      absl::GetFlag(FLAGS_decisions_redis_sentinel_user),
      absl::GetFlag(FLAGS_decisions_redis_sentinel_password_file),
      {absl::GetFlag(FLAGS_decisions_redis_ca), absl::GetFlag(FLAGS_decisions_redis_cert),
       absl::GetFlag(FLAGS_decisions_redis_key), absl::GetFlag(FLAGS_decisions_redis_server_name)}};
}

absl::StatusOr<std::optional<RedisAddress>> RedisFromFlags(const ConfigSources& sources,
                                                           const RedisFlags& flags) {
  if (absl::Status status = CheckRedisUser(sources, flags); !status.ok()) return status;
  std::optional<RedisAddress> address;
  if (!flags.address.empty()) {
    absl::StatusOr<RedisAddress> parsed = ParseRedisAddress(flags.address);
    if (!parsed.ok()) {
      return FlagError(sources, flags.name, WithoutPassword(flags.address),
                       std::string(parsed.status().message()));
    }
    address = *std::move(parsed);
    if (absl::Status status = ReadRedisUser(sources, flags, &*address); !status.ok()) {
      return status;
    }
  }
  RedisAddress* const there = address ? &*address : nullptr;
  absl::Status status = ReadRedisTls(sources, flags, there);
  if (status.ok()) status = ReadSentinels(sources, flags, there);
  if (!status.ok()) return status;
  return address;
}

}  // namespace stowage
