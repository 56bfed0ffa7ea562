#include "client/cli/ticking_line.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/plan_progress.h"

namespace stowage {

using Clock = CallOptions::Clock;

TickingLine::TickingLine(std::ostream* out, std::string what, Clock::time_point deadline)
    : shown_(out != nullptr), deadline_(deadline), line_(out, std::move(what)) {
  if (shown_) thread_ = std::thread([this] { Tick(); });
}

TickingLine::~TickingLine() {
  if (!shown_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void TickingLine::Report(double share) {
  if (!shown_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  share_ = std::max(share_.value_or(0.0), share);
  Show();
}

void TickingLine::Show() {
  const Clock::time_point now = Clock::now();
  const auto gone = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  line_.Show(share_, absl::StrCat(gone, " s gone, ", TimeLeft(deadline_ - now)));
}

void TickingLine::Tick() {
  std::unique_lock<std::mutex> lock(mutex_);
  do Show();
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return end_; }));
}

}  // namespace stowage
