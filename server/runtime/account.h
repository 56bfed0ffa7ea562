// Whose share a call takes of what all callers have together: threads, queues, open calls, bytes of
// requests.
//
// That of its tenant. Where it has none, that of its identity (the name of its certificate or token).
// Callers with neither share one account. An identity is never taken for a tenant of the same name. Memory of plans, which is
// kept below this layer and has of an identity its hash alone, is shared by the same rule: server/entries/memory_owner.h.
#ifndef STOWAGE_SERVER_RUNTIME_ACCOUNT_H_
#define STOWAGE_SERVER_RUNTIME_ACCOUNT_H_

#include <algorithm>
#include <string>
#include <tuple>

namespace stowage {

// A value.
class Account {
 public:
  // That of all callers of whom nothing is known.
  Account() = default;

  // Of a caller; either may be empty.
  static Account Of(const std::string& tenant, const std::string& identity) {
    if (!tenant.empty()) return Account(Kind::kTenant, tenant);
    if (!identity.empty()) return Account(Kind::kIdentity, identity);
    return Account();
  }

  bool is_anonymous() const { return kind_ == Kind::kAnonymous; }

  friend bool operator<(const Account& a, const Account& b) {
    return std::tie(a.kind_, a.name_) < std::tie(b.kind_, b.name_);
  }
  friend bool operator==(const Account& a, const Account& b) {
    return a.kind_ == b.kind_ && a.name_ == b.name_;
  }

 private:
  enum class Kind { kAnonymous, kIdentity, kTenant };

  Account(Kind kind, const std::string& name) : kind_(kind), name_(name) {}

  Kind kind_ = Kind::kAnonymous;
  std::string name_;
};

// What one account may have of something that all have together.
struct AccountShare {
  double of_each = 0.5;       // in (0, 1]
  double of_anonymous = 1.0;  // in (0, 1]

  // At least 1.
  template <class Number>
  Number Of(Number whole, const Account& account) const {
    const double share = account.is_anonymous() ? of_anonymous : of_each;
    return std::max<Number>(static_cast<Number>(static_cast<double>(whole) * share), 1);
  }
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_ACCOUNT_H_
