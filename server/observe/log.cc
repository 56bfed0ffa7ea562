#include "server/observe/log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace stowage {
namespace {

constexpr int kPatienceMs = 1000;

}  // namespace

Log::Log(LogLevel least, Sink sink, Dropped dropped)
    : least_(least),
      sink_(std::move(sink)),
      told_of_dropped_(std::move(dropped)),
      writer_([this] { Work(); }) {}

Log::~Log() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void Log::Write(LogLevel level, const char* event, absl::FunctionRef<void(LogLine*)> fill,
                int kind) {
  if (level < least_) return;
  const std::optional<int64_t> kept_back =
      limiter_.Admit(level, event, kind, LogLimiter::Clock::now());
  if (!kept_back) return;  // the next line says how many
  LogLine line(level, event);
  fill(&line);
  if (*kept_back > 0) line.Add("kept_back", *kept_back);
  std::unique_lock<std::mutex> lock(mutex_);
  if (queue_.size() >= kMostQueued) {
    ++dropped_;
    lock.unlock();
    if (told_of_dropped_) told_of_dropped_(1);
    return;
  }
  if (dropped_ > 0) line.Add("dropped", std::exchange(dropped_, 0));
  queue_.push_back(line.Text());
  lock.unlock();
  wake_.notify_one();
}

void Log::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::string text = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    sink_(text);
    lock.lock();
  }
}

void WriteToStandardError(const std::string& text) {
  // Of a pipe that nobody reads: one line waits for a reader, those after it do not.
  static bool stalled = false;
  size_t written = 0;
  while (written < text.size()) {
    pollfd ready = {STDERR_FILENO, POLLOUT, 0};
    stalled = poll(&ready, 1, stalled ? 0 : kPatienceMs) == 0;
    if (stalled) return;
    // What a pipe takes without waiting once it has room.
    const size_t part = std::min<size_t>(text.size() - written, PIPE_BUF);
    const ssize_t count = write(STDERR_FILENO, text.data() + written, part);
    if (count <= 0) return;  // nobody is there to tell
    written += static_cast<size_t>(count);
  }
}

}  // namespace stowage
