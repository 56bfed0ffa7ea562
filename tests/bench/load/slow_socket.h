// A server on a unix socket that seems to be far away: what it answers comes late.
#ifndef STOWAGE_TESTS_BENCH_LOAD_SLOW_SOCKET_H_
#define STOWAGE_TESTS_BENCH_LOAD_SLOW_SOCKET_H_

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace stowage {

// Thread-safe. A pair of threads for each connection.
class SlowSocket {
 public:
  // Passes on to the socket `target`; each piece of an answer waits for `delay`.
  SlowSocket(const std::string& target, std::chrono::milliseconds delay);
  ~SlowSocket();

  std::string path() const { return folder_ / "socket"; }

 private:
  void Accept();
  void Pass(int from, int to, std::chrono::milliseconds delay);

  const TemporaryFolder folder_;
  const std::string target_;
  const std::chrono::milliseconds delay_;
  std::atomic<bool> stopped_{false};
  int listening_ = -1;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;  // last: uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_SLOW_SOCKET_H_
