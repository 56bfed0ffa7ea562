#include "client/torch/offload/copy_channel.h"

#include <algorithm>
#include <utility>

namespace stowage {

CopyChannel::CopyChannel() : free_(Clock::now()), thread_([this] { Run(); }) {}

CopyChannel::~CopyChannel() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::unique_ptr<CopyChannel::Ticket> CopyChannel::Start(Nanos time, std::function<void()> copy) {
  auto job = std::make_shared<Job>();
  job->copy = std::move(copy);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_ = std::max(free_, Clock::now()) + std::chrono::nanoseconds(time.value());
    job->end = free_;
    jobs_.push_back(job);
  }
  changed_.notify_all();
  return std::make_unique<Ticket>(this, std::move(job));
}

void CopyChannel::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const std::shared_ptr<Job> job = jobs_.front();
    changed_.wait_until(lock, job->end, [&] { return stop_ || job->given_up; });
    if (stop_) return;
    if (!job->given_up) Carry(job.get(), &lock);
    job->state = State::kEnded;
    jobs_.pop_front();
    changed_.notify_all();
  }
}

// At the end of its time, so that a source that does not stay, or stay as it was, is found out.
void CopyChannel::Carry(Job* job, std::unique_lock<std::mutex>* lock) {
  job->state = State::kCopying;
  lock->unlock();
  std::exception_ptr error;
  try {
    job->copy();
  } catch (...) {
    error = std::current_exception();
  }
  lock->lock();
  job->error = error;
}

void CopyChannel::Wait(Job* job) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [job] { return job->state == State::kEnded; });
  if (job->error) std::rethrow_exception(job->error);
}

void CopyChannel::GiveUp(Job* job) {
  std::unique_lock<std::mutex> lock(mutex_);
  job->given_up = true;
  changed_.notify_all();
  changed_.wait(lock, [job] { return job->state != State::kCopying; });
}

int CopyChannel::running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(jobs_.size());
}

}  // namespace stowage
