#include "client/rpc/replica_list.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {

struct ReplicaList::State {
  State(std::string the_name, Lookup look_up, Clock::duration refresh_after)
      : name(std::move(the_name)), lookup(std::move(look_up)), refresh(refresh_after) {}

  const std::string name;
  const Lookup lookup;
  const Clock::duration refresh;
  std::mutex mutex;
  std::condition_variable changed;
  ReplicaAddresses addresses;  // null until a lookup has succeeded
  absl::Status error;          // of the latest
  int64_t begun = 0;           // lookups; at most one of them has not ended
  int64_t ended = 0;
  Clock::time_point latest;  // when it began

  bool IsDue() const {
    return ended == begun && (addresses == nullptr || Clock::now() - latest >= refresh);
  }

  void Take(absl::StatusOr<std::vector<std::string>> found) {
    // Resolvers turn their answers round: the same servers are the same list.
    if (found.ok()) std::sort(found->begin(), found->end());
    const std::lock_guard<std::mutex> lock(mutex);
    error = found.status();
    if (found.ok() && (addresses == nullptr || *addresses != *found)) {
      addresses = std::make_shared<const std::vector<std::string>>(*std::move(found));
    }
    ++ended;
    changed.notify_all();
  }
};

ReplicaList::ReplicaList(std::string name, Lookup lookup, Clock::duration refresh)
    : state_(std::make_shared<State>(std::move(name), std::move(lookup), refresh)) {}

absl::StatusOr<ReplicaAddresses> ReplicaList::Get(Clock::duration patience,
                                                  const CancelToken* cancel) {
  constexpr std::chrono::milliseconds kSlice{20};  // a token cannot wake us
  const Clock::time_point limit = Clock::now() + patience;
  // Kept in this call, so that a child that is forked meanwhile does not destroy what is waited for here.
  const std::shared_ptr<State> state = state_;
  std::unique_lock<std::mutex> lock(state->mutex);
  if (state->IsDue()) {
    ++state->begun;
    state->latest = Clock::now();
    std::thread([state] { state->Take(state->lookup()); }).detach();
  }
  const int64_t awaited = state->begun;
  while (state->addresses == nullptr && state->ended < awaited) {
    if (cancel != nullptr && cancel->cancelled()) return absl::CancelledError("cancelled");
    const Clock::duration left = limit - Clock::now();
    if (left <= Clock::duration::zero()) {
      const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
      return absl::UnavailableError(
          absl::StrCat(state->name, " was not looked up within ", milliseconds.count(), " ms"));
    }
    state->changed.wait_for(lock,
                            cancel == nullptr ? left : std::min<Clock::duration>(kSlice, left));
  }
  if (state->addresses == nullptr) return state->error;
  return state->addresses;
}

}  // namespace stowage
