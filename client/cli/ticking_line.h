#ifndef STOWAGE_CLIENT_CLI_TICKING_LINE_H_
#define STOWAGE_CLIENT_CLI_TICKING_LINE_H_

#include <condition_variable>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "client/cli/progress_line.h"
#include "client/rpc/plan_values.h"

namespace stowage {

// A line of progress (progress_line.h) about a call that tells of itself seldom or never: how long it has been
// going, how long it may go on, each second; and the share done where it is reported. Thread-safe.
class TickingLine {
 public:
  // From now to `deadline`. Null: writes nothing, and starts no thread.
  TickingLine(std::ostream* out, std::string what, CallOptions::Clock::time_point deadline);
  ~TickingLine();
  TickingLine(const TickingLine&) = delete;
  TickingLine& operator=(const TickingLine&) = delete;

  // Of 0 to 1; what falls is left.
  void Report(double share);

 private:
  void Show();  // under mutex_
  void Tick();

  const bool shown_;
  const CallOptions::Clock::time_point start_ = CallOptions::Clock::now(), deadline_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::optional<double> share_;
  ProgressLine line_;
  std::thread thread_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TICKING_LINE_H_
