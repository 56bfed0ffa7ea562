// How many calls are open, and whether another one may be.
#ifndef STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_
#define STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace stowage {

struct DrainResult {
  int64_t finished = 0;   // calls that were open when the drain began and got their answer
  int64_t abandoned = 0;  // calls that got UNAVAILABLE at the deadline
};

// Thread-safe. O(log tenants) a call.
class OpenCalls {
 public:
  enum class Accepted { kYes, kTooMany, kTooManyOfTenant, kClosed };

  // Of all together and of one tenant; callers without a tenant ("") have no limit of their own.
  OpenCalls(int64_t limit, int64_t tenant_limit) : limit_(limit), tenant_limit_(tenant_limit) {}

  // After kYes, Left is called once, for the same tenant.
  Accepted TryEnter(const std::string& tenant);
  void Left(const std::string& tenant);
  // Nobody enters any more.
  void Close();
  // Closes and waits until nobody is there, or until the deadline.
  DrainResult Drain(std::chrono::steady_clock::time_point deadline);

 private:
  const int64_t limit_;
  const int64_t tenant_limit_;
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t open_ = 0;
  std::map<std::string, int64_t> of_tenants_;  // those with open calls
  bool closed_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_
