// Tells when small files say something new: reads them again and again, for that works on every file
// system and through every way of replacing a file.
#ifndef STOWAGE_SERVER_AUTH_FILE_WATCHER_H_
#define STOWAGE_SERVER_AUTH_FILE_WATCHER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"

namespace stowage {

// All of a file of at most 16 MiB. INVALID_ARGUMENT that names it and why it cannot be read.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

struct WatchedFile {
  std::string name;  // for the log
  // What it says now, or why that cannot be used.
  std::function<absl::StatusOr<std::string>()> read;
  // Has a new text hold from now on, unless it returns an error: then what was before holds.
  std::function<absl::Status(const std::string& text)> use;
};

// What is taken and what is refused is counted and logged, each once.
class FileWatcher {
 public:
  // `known` is the text that holds already; a null log is told nothing. The functions are called on
  // the watcher's thread; the pointers outlive it.
  FileWatcher(const WatchedFile& file, const std::string& known, std::chrono::milliseconds interval,
              ServerMetrics* metrics, Log* log);
  ~FileWatcher();

 private:
  void Watch();
  void Changed(const absl::StatusOr<std::string>& text);

  const WatchedFile file_;
  const std::chrono::milliseconds interval_;
  ServerMetrics* const metrics_;
  Log* const log_;
  absl::StatusOr<std::string> last_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_FILE_WATCHER_H_
