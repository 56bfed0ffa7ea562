// One bound for the bytes of all requests that are open, with a share for each account.
//
// Calls for plans hold at most `limit` bytes together. An account holds at most its share of them, or
// one request that is larger than its share: whatever one account does, another one finds the rest.
// Calls of upkeep (reports, administration) hold bytes of the same kind while there are any, and else
// bytes of a reserve that no call for a plan may have; there, too, an account has its share.
#ifndef STOWAGE_SERVER_RUNTIME_BYTE_BUDGET_H_
#define STOWAGE_SERVER_RUNTIME_BYTE_BUDGET_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "server/observe/server_metrics.h"
#include "server/runtime/account.h"

namespace stowage {

// What a request is for.
enum class RequestUse { kPlans, kUpkeep };

// Thread-safe. O(log accounts) a hold. What it has given out may outlive it.
class ByteBudget {
  struct Held {
    size_t bytes = 0;
    size_t requests = 0;
  };
  struct Pool {
    size_t limit = 0;
    size_t held = 0;
    std::map<Account, Held> of_accounts;  // those that hold something
  };
  struct Ledger {
    std::mutex mutex;
    AccountShare share;
    ServerMetrics* metrics = nullptr;  // may be null
    Pool plans, reserve;

    void Tell() const {
      if (metrics == nullptr) return;
      metrics->RequestBytesHeld(static_cast<int64_t>(plans.held + reserve.held));
    }
  };

 public:
  enum class Admitted { kYes, kTooMany, kTooManyOfAccount };

  // Bytes of the budget, until it ends. As it is made, it has none. One thread at a time.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { Swap(&other); }
    Hold& operator=(Hold&& other) noexcept {
      Swap(&other);
      return *this;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (!ledger_) return;
      std::lock_guard<std::mutex> lock(ledger_->mutex);
      GiveBackLocked();
      ledger_->Tell();
    }

    // Holds that many instead, if the budget has them; else as many as before. Fewer always are to be
    // had. A hold of nothing stays one.
    Admitted TryResize(size_t bytes) {
      if (!ledger_) return Admitted::kYes;
      std::lock_guard<std::mutex> lock(ledger_->mutex);
      const size_t before = bytes_;
      GiveBackLocked();
      const Admitted admitted =
          bytes <= before ? Admitted::kYes : ByteBudget::May(*ledger_, *pool_, account_, bytes);
      TakeLocked(admitted == Admitted::kYes ? bytes : before);
      ledger_->Tell();
      return admitted;
    }

    size_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;

    void Swap(Hold* other) {
      std::swap(ledger_, other->ledger_);
      std::swap(pool_, other->pool_);
      std::swap(account_, other->account_);
      std::swap(bytes_, other->bytes_);
    }
    void TakeLocked(size_t bytes) {
      bytes_ = bytes;
      pool_->held += bytes;
      Held& held = pool_->of_accounts[account_];
      held.bytes += bytes;
      ++held.requests;
    }
    void GiveBackLocked() {
      pool_->held -= bytes_;
      const auto found = pool_->of_accounts.find(account_);
      found->second.bytes -= bytes_;
      if (--found->second.requests == 0) pool_->of_accounts.erase(found);
    }

    std::shared_ptr<Ledger> ledger_;  // null: holds nothing
    Pool* pool_ = nullptr;
    Account account_;
    size_t bytes_ = 0;
  };

  // `metrics` may be null; it outlives this object and all that was given out.
  ByteBudget(size_t limit, size_t reserve, const AccountShare& share,
             ServerMetrics* metrics = nullptr)
      : ledger_(std::make_shared<Ledger>()) {
    ledger_->share = share;
    ledger_->metrics = metrics;
    ledger_->plans.limit = limit;
    ledger_->reserve.limit = reserve;
  }

  // Fills `hold`, which holds nothing, or says what is used up: all there is, or the account's share.
  Admitted TryHold(const Account& account, RequestUse use, size_t bytes, Hold* hold) {
    std::lock_guard<std::mutex> lock(ledger_->mutex);
    Pool* pool = &ledger_->plans;
    Admitted admitted = May(*ledger_, *pool, account, bytes);
    if (admitted != Admitted::kYes && use == RequestUse::kUpkeep) {
      pool = &ledger_->reserve;
      admitted = May(*ledger_, *pool, account, bytes);
    }
    if (admitted != Admitted::kYes) return admitted;
    hold->ledger_ = ledger_;
    hold->pool_ = pool;
    hold->account_ = account;
    hold->TakeLocked(bytes);
    ledger_->Tell();
    return Admitted::kYes;
  }

  // From now on. What is held stays so, also where it is more.
  void SetShare(const AccountShare& share) {
    std::lock_guard<std::mutex> lock(ledger_->mutex);
    ledger_->share = share;
  }

  // Of calls for plans.
  size_t limit() const { return ledger_->plans.limit; }
  size_t LimitOf(const Account& account) const {
    std::lock_guard<std::mutex> lock(ledger_->mutex);
    return ledger_->share.Of(limit(), account);
  }

 private:
  static Admitted May(const Ledger& ledger, const Pool& pool, const Account& account,
                      size_t bytes) {
    if (bytes > pool.limit || pool.held > pool.limit - bytes) return Admitted::kTooMany;
    const auto found = pool.of_accounts.find(account);
    if (found == pool.of_accounts.end()) return Admitted::kYes;
    const bool within = found->second.bytes + bytes <= ledger.share.Of(pool.limit, account);
    return within ? Admitted::kYes : Admitted::kTooManyOfAccount;
  }

  const std::shared_ptr<Ledger> ledger_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_BYTE_BUDGET_H_
