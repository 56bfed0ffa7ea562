#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/offload/strategies.h"

namespace stowage {
namespace {

constexpr int kScores = 4;
constexpr int kDraws = 64;
constexpr uint64_t kSeed = 1;

using Weights = std::array<double, kScores>;

double ToDouble(Bytes bytes) { return static_cast<double>(bytes.value()); }
double ToDouble(Nanos nanos) { return static_cast<double>(nanos.value()); }

// The four priority scores of Zhang et al. 2019, on the step without offloading: how long an
// activation can be absent; that times its size; the load over the memory, summed over that time;
// the same with what is chosen already taken off the load.
class Scores {
 public:
  explicit Scores(const OffloadProblem& problem) : problem_(problem), n_(problem.size()) {
    for (int k = 0; k < 2 * n_; ++k) {
      const OffloadOp& op = problem.op(OpAt(k));
      time_.push_back(ToDouble(k < n_ ? op.forward_time : op.backward_time));
      const Bytes need = k < n_ ? op.forward_need : op.backward_need;
      over_.push_back(ToDouble(problem.prefix(OpAt(k) + 2) + need - problem.memory()));
    }
    const std::vector<double> until = Sums(time_);
    const std::vector<double> load = LoadSums(over_);
    for (int i = 0; i < n_; ++i) {
      const size_t at = static_cast<size_t>(i);
      const double gap = until[Return(i)] - until[at + 1];
      const double copies = ToDouble(problem.OffloadTime(i) + problem.PrefetchTime(i));
      absence_.push_back(std::max(gap - copies, 0.0));
      area_.push_back(absence_.back() * ToDouble(problem.activation(i)));
      weighted_.push_back(load[Return(i)] - load[at + 1]);
    }
    for (std::vector<double>* score : {&absence_, &area_, &weighted_}) Normalise(score);
  }

  // Activations by falling priority until the problem admits them; fewer if it never does.
  OffloadSet Choose(const Weights& weights) const {
    std::vector<int> open;
    for (int i = 0; i < n_; ++i) {
      if (problem_.activation(i) > Bytes(0)) open.push_back(i);
    }
    // The last score changes with every choice; on long chains it is renewed less often.
    const size_t batch = open.size() / 128 + 1;
    std::vector<double> over = over_;
    OffloadSet set;
    while (!open.empty()) {
      const std::vector<double> priority = Priorities(weights, over);
      std::stable_sort(open.begin(), open.end(), [&priority](int a, int b) {
        return priority[static_cast<size_t>(a)] > priority[static_cast<size_t>(b)];
      });
      const size_t taken = std::min(batch, open.size());
      for (size_t place = 0; place < taken; ++place) {
        const int i = open[place];
        set.insert(std::lower_bound(set.begin(), set.end(), i), i);
      }
      TakeOff(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(taken), &over);
      open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(taken));
      if (problem_.Admits(set)) break;
    }
    return set;
  }

 private:
  // Takes activations off the load while they can be absent. Whole numbers of bytes: in any order.
  void TakeOff(std::vector<int>::const_iterator begin, std::vector<int>::const_iterator end,
               std::vector<double>* over) const {
    std::vector<double> rises(over->size() + 1);  // of what is absent, by place in the step
    for (auto it = begin; it != end; ++it) {
      rises[static_cast<size_t>(*it) + 1] += ToDouble(problem_.activation(*it));
      rises[Return(*it)] -= ToDouble(problem_.activation(*it));
    }
    double absent = 0;
    for (size_t k = 0; k < over->size(); ++k) {
      absent += rises[k];
      (*over)[k] -= absent;
    }
  }

  int OpAt(int k) const { return k < n_ ? k : 2 * n_ - 1 - k; }
  // Place in the step of backward i, which brings activation i back.
  size_t Return(int i) const { return static_cast<size_t>(2 * n_ - 1 - i); }

  static std::vector<double> Sums(const std::vector<double>& values) {
    std::vector<double> sums = {0.0};
    for (const double value : values) sums.push_back(sums.back() + value);
    return sums;
  }

  std::vector<double> LoadSums(const std::vector<double>& over) const {
    std::vector<double> load;
    for (size_t k = 0; k < over.size(); ++k) load.push_back(std::max(over[k], 0.0) * time_[k]);
    return Sums(load);
  }

  static void Normalise(std::vector<double>* score) {
    const double most = *std::max_element(score->begin(), score->end());
    if (most <= 0) return;
    for (double& value : *score) value /= most;
  }

  std::vector<double> Priorities(const Weights& weights, const std::vector<double>& over) const {
    const std::vector<double> load = LoadSums(over);
    std::vector<double> priority(static_cast<size_t>(n_));
    for (int i = 0; i < n_; ++i) {
      const size_t at = static_cast<size_t>(i);
      priority[at] = load[Return(i)] - load[at + 1];
    }
    Normalise(&priority);
    for (size_t i = 0; i < priority.size(); ++i) {
      priority[i] = weights[0] * absence_[i] + weights[1] * area_[i] + weights[2] * weighted_[i] +
                    weights[3] * priority[i];
    }
    return priority;
  }

  const OffloadProblem& problem_;
  const int n_;
  std::vector<double> time_;  // by place in the step
  std::vector<double> over_;  // load over the memory, by place in the step
  std::vector<double> absence_, area_, weighted_;
};

// Each score alone, all alike, then seeded draws.
Weights WeightsOf(int draw, std::mt19937_64* rng) {
  Weights weights{};
  if (draw < kScores) {
    weights[static_cast<size_t>(draw)] = 1.0;
  } else if (draw == kScores) {
    weights.fill(1.0);
  } else {
    for (double& weight : weights) weight = static_cast<double>((*rng)() >> 40);
  }
  return weights;
}

class AutoSwap final : public OffloadStrategy {
 public:
  const OffloadStrategyInfo& info() const override { return info_; }

 protected:
  absl::Status SolveHard(const OffloadProblem& problem, const SolveOptions& options,
                         OffloadPlan* plan) const override {
    const Scores scores(problem);
    std::mt19937_64 rng(kSeed);
    StopPoll poll(options.stop);
    for (int draw = 0; draw < kDraws; ++draw) {
      absl::Status status = poll.Spend(1 << 20);
      if (!status.ok()) return status;
      const OffloadSet set = scores.Choose(WeightsOf(draw, &rng));
      if (problem.Admits(set)) Offer(problem, set, plan);
      if (options.progress) options.progress(static_cast<double>(draw + 1) / kDraws);
    }
    plan->explanation = absl::StrCat("the best of ", kDraws, " weightings of the scores");
    return absl::OkStatus();
  }

 private:
  const OffloadStrategyInfo info_ = {"offload_autoswap",
                                     "activations by a weighted sum of four priority scores"};
};

}  // namespace

const OffloadStrategy& AutoSwapOffload() {
  static const AutoSwap* const kStrategy = new AutoSwap;
  return *kStrategy;
}

}  // namespace stowage
