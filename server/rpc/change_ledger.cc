#include "server/rpc/change_ledger.h"

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Calls a function at the end of a block, also where it is left by an exception.
template <class Function>
class AtEnd {
 public:
  explicit AtEnd(const Function& function) : function_(function) {}
  ~AtEnd() { function_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const Function& function_;
};

}  // namespace

absl::StatusOr<bool> ChangeLedger::Once(const std::string& caller, const std::string& request_id,
                                        const std::string& change,
                                        const std::function<absl::StatusOr<bool>()>& make) {
  if (request_id.empty()) return make();
  const std::string id = absl::StrCat(request_id, " ", caller);  // no id has a space
  std::list<std::string> latest = {id};  // made here, for End must not throw
  const absl::StatusOr<std::optional<bool>> found = Find(id, request_id, change);
  if (!found.ok()) return found.status();
  if (found->has_value()) return **found;
  std::optional<bool> said;
  const auto end = [&] { End(said, &latest); };
  const AtEnd<decltype(end)> at_end(end);
  absl::StatusOr<bool> made = make();
  if (made.ok()) said = *made;
  return made;
}

absl::StatusOr<std::optional<bool>> ChangeLedger::Find(const std::string& id,
                                                       const std::string& request_id,
                                                       const std::string& change) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto [place, fresh] = changes_.try_emplace(id, Change{change, std::nullopt});
    if (fresh) return std::optional<bool>();
    if (place->second.what != change) {
      return FieldError("request_id", request_id, "must not be that of another change");
    }
    if (place->second.said) return place->second.said;
    ended_.wait(lock);
  }
}

void ChangeLedger::End(std::optional<bool> said, std::list<std::string>* latest) noexcept {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto change = changes_.find(latest->front());
    if (said) {
      change->second.said = said;
      made_.splice(made_.end(), *latest);
    } else {
      changes_.erase(change);
    }
    if (made_.size() > capacity_) {
      changes_.erase(made_.front());
      made_.pop_front();
    }
  }
  ended_.notify_all();
}

}  // namespace stowage
