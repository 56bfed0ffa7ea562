// One bound for the bytes of all requests that are open.
#ifndef STOWAGE_SERVER_PLANNING_BYTE_BUDGET_H_
#define STOWAGE_SERVER_PLANNING_BYTE_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace stowage {

// Thread-safe; what it has given out ends before it does.
class ByteBudget {
 public:
  // Bytes of the budget, until it ends. As it is made, it has none.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (budget_ != nullptr) budget_->held_ -= bytes_;
    }

   private:
    friend class ByteBudget;
    Hold(ByteBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit ByteBudget(size_t limit) : limit_(limit) {}

  // Nothing where the budget has not that many left.
  std::optional<Hold> TryHold(size_t bytes) {
    size_t held = held_;
    do {
      if (bytes > limit_ || held > limit_ - bytes) return std::nullopt;
    } while (!held_.compare_exchange_weak(held, held + bytes));
    return Hold(this, bytes);
  }

  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  std::atomic<size_t> held_{0};
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_BYTE_BUDGET_H_
