// How many calls are open, and whether another one may be.
#ifndef STOWAGE_SERVER_RUNTIME_OPEN_CALLS_H_
#define STOWAGE_SERVER_RUNTIME_OPEN_CALLS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "server/runtime/account.h"

namespace stowage {

struct DrainResult {
  int64_t finished = 0;   // calls that got their answer since the drain began
  int64_t abandoned = 0;  // calls that got UNAVAILABLE at the deadline
  int64_t ended = 0;      // calls that had their answers at the deadline, of all there ever were
};

// Thread-safe. O(log accounts) a call.
class OpenCalls {
 public:
  enum class Accepted { kYes, kTooMany, kTooManyOfAccount, kClosed };

  // Of all together, of which an account has its share.
  OpenCalls(int64_t limit, const AccountShare& share) : limit_(limit), share_(share) {}

  // From now on. Calls that are open stay so, also where they are more.
  void SetLimit(int64_t limit, const AccountShare& share);

  // Calls that may be open together, and of those the account's.
  int64_t limit();
  int64_t LimitOf(const Account& account);

  // After kYes, Left is called once, for the same account.
  Accepted TryEnter(const Account& account);
  void Left(const Account& account);
  int64_t count();
  // Those that have left, since the start.
  int64_t ended();
  // Nobody enters any more.
  void Close();
  // Closes and waits until nobody is there, or until the deadline.
  DrainResult Drain(std::chrono::steady_clock::time_point deadline);

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t limit_;
  AccountShare share_;
  int64_t open_ = 0;
  int64_t ended_ = 0;
  std::map<Account, int64_t> of_accounts_;  // those with open calls
  bool closed_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_OPEN_CALLS_H_
