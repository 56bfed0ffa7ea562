// Ends calls from another thread. One token may end any number of calls, now and later; it cannot
// be taken back. Thread-safe.
#ifndef STOWAGE_CLIENT_RPC_CANCEL_TOKEN_H_
#define STOWAGE_CLIENT_RPC_CANCEL_TOKEN_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace stowage {

class CancelToken {
 public:
  void Cancel();
  bool cancelled() const;
  // Returns early when cancelled.
  void SleepFor(std::chrono::nanoseconds wait) const;

  // Has `ended` called once if the token is cancelled while this object lives: on the thread that
  // cancels, or in the constructor when that has happened already. It must not block, nor use the
  // token. A null token never ends anything.
  class Watch {
   public:
    Watch(CancelToken* token, std::function<void()> ended);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    CancelToken* const token_;
    std::list<std::function<void()>>::iterator entry_;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool cancelled_ = false;
  std::list<std::function<void()>> watches_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_CANCEL_TOKEN_H_
