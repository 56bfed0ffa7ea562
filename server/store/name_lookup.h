// Where hosts are by their names, by a deadline. The system's resolver knows none: where no name server
// answers, it keeps its caller for many seconds.
#ifndef STOWAGE_SERVER_STORE_NAME_LOOKUP_H_
#define STOWAGE_SERVER_STORE_NAME_LOOKUP_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stowage {

struct NameLookupOptions {
  // How long addresses that were found are served without another lookup.
  std::chrono::nanoseconds time_to_live = std::chrono::seconds(1);
  // How long where each later lookup fails, or takes long; >= time_to_live. Somebody else may have an address by then.
  std::chrono::nanoseconds oldest = std::chrono::minutes(5);
};

// Each name is looked up by a thread of its own, which all who ask for it meanwhile wait for; kMostAtOnce names at once.
//
// Thread-safe. Its end waits for no lookup: one that hangs then goes on, and is forgotten.
class NameLookup {
 public:
  using Clock = std::chrono::steady_clock;
  // Numeric, the first one to be tried first; at least one.
  using Addresses = std::vector<std::string>;
  // May block for any time. Called by several threads at once. An error says why, without the name.
  using Resolver = std::function<absl::StatusOr<Addresses>(const std::string& host)>;

  static constexpr int kMostAtOnce = 16;

  explicit NameLookup(Resolver resolve, const NameLookupOptions& options = {});
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // A numeric address is its own. Of a name, those that a new lookup finds; or those that were found before, where it
  // fails, or has taken a quarter of the time that the call has. UNAVAILABLE, with the name and the reason.
  absl::StatusOr<Addresses> Find(const std::string& host, Clock::time_point deadline);

 private:
  struct Name;
  struct State;

  // All with the mutex held.
  std::shared_ptr<Name> KnownLocked(const std::string& host, Clock::time_point now);
  void ForgetLocked(Clock::time_point now);
  void BeginLocked(const std::string& host, const std::shared_ptr<Name>& name);

  const NameLookupOptions options_;
  const std::shared_ptr<State> state_;  // each lookup keeps it, too
};

// By the system's resolver (getaddrinfo), for all of this process, without an end.
NameLookup* SystemNames();

// An address of IPv4 or of IPv6, which is no name.
bool IsIpAddress(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_NAME_LOOKUP_H_
