// The log: takes lines from any thread, writes them on its own.
//
// A reader of standard error that falls behind, or a disk that does, makes nobody wait: lines over
// the queue's limit are dropped, counted and told. Thread-safe.
#ifndef STOWAGE_SERVER_OBSERVE_LOG_H_
#define STOWAGE_SERVER_OBSERVE_LOG_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "server/observe/log_limiter.h"
#include "server/observe/log_line.h"

namespace stowage {

class Log {
 public:
  // Called on the log's thread alone.
  using Sink = std::function<void(const std::string& text)>;

  static constexpr int kLinesPerSecond = 100;  // of one event at one level, and of one kind
  static constexpr size_t kMostQueued = 4096;

  // Told how many lines the queue had no place for, on whichever thread would have written them; cheap.
  using Dropped = std::function<void(int64_t lines)>;

  Log(LogLevel least, Sink sink, Dropped dropped = nullptr);
  // Writes what is queued.
  ~Log();

  // From now on lines of lower levels are not written.
  void SetLevel(LogLevel least) { least_ = least; }

  // Adds what `fill` adds, if the line is going to be written at all. A flood of lines of one kind of
  // the event keeps none of another kind back.
  void Write(
      LogLevel level, const char* event, absl::FunctionRef<void(LogLine*)> fill = [](LogLine*) {},
      int kind = 0);

 private:
  void Work();

  std::atomic<LogLevel> least_;
  const Sink sink_;
  const Dropped told_of_dropped_;
  LogLimiter limiter_{kLinesPerSecond};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> queue_;
  int64_t dropped_ = 0;
  bool stopped_ = false;
  std::thread writer_;  // last: uses all of the above
};

// The sink that stowaged takes. A line that nobody reads for a second is lost.
void WriteToStandardError(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_LOG_H_
