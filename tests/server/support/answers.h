// Collects asynchronous answers of ComputePlan.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_ANSWERS_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_ANSWERS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "server/service/compute_plan.h"

namespace stowage::testing {

// Outlives the calls whose answers it collects.
class Answers {
 public:
  // The callback of call `index`.
  ComputeCallback Of(int index) {
    return [this, index](absl::StatusOr<ComputeAnswer> answer) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++callbacks_;
      answers_.insert_or_assign(index, std::move(answer));
      changed_.notify_all();
    };
  }

  // DATA_LOSS after 10 s without an answer.
  absl::StatusOr<ComputeAnswer> WaitFor(int index) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(10),
                                        [&] { return answers_.count(index) == 1; });
    if (!came) return absl::DataLossError("no answer");
    return answers_.at(index);
  }

  bool Has(int index) {
    std::lock_guard<std::mutex> lock(mutex_);
    return answers_.count(index) == 1;
  }

  // How often any callback was called: once per call.
  size_t callbacks() {
    std::lock_guard<std::mutex> lock(mutex_);
    return callbacks_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, absl::StatusOr<ComputeAnswer>> answers_;
  size_t callbacks_ = 0;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_ANSWERS_H_
