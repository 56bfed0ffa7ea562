#include "server/auth/file_watcher.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (file && text.size() <= kMaxBytes) {
    file.read(block, sizeof(block));
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  if (!file.eof() || file.bad()) {
    const std::string why = text.size() > kMaxBytes ? "more than 16 MiB" : std::strerror(errno);
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read: ", why));
  }
  return text;
}

FileWatcher::FileWatcher(const WatchedFile& file, const std::string& known,
                         std::chrono::milliseconds interval, ServerMetrics* metrics, Log* log)
    : file_(file), interval_(interval), metrics_(metrics), log_(log), last_(known), thread_([this] {
        Watch();
      }) {}

FileWatcher::~FileWatcher() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FileWatcher::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stopped_; })) {
    lock.unlock();
    absl::StatusOr<std::string> text = file_.read();
    if (text != last_) {
      Changed(text);
      last_ = std::move(text);
    }
    lock.lock();
  }
}

void FileWatcher::Changed(const absl::StatusOr<std::string>& text) {
  const absl::Status status = text.ok() ? file_.use(*text) : text.status();
  metrics_->FileReloaded(status.ok());
  if (log_ == nullptr) return;
  if (status.ok()) {
    log_->Write(LogLevel::kInfo, "file_reloaded",
                [this](LogLine* line) { line->Add("file", file_.name); });
    return;
  }
  log_->Write(LogLevel::kError, "file_refused", [&](LogLine* line) {
    line->Add("file", file_.name).Add("error", std::string(status.message()));
  });
}

}  // namespace stowage
