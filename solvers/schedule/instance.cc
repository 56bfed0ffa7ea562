#include "solvers/schedule/instance.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"

namespace stowage {

Instance::Instance(Problem problem, std::optional<TransferModel> link)
    : shared_(std::make_shared<const Shared>(std::move(problem))), link_(link) {}

Instance::Instance(Chain chain, std::optional<TransferModel> link)
    : Instance(Problem(std::move(chain)), link) {}

Instance::Instance(Graph graph, std::optional<TransferModel> link)
    : Instance(Problem(std::move(graph)), link) {}

Instance::Instance(const Profile& profile)
    : Instance(profile.problem, TransfersOf(profile.device)) {}

Instance::Instance(std::shared_ptr<const Shared> shared, std::optional<TransferModel> link)
    : shared_(std::move(shared)), link_(link) {}

absl::Status Instance::CheckLink() const {
  return link_ ? ValidateTransferModel(*link_) : absl::OkStatus();
}

Instance Instance::WithLink(std::optional<TransferModel> link) const {
  return Instance(shared_, link);
}

Schedule Instance::store_all_schedule() const {
  return std::visit([](const auto& kind) { return StoreAllSchedule(kind); }, problem());
}

const absl::StatusOr<Simulation>& Instance::store_all() const {
  std::call_once(shared_->once, [this] {
    shared_->store_all = Evaluator(WithLink(std::nullopt)).Run(store_all_schedule());
    if (shared_->store_all.ok()) return;
    shared_->store_all = FieldError(
        "profile", absl::StrCat("plain training fails: ", shared_->store_all.status().message()),
        "must be a step that can run without a budget");
  });
  return shared_->store_all;
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
