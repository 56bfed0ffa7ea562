// Process groups of gloo on this machine. Only where its headers are (Debian's libgloo-dev).
#ifndef STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_
#define STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_

#include <chrono>
#include <functional>
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

// Ranks as threads of this process, each with its group.
inline void OnGlooRanks(int ranks,
                        const std::function<void(int, c10::intrusive_ptr<c10d::ProcessGroup>)>& run,
                        std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { run(rank, MakeGlooGroup(store, "group", rank, ranks, timeout)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_GLOO_GROUP_H_
