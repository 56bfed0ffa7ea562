// Callers that take what they can get of a service that others share.
//
//   stuck      a tenant with four calls of 16 MiB at a time, whose solves take as long as they may
//   lists      an administrator and a tenant that list plans, page after page
//   flood      a caller without a tenant that asks for two hundred unknown plans at a time
//   open       a tenant with ten thousand calls that have begun and ask for nothing, on a hundred connections
//   decisions  an administrator that deletes and pins plans of its own while the shared store is
//              emptied, and looks whether they come back, or are still pinned
#ifndef STOWAGE_TESTS_BENCH_LOAD_ADVERSARIES_H_
#define STOWAGE_TESTS_BENCH_LOAD_ADVERSARIES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

// Lines of a token file for all of them, and for the tenant that they are beside.
std::string AdversaryTokens();
// Of that tenant's planner.
extern const char kFairToken[];

struct AdversaryOptions {
  std::string address;  // of the service
  std::set<std::string> kinds;
  std::function<void()> empty_store;  // for decisions
};

// OK, or INVALID_ARGUMENT that says which kinds there are.
absl::Status CheckAdversaries(const std::set<std::string>& kinds);

// They act on threads of their own, from Start to Stop, any number of times.
class Adversaries {
 public:
  explicit Adversaries(const AdversaryOptions& options) : options_(options) {}
  ~Adversaries() { Stop(); }

  void Start();
  // Cancels what is open.
  void Stop();

  // Calls by kind and code, to be printed.
  std::map<std::string, int64_t> counts() const;
  // OK, or the first answer that was wrong.
  absl::Status wrong() const;

 private:
  void BeStuck();
  void List(const std::string& token);
  void Flood();
  void HoldOpen();
  void Decide();
  void Count(const std::string& kind, int code);
  void Wrong(const std::string& why);

  const AdversaryOptions options_;
  std::atomic<bool> acting_{false};
  std::atomic<int> next_{0};  // network
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
  absl::Status wrong_;
  std::vector<std::thread> threads_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_ADVERSARIES_H_
