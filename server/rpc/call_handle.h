// The way from a reactor to its call in planning. The call may begin on another thread, and the client
// may cancel before it has, so the reactor may be gone when the call is known.
#ifndef STOWAGE_SERVER_RPC_CALL_HANDLE_H_
#define STOWAGE_SERVER_RPC_CALL_HANDLE_H_

#include <memory>
#include <mutex>

#include "server/service/planning_service.h"

namespace stowage {

// Thread-safe. Copies are the same handle.
class CallHandle {
 public:
  explicit CallHandle(PlanningService* planning) : state_(std::make_shared<State>(planning)) {}

  void Set(const std::shared_ptr<PlanCall>& call) const {
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (!state_->forgotten) state_->call = call;
    const bool cancelled = state_->cancelled;
    lock.unlock();
    if (cancelled) state_->planning->Cancel(call);
  }

  // Null until it is set.
  std::shared_ptr<PlanCall> call() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->call;
  }

  void Cancel() const {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->cancelled = true;
    const std::shared_ptr<PlanCall> call = state_->call;
    lock.unlock();
    if (call) state_->planning->Cancel(call);
  }

  // The reactor is gone: drops the call, which may hold what holds this handle.
  void Forget() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->forgotten = true;
    state_->call = nullptr;
  }

  bool cancelled() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->cancelled;
  }

 private:
  struct State {
    explicit State(PlanningService* service) : planning(service) {}
    PlanningService* const planning;
    std::mutex mutex;
    std::shared_ptr<PlanCall> call;
    bool cancelled = false;
    bool forgotten = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_CALL_HANDLE_H_
