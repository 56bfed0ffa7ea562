#include "server/store/redis_connection.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

using Clock = RedisConnection::Clock;

// For the replies to AUTH and SELECT.
constexpr size_t kSmallReply = 4096;

absl::Status TimeOut() { return absl::UnavailableError("Redis did not answer in time"); }
absl::Status Broken() { return absl::UnavailableError("the connection to Redis broke"); }

// Rounded up: a wait of 0 would never wait.
int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void AppendFormatted(const RedisCommand& command, std::string* bytes) {
  std::vector<const char*> words;
  std::vector<size_t> sizes;
  for (const std::string& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), words.data(),
                                          sizes.data());
  if (size > 0) bytes->append(formatted, static_cast<size_t>(size));
  redisFreeCommand(formatted);
}

std::string FirstWord(absl::string_view text) {
  return std::string(text.substr(0, text.find(' ')));
}

// The first word of an error; of one in a script, that of the command that failed, which Redis before 7 says
// within another one: "ERR Error running script (call to f_0a1b): @user_script:3: -READONLY You can't ...".
std::string WordOf(absl::string_view error) {
  constexpr absl::string_view kPlace = "@user_script:";
  const size_t place = error.rfind(kPlace);
  if (FirstWord(error) != "ERR" || place == absl::string_view::npos) return FirstWord(error);
  absl::string_view rest = error.substr(place + kPlace.size());
  rest.remove_prefix(std::min(rest.find_first_not_of("0123456789: -"), rest.size()));
  const std::string word = FirstWord(rest);
  const bool is_code = !word.empty() && std::all_of(word.begin(), word.end(), absl::ascii_isupper);
  return is_code ? word : FirstWord(error);
}

// "MOVED 3999 127.0.0.1:6381".
RedisHost WhereOf(absl::string_view error) {
  RedisHost where;
  const absl::string_view place = error.substr(error.rfind(' ') + 1);
  const size_t colon = place.rfind(':');
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(place.substr(colon + 1), &where.port) ||
      where.port < 1 || where.port > 65535) {
    return {};
  }
  where.host = std::string(place.substr(0, colon));
  return where;
}

RedisReply Converted(const redisReply& reply) {
  RedisReply converted;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      converted.kind = RedisReply::Kind::kInteger;
      converted.integer = reply.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      converted.kind = RedisReply::Kind::kText;
      converted.text.assign(reply.str, static_cast<size_t>(reply.len));
      break;
    case REDIS_REPLY_ARRAY:
      converted.kind = RedisReply::Kind::kList;
      for (size_t i = 0; i < reply.elements; ++i) {
        converted.list.push_back(Converted(*reply.element[i]));
      }
      break;
    case REDIS_REPLY_ERROR:
      converted.kind = RedisReply::Kind::kError;
      converted.text = WordOf(absl::string_view(reply.str, static_cast<size_t>(reply.len)));
      if (converted.text == "MOVED" || converted.text == "ASK") {
        converted.where = WhereOf(absl::string_view(reply.str, static_cast<size_t>(reply.len)));
      }
      break;
    default:
      break;
  }
  return converted;
}

struct Meaning {
  const char* word;
  absl::StatusCode code;
  const char* reason;
};

constexpr std::array<Meaning, 14> kMeanings = {{
    {"NOAUTH", absl::StatusCode::kUnavailable, "Redis wants a password"},
    {"WRONGPASS", absl::StatusCode::kUnavailable, "Redis does not accept the password"},
    {"NOPERM", absl::StatusCode::kUnavailable, "Redis forbids this user what is needed"},
    {"LOADING", absl::StatusCode::kUnavailable, "Redis is still loading its data"},
    {"MASTERDOWN", absl::StatusCode::kUnavailable, "Redis is a replica without its master"},
    {"CLUSTERDOWN", absl::StatusCode::kUnavailable, "the Redis cluster is down"},
    {"MOVED", absl::StatusCode::kUnavailable, "Redis is a cluster: say redis+cluster://"},
    {"ASK", absl::StatusCode::kUnavailable, "Redis is a cluster: say redis+cluster://"},
    {"TRYAGAIN", absl::StatusCode::kUnavailable, "Redis is a cluster: say redis+cluster://"},
    {"BUSY", absl::StatusCode::kUnavailable, "Redis is busy with a script"},
    {kReplicaRefuses, absl::StatusCode::kFailedPrecondition, "Redis is a read-only replica"},
    {"OOM", absl::StatusCode::kFailedPrecondition, "Redis has reached its memory limit"},
    {"MISCONF", absl::StatusCode::kFailedPrecondition, "Redis cannot save and takes no writes"},
    {"NOREPLICAS", absl::StatusCode::kFailedPrecondition, "Redis has too few replicas to write"},
}};

