#include "server/planning/open_calls.h"

namespace stowage {

OpenCalls::Accepted OpenCalls::TryEnter(const std::string& tenant) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return Accepted::kClosed;
  if (open_ >= limit_) return Accepted::kTooMany;
  if (!tenant.empty()) {
    int64_t& open = of_tenants_[tenant];  // at its limit it was there already
    if (open >= tenant_limit_) return Accepted::kTooManyOfTenant;
    ++open;
  }
  ++open_;
  return Accepted::kYes;
}

void OpenCalls::Left(const std::string& tenant) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto of_tenant = of_tenants_.find(tenant);
  if (of_tenant != of_tenants_.end() && --of_tenant->second == 0) of_tenants_.erase(of_tenant);
  if (--open_ == 0) none_.notify_all();
}

void OpenCalls::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

DrainResult OpenCalls::Drain(std::chrono::steady_clock::time_point deadline) {
  DrainResult result;
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = true;
  result.finished = open_;
  none_.wait_until(lock, deadline, [this] { return open_ == 0; });
  result.abandoned = open_;
  result.finished -= result.abandoned;
  return result;
}

}  // namespace stowage
