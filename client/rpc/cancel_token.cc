#include "client/rpc/cancel_token.h"

#include <utility>

namespace stowage {

void CancelToken::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  // Under the lock: a watch that ends meanwhile waits until its function has returned.
  for (const std::function<void()>& ended : watches_) ended();
  changed_.notify_all();
}

bool CancelToken::cancelled() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

void CancelToken::SleepFor(std::chrono::nanoseconds wait) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, wait, [this] { return cancelled_; });
}

CancelToken::Watch::Watch(CancelToken* token, std::function<void()> ended) : token_(token) {
  if (token_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(token_->mutex_);
  token_->watches_.push_back(std::move(ended));
  entry_ = std::prev(token_->watches_.end());
  if (token_->cancelled_) (*entry_)();
}

CancelToken::Watch::~Watch() {
  if (token_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(token_->mutex_);
  token_->watches_.erase(entry_);
}

}  // namespace stowage
