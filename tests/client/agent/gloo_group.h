// Process groups of gloo on this machine. Only where its headers are (Debian's libgloo-dev).
#ifndef STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_
#define STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

namespace stowage {

// Made by all ranks at once. `name`: of one of several groups over a store.
inline c10::intrusive_ptr<c10d::ProcessGroup> MakeGlooGroup(
    const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank, int ranks,
    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(name, store), rank, ranks, options);
}

// Ranks as threads of this process, each with its group; throws what one of them has thrown. `timeout` is for their
// connections, too: all run when the first one begins with these.
inline void OnGlooRanks(int ranks,
                        const std::function<void(int, c10::intrusive_ptr<c10d::ProcessGroup>)>& run,
                        std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  // As Python has it: gloo writes to connections that a rank which is gone has closed.
  std::signal(SIGPIPE, SIG_IGN);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::promise<void> all_run;
  const std::shared_future<void> begin = all_run.get_future().share();
  std::atomic<int> running{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank, begin] {
      try {
        if (++running == ranks) all_run.set_value();
        begin.wait();
        run(rank, MakeGlooGroup(store, "group", rank, ranks, timeout));
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!thrown) thrown = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_
