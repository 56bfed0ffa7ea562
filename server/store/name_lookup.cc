#include "server/store/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

// Of a name in a message; those of DNS are shorter. A server of a cluster may say any.
constexpr size_t kLongestHostName = 255;

absl::Status NotResolved(const std::string& host, absl::string_view why) {
  const std::string shown = absl::CHexEscape(host.substr(0, kLongestHostName));
  return absl::UnavailableError(
      absl::StrCat("the host name ", shown, " of Redis was not resolved", why));
}

absl::StatusOr<NameLookup::Addresses> AddressesOf(const std::string& host, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  NameLookup::Addresses addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text;
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  freeaddrinfo(found);
  if (addresses.empty()) return absl::UnavailableError("it has no address");
  return addresses;
}

// What has addresses of both kinds is reached by those of IPv4, as by hiredis itself.
absl::StatusOr<NameLookup::Addresses> ResolveBySystem(const std::string& host) {
  absl::StatusOr<NameLookup::Addresses> found = AddressesOf(host, AF_INET);
  return found.ok() ? found : AddressesOf(host, AF_INET6);
}

}  // namespace

struct NameLookup::Name {
  Addresses addresses;                     // that were found last; none: never, or too long ago
  Clock::time_point found;                 // when
  std::optional<Clock::time_point> began;  // the lookup that is under way; none: there is none
  int64_t ended = 0;                       // lookups
  absl::Status last;                       // how the last of them ended
};

struct NameLookup::State {
  explicit State(Resolver function) : resolve(std::move(function)) {}

  const Resolver resolve;
  std::mutex mutex;
  std::condition_variable any_ended;
  std::map<std::string, std::shared_ptr<Name>> names;
  int under_way = 0;  // lookups
};

NameLookup::NameLookup(Resolver resolve, const NameLookupOptions& options)
    : options_(options), state_(std::make_shared<State>(std::move(resolve))) {}

absl::StatusOr<NameLookup::Addresses> NameLookup::Find(const std::string& host,
                                                       Clock::time_point deadline) {
  if (IsIpAddress(host)) return Addresses{host};
  const Clock::time_point now = Clock::now();
  std::unique_lock<std::mutex> lock(state_->mutex);
  const std::shared_ptr<Name> name = KnownLocked(host, now);
  const bool has_old = !name->addresses.empty();
  if (has_old && now - name->found < options_.time_to_live) return name->addresses;
  // From its begin: one that hangs costs those who come later nothing.
  const Clock::time_point patience =
      has_old ? name->began.value_or(now) + (deadline - now) / 4 : deadline;
  const int64_t ended_before = name->ended;
  const bool ended = state_->any_ended.wait_until(lock, patience, [&] {
    if (name->ended != ended_before) return true;
    if (!name->began && state_->under_way < kMostAtOnce) BeginLocked(host, name);
    return false;
  });
  if (!name->addresses.empty()) return name->addresses;
  return NotResolved(host, ended ? absl::StrCat(": ", name->last.message()) : " in time");
}

std::shared_ptr<NameLookup::Name> NameLookup::KnownLocked(const std::string& host,
                                                          Clock::time_point now) {
  ForgetLocked(now);
  std::shared_ptr<Name>& name = state_->names[host];
  if (name == nullptr) name = std::make_shared<Name>();
  return name;
}

void NameLookup::ForgetLocked(Clock::time_point now) {
  auto& names = state_->names;
  for (auto it = names.begin(); it != names.end();) {
    Name& name = *it->second;
    if (now - name.found > options_.oldest) name.addresses.clear();
    // A lookup that is under way has it, too, and so have those who wait for one.
    const bool is_needed = !name.addresses.empty() || it->second.use_count() > 1;
    it = is_needed ? std::next(it) : names.erase(it);
  }
}

void NameLookup::BeginLocked(const std::string& host, const std::shared_ptr<Name>& name) {
  try {
    // Nobody joins it: it ends when the resolver does.
    std::thread([state = state_, host, name] {
      absl::StatusOr<Addresses> found = state->resolve(host);
      std::lock_guard<std::mutex> lock(state->mutex);
      --state->under_way;
      name->began.reset();
      ++name->ended;
      name->last = found.status();
      if (found.ok()) {
        name->addresses = *std::move(found);
        name->found = Clock::now();
      }
      state->any_ended.notify_all();
    }).detach();
  } catch (const std::exception&) {  // no thread, or no memory for it: as one that hangs
    return;
  }
  ++state_->under_way;
  name->began = Clock::now();
}

NameLookup* SystemNames() {
  static auto* const kNames = new NameLookup(ResolveBySystem);
  return kNames;
}

bool IsIpAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

}  // namespace stowage
