#include "server/runtime/open_calls.h"

namespace stowage {

void OpenCalls::SetLimit(int64_t limit, const AccountShare& share) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = limit;
  share_ = share;
}

int64_t OpenCalls::limit() {
  std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

int64_t OpenCalls::LimitOf(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  return share_.Of(limit_, account);
}

OpenCalls::Accepted OpenCalls::TryEnter(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return Accepted::kClosed;
  if (open_ >= limit_) return Accepted::kTooMany;
  int64_t& open = of_accounts_[account];  // at its limit it was there already
  if (open >= share_.Of(limit_, account)) return Accepted::kTooManyOfAccount;
  ++open;
  ++open_;
  return Accepted::kYes;
}

void OpenCalls::Left(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto of_account = of_accounts_.find(account);
  if (--of_account->second == 0) of_accounts_.erase(of_account);
  ++ended_;
  if (--open_ == 0) none_.notify_all();
}

int64_t OpenCalls::count() {
  std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

int64_t OpenCalls::ended() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ended_;
}

void OpenCalls::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

DrainResult OpenCalls::Drain(std::chrono::steady_clock::time_point deadline) {
  DrainResult result;
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = true;
  const int64_t ended_before = ended_;
  none_.wait_until(lock, deadline, [this] { return open_ == 0; });
  result.abandoned = open_;
  result.ended = ended_;
  result.finished = ended_ - ended_before;
  return result;
}

}  // namespace stowage
