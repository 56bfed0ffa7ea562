// How many calls are open, and whether another one may be.
#ifndef STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_
#define STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace stowage {

struct DrainResult {
  int64_t finished = 0;   // calls that were open when the drain began and got their answer
  int64_t abandoned = 0;  // calls that got UNAVAILABLE at the deadline
};

// Thread-safe.
class OpenCalls {
 public:
  enum class Accepted { kYes, kTooMany, kClosed };

  explicit OpenCalls(int64_t limit) : limit_(limit) {}

  // After kYes, Left is called once.
  Accepted TryEnter();
  void Left();
  // Nobody enters any more.
  void Close();
  // Closes and waits until nobody is there, or until the deadline.
  DrainResult Drain(std::chrono::steady_clock::time_point deadline);

 private:
  const int64_t limit_;
  std::mutex mutex_;
  std::condition_variable none_;
  int64_t open_ = 0;
  bool closed_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_OPEN_CALLS_H_