std::string PasswordOf(const RedisAddress& address) {
  if (address.password_file.empty()) return address.password;
  constexpr size_t kLongest = 4096;
  std::string text(kLongest, '\0');
  std::ifstream file(address.password_file, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const absl::string_view password = absl::StripAsciiWhitespace(text);
  return password.empty() ? address.password : std::string(password);
}

Clock::duration TimeOf(ssize_t bytes, int64_t rate) {
  return std::chrono::nanoseconds(int64_t{bytes} * 1'000'000'000 / rate);
}

timeval TimevalUntil(Clock::time_point deadline) {
  const int64_t left = std::max(1, MillisecondsUntil(deadline));
  timeval time{};
  time.tv_sec = left / 1000;
  time.tv_usec = left % 1000 * 1000;
  return time;
}

}  // namespace

absl::Status StatusOf(const RedisReply& reply) {
  if (reply.kind != RedisReply::Kind::kError) return absl::OkStatus();
  for (const Meaning& meaning : kMeanings) {
    if (reply.text == meaning.word) return absl::Status(meaning.code, meaning.reason);
  }
  return absl::InternalError("Redis refused a command");
}

void RedisConnection::Free::operator()(redisContext* context) const { redisFree(context); }

RedisConnection::~RedisConnection() = default;

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(const RedisAddress& address,
                                                                       Clock::time_point deadline,
                                                                       NameLookup* names) {
  absl::StatusOr<std::unique_ptr<RedisConnection>> opened = Connect(address, deadline, names);
  if (!opened.ok()) return opened;
  RedisConnection& connection = **opened;
  if (address.tls) {
    if (absl::Status tls = connection.StartTls(address, deadline); !tls.ok()) return tls;
  }
  if (absl::Status known = connection.Introduce(address, deadline); !known.ok()) return known;
  return opened;
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Connect(
    const RedisAddress& address, Clock::time_point deadline, NameLookup* names) {
  if (address.port == 0) {
    return Checked(
        redisConnectUnixWithTimeout(address.host_or_path.c_str(), TimevalUntil(deadline)));
  }
  // hiredis is given numbers alone: to resolve a name it would take any time.
  const auto hosts = names->Find(address.host_or_path, deadline);
  if (!hosts.ok()) return hosts.status();
  absl::StatusOr<std::unique_ptr<RedisConnection>> connection = TimeOut();
  for (size_t i = 0; i < hosts->size() && !connection.ok(); ++i) {
    const Clock::time_point now = Clock::now();
    const auto share = (deadline - now) / static_cast<int>(hosts->size() - i);
    connection = Checked(
        redisConnectWithTimeout((*hosts)[i].c_str(), address.port, TimevalUntil(now + share)));
  }
  // A peer that vanished without a word is noticed while the connection rests. On a unix socket
  // the call fails, and hiredis would then refuse to use it.
  if (connection.ok()) redisEnableKeepAlive((*connection)->context_.get());
  return connection;
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Checked(redisContext* context) {
  if (context == nullptr) return absl::UnavailableError("no memory to connect to Redis");
  std::unique_ptr<RedisConnection> connection(new RedisConnection(context));
  if (context->err != 0) return absl::UnavailableError("cannot connect to Redis");
  return connection;
}

absl::Status RedisConnection::StartTls(const RedisAddress& address, Clock::time_point deadline) {
  const std::string& name = address.tls->server_name;
  auto tls = RedisTls::Make(*address.tls, name.empty() ? address.host_or_path : name);
  if (!tls.ok()) return tls.status();
  tls_ = *std::move(tls);
  while (true) {
    const absl::StatusOr<bool> done = tls_->ShakeHands();
    // Where it failed, the server is told why.
    const absl::Status sent = SendSealed(&deadline);
    if (!done.ok()) return done.status();
    if (!sent.ok()) return sent;
    if (*done) return absl::OkStatus();
    const absl::StatusOr<absl::string_view> bytes = Receive(&deadline);
    if (!bytes.ok()) return bytes.status();
    tls_->Receive(*bytes);
  }
}

absl::Status RedisConnection::Introduce(const RedisAddress& address, Clock::time_point deadline) {
  std::vector<RedisCommand> commands;
  const std::string password = PasswordOf(address);
  if (!password.empty()) {
    commands.push_back(address.user.empty() ? RedisCommand{"AUTH", password}
                                            : RedisCommand{"AUTH", address.user, password});
  }
  if (address.database != 0) commands.push_back({"SELECT", absl::StrCat(address.database)});
  if (commands.empty()) return absl::OkStatus();
  const auto replies = Run(commands, deadline, kSmallReply);
  if (!replies.ok()) return replies.status();
  for (const RedisReply& reply : *replies) {
    const absl::Status status = StatusOf(reply);
    if (!status.ok()) {
      return absl::UnavailableError(absl::IsInternal(status)
                                        ? "Redis refused the password or the database number"
                                        : std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RedisReply>> RedisConnection::Run(
    const std::vector<RedisCommand>& commands, Clock::time_point deadline, size_t largest) {
  std::string bytes;
  for (const RedisCommand& command : commands) AppendFormatted(command, &bytes);
  if (tls_) {
    if (absl::Status said = tls_->Say(bytes); !said.ok()) return said;
  }
  const absl::Status sent = tls_ ? SendSealed(&deadline) : Send(bytes, &deadline);
  if (!sent.ok()) return sent;
  std::vector<RedisReply> replies;
  while (replies.size() < commands.size()) {
    void* raw = nullptr;
    if (redisReaderGetReply(context_->reader, &raw) != REDIS_OK) return Broken();
    if (raw != nullptr) {
      auto* reply = static_cast<redisReply*>(raw);
      replies.push_back(Converted(*reply));
      freeReplyObject(reply);
      continue;
    }
    if (context_->reader->len > largest) {
      return absl::ResourceExhaustedError("a reply of Redis is over the limit");
    }
    if (absl::Status received = ReceiveReplies(&deadline); !received.ok()) return received;
  }
  return replies;
}

absl::Status RedisConnection::Send(const std::string& bytes, Clock::time_point* deadline) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        send(context_->fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) {
      sent += static_cast<size_t>(now);
      *deadline += TimeOf(now, kLeastRate);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status ready = WaitFor(POLLOUT, *deadline); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return Broken();
    }
  }
  return absl::OkStatus();
}

absl::Status RedisConnection::SendSealed(Clock::time_point* deadline) {
  return Send(tls_->ToSend(), deadline);
}

absl::Status RedisConnection::ReceiveReplies(Clock::time_point* deadline) {
  const absl::StatusOr<absl::string_view> bytes = Receive(deadline);
  if (!bytes.ok()) return bytes.status();
  absl::string_view of_replies = *bytes;
  std::string opened;
  if (tls_) {
    tls_->Receive(*bytes);
    if (absl::Status heard = tls_->Hear(&opened); !heard.ok()) return heard;
    if (absl::Status sent = SendSealed(deadline); !sent.ok()) return sent;
    of_replies = opened;
  }
  if (of_replies.empty()) return absl::OkStatus();
  const int fed = redisReaderFeed(context_->reader, of_replies.data(), of_replies.size());
  return fed == REDIS_OK ? absl::OkStatus() : Broken();
}

absl::StatusOr<absl::string_view> RedisConnection::Receive(Clock::time_point* deadline) {
  constexpr size_t kRoom = size_t{64} << 10;
  received_.resize(kRoom);
  while (true) {
    // The wait comes first: a reply is hardly ever there yet, and a trickle of bytes without an end
    // has a deadline, too.
    if (absl::Status ready = WaitFor(POLLIN, *deadline); !ready.ok()) return ready;
    const ssize_t size = recv(context_->fd, received_.data(), received_.size(), MSG_DONTWAIT);
    if (size > 0) {
      *deadline += TimeOf(size, kLeastRate);
      return absl::string_view(received_.data(), static_cast<size_t>(size));
    }
    if (size == 0) return Broken();
    if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return Broken();
  }
}

absl::Status RedisConnection::WaitFor(short events, Clock::time_point deadline) {
  while (true) {
    const int left = MillisecondsUntil(deadline);
    if (left == 0) return TimeOut();
    pollfd waiting = {context_->fd, events, 0};
    const int ready = poll(&waiting, 1, left);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Broken();
  }
}

bool RedisConnection::IsQuiet() const {
  pollfd waiting = {context_->fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 0;
}

}  // namespace stowage
