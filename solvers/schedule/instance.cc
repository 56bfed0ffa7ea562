#include "solvers/schedule/instance.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/internal/computing_observer.h"
#include "solvers/schedule/internal/recompute_curve.h"

namespace stowage {

class Instance::Memo {
 public:
  // Bounds of one problem depend on their kind, the link and the budget.
  using BoundKey = std::array<int64_t, 8>;

  static BoundKey KeyOf(BoundKind kind, const std::optional<TransferModel>& link, Bytes budget) {
    const int64_t of_kind = 2 * static_cast<int64_t>(kind);
    if (!link) return {of_kind, budget.value()};
    return {of_kind + 1,
            budget.value(),
            link->to_host.bytes_per_second,
            link->to_host.latency.value(),
            link->to_device.bytes_per_second,
            link->to_device.latency.value(),
            link->full_duplex ? 1 : 0,
            link->host_memory.value()};
  }

  std::optional<Nanos> Find(const BoundKey& key) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bounds_.find(key);
    return found == bounds_.end() ? std::nullopt : std::optional<Nanos>(found->second);
  }

  void Insert(const BoundKey& key, Nanos bound) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bounds_.emplace(key, bound);
  }

  std::shared_ptr<const RecomputeCurve> Curve(const Problem& problem) {
    std::call_once(curve_once_, [&] { curve_ = std::make_shared<const RecomputeCurve>(problem); });
    return curve_;
  }

  // Plain training; constant once the instance is made.
  Schedule schedule;
  std::vector<TimelinePoint> timeline;
  absl::StatusOr<Simulation> simulation;

 private:
  mutable std::mutex mutex_;
  std::map<BoundKey, Nanos> bounds_;
  std::once_flag curve_once_;
  std::shared_ptr<const RecomputeCurve> curve_;  // after it
};

Instance::Instance(Problem problem, std::optional<TransferModel> link)
    : shared_(std::make_shared<const Shared>(std::move(problem))), link_(link) {}

Instance::Instance(Chain chain, std::optional<TransferModel> link)
    : Instance(Problem(std::move(chain)), link) {}

Instance::Instance(Graph graph, std::optional<TransferModel> link)
    : Instance(Problem(std::move(graph)), link) {}

Instance::Instance(const Profile& profile)
    : Instance(profile.problem, TransfersOf(profile.device)) {}

Instance::Instance(std::shared_ptr<const Shared> shared, std::optional<TransferModel> link,
                   std::shared_ptr<Memo> memo)
    : shared_(std::move(shared)), link_(link), memo_(std::move(memo)) {}

absl::Status Instance::CheckLink() const {
  return link_ ? ValidateTransferModel(*link_) : absl::OkStatus();
}

Instance Instance::WithLink(std::optional<TransferModel> link) const {
  return Instance(shared_, link, memo_);
}

Instance Instance::Remembering() const {
  if (memo_ != nullptr) return *this;
  auto memo = std::make_shared<Memo>();
  memo->schedule = store_all_schedule();
  memo->simulation = Evaluator(WithLink(std::nullopt)).Run(memo->schedule, &memo->timeline);
  std::call_once(shared_->once, [&] { SetStoreAll(memo->simulation); });
  return Instance(shared_, link_, std::move(memo));
}

Schedule Instance::store_all_schedule() const {
  if (memo_ != nullptr) return memo_->schedule;
  return std::visit([](const auto& kind) { return StoreAllSchedule(kind); }, problem());
}

const absl::StatusOr<Simulation>& Instance::store_all() const {
  std::call_once(shared_->once, [this] {
    SetStoreAll(Evaluator(WithLink(std::nullopt)).Run(store_all_schedule()));
  });
  return shared_->store_all;
}

void Instance::SetStoreAll(const absl::StatusOr<Simulation>& replayed) const {
  shared_->store_all = replayed;
  if (replayed.ok()) return;
  shared_->store_all =
      FieldError("profile", absl::StrCat("plain training fails: ", replayed.status().message()),
                 "must be a step that can run without a budget");
}

std::optional<Simulation> Instance::Recall(const Schedule& schedule,
                                           std::vector<TimelinePoint>* timeline) const {
  if (memo_ == nullptr || !memo_->simulation.ok() || memo_->schedule != schedule) {
    return std::nullopt;
  }
  if (timeline != nullptr) *timeline = memo_->timeline;
  return *memo_->simulation;
}

Nanos Instance::Bound(BoundKind kind, Bytes budget, absl::FunctionRef<Nanos()> compute) const {
  const Memo::BoundKey key = Memo::KeyOf(kind, link_, budget);
  if (memo_ != nullptr) {
    if (const std::optional<Nanos> known = memo_->Find(key)) return *known;
  }
  if (ComputingObserver* observer = computing_observer.load(std::memory_order_relaxed)) {
    observer->OnBound(*this, kind, budget);
  }
  const Nanos bound = compute();
  if (memo_ != nullptr) memo_->Insert(key, bound);
  return bound;
}

std::shared_ptr<const RecomputeCurve> Instance::Curve() const {
  if (memo_ != nullptr) return memo_->Curve(problem());
  return std::make_shared<const RecomputeCurve>(problem());
}

Instance InstanceOf(const Profile& profile, bool recompute_only) {
  const Instance instance(profile);
  return recompute_only ? instance.WithLink(std::nullopt) : instance;
}

Schedule StoreAllSchedule(const Chain& chain) {
  Schedule schedule;
  const int last = chain.length() + 1;
  schedule.reserve(static_cast<size_t>(last) * 2);
  for (int l = 1; l <= last; ++l) schedule.push_back(ForwardSave(l));
  for (int l = last; l >= 1; --l) schedule.push_back(Backward(l));
  return schedule;
}

Schedule StoreAllSchedule(const Graph& graph) {
  Schedule compute;
  compute.reserve(static_cast<size_t>(graph.size()) * 2);
  for (int v = 1; v <= graph.size(); ++v) {
    compute.push_back(graph.has_backwards() ? ForwardSave(v) : ForwardNoSave(v));
  }
  if (!graph.has_backwards()) return WithDiscards(graph, compute);
  for (int v = graph.size(); v >= 1; --v) compute.push_back(Backward(v));
  return WithDiscards(graph, compute);
}

}  // namespace stowage
