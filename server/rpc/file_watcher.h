// Tells when a small file says something new: reads it again and again, for that works on every
// file system and through every way of replacing a file.
#ifndef STOWAGE_SERVER_RPC_FILE_WATCHER_H_
#define STOWAGE_SERVER_RPC_FILE_WATCHER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace stowage {

// All of a file of at most 16 MiB. INVALID_ARGUMENT that names it and why it cannot be read.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

class FileWatcher {
 public:
  using Changed = std::function<void(const absl::StatusOr<std::string>& text)>;

  // `known` is what the caller has read already. `changed` is called on the watcher's thread with
  // the new text, or once with the error when the file can no longer be read.
  FileWatcher(const std::string& path, const std::string& known, std::chrono::milliseconds interval,
              Changed changed);
  ~FileWatcher();

 private:
  void Watch();

  const std::string path_;
  const std::chrono::milliseconds interval_;
  const Changed changed_;
  absl::StatusOr<std::string> last_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_FILE_WATCHER_H_
