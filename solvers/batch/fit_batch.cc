#include "solvers/batch/fit_batch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

__extension__ using Wide = __int128;

// The straight line through two points, rounded up, and not below 0.
class Line {
 public:
  Line(int64_t x0, int64_t x1, int64_t x) : x0_(x0), x1_(x1), x_(x) {}

  int64_t At(int64_t y0, int64_t y1) const {
    const Wide run = x1_ - x0_;
    const Wide rise = static_cast<Wide>(y1 - y0) * (x_ - x0_);
    Wide quotient = rise / run;
    if (rise % run > 0) ++quotient;  // division rounds towards 0
    const Wide y = y0 + quotient;
    constexpr Wide kMost = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(std::clamp<Wide>(y, 0, kMost));
  }
  template <class Unit>
  Unit At(Unit y0, Unit y1) const {
    return Unit(At(y0.value(), y1.value()));
  }

 private:
  const int64_t x0_, x1_, x_;
};

// No more than can be said: what Chain::Create refuses.
Bytes Sum(Bytes a, Bytes b) {
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  return Bytes(
      static_cast<int64_t>(std::min<Wide>(static_cast<Wide>(a.value()) + b.value(), kMost)));
}

// What stages and vertices have in common.
template <class Step>
void InterpolateStep(const Line& line, const Step& a, const Step& b, Step* step) {
  for (auto field : {&Step::forward_time, &Step::backward_time}) {
    step->*field = line.At(a.*field, b.*field);
  }
  for (auto field :
       {&Step::output, &Step::output_gradient, &Step::forward_saving_overhead,
        &Step::forward_overhead, &Step::backward_overhead, &Step::transient_parameters}) {
    step->*field = line.At(a.*field, b.*field);
  }
  step->recompute_saving_time.reset();
  step->recompute_saving_overhead.reset();
  if (!a.stops() || !b.stops()) return;
  step->recompute_saving_time =
      std::min(line.At(a.stopped_time(), b.stopped_time()), step->forward_time);
  step->recompute_saving_overhead = std::min(line.At(a.stopped_overhead(), b.stopped_overhead()),
                                             Sum(step->output, step->forward_saving_overhead));
}

Stage Interpolate(const Line& line, const Stage& a, const Stage& b) {
  Stage stage = a;
  InterpolateStep(line, a, b, &stage);
  Bytes parts = stage.output;
  for (size_t i = 0; i < a.saved_tensors.size(); ++i) {
    stage.saved_tensors[i] = line.At(a.saved_tensors[i], b.saved_tensors[i]);
    parts = Sum(parts, stage.saved_tensors[i]);
  }
  stage.saved = std::max(line.At(a.saved, b.saved), parts);
  return stage;
}

absl::StatusOr<Problem> Interpolate(const Line& line, const Chain& a, const Chain& b) {
  ChainSpec spec = a.spec();
  spec.input = line.At(a.spec().input, b.spec().input);
  spec.input_gradient = line.At(a.spec().input_gradient, b.spec().input_gradient);
  for (size_t l = 0; l < spec.stages.size(); ++l) {
    spec.stages[l] = Interpolate(line, a.spec().stages[l], b.spec().stages[l]);
  }
  spec.loss = Interpolate(line, a.spec().loss, b.spec().loss);
  absl::StatusOr<Chain> chain = Chain::Create(std::move(spec));
  if (!chain.ok()) return chain.status();
  return Problem(*std::move(chain));
}

absl::StatusOr<Problem> Interpolate(const Line& line, const Graph& a, const Graph& b) {
  GraphSpec spec = a.spec();
  for (int p = 0; p < a.size(); ++p) {
    Vertex& vertex = spec.vertices[static_cast<size_t>(p)];
    InterpolateStep(line, a.vertex(p), b.vertex(p), &vertex);
    vertex.extra_saved = line.At(a.vertex(p).extra_saved, b.vertex(p).extra_saved);
  }
  absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  if (!graph.ok()) return graph.status();
  return Problem(*std::move(graph));
}

// Compares what must be equal; the first that is not is the error.
class SameStructure {
 public:
  explicit SameStructure(std::string profile) : profile_(std::move(profile)) {}

  template <class Value>
  void Check(const std::string& field, const Value& first, const Value& other) {
    if (!status_.ok() || first == other) return;
    status_ = FieldError(absl::StrCat(profile_, field), absl::StrCat(other),
                         absl::StrCat("must be that of profiles[0]: ", first));
  }

  template <class Step>
  void CheckStep(const std::string& prefix, const Step& a, const Step& b) {
    Check(prefix + ".op_kind", a.op_kind, b.op_kind);
    Check<int64_t>(prefix + ".random", a.random, b.random);
    Check<int64_t>(prefix + ".stateful", a.stateful, b.stateful);
    Check<int64_t>(prefix + ".collective", a.collective, b.collective);
    Check<int64_t>(prefix + ".must_keep", a.must_keep, b.must_keep);
  }

  void CheckStage(const std::string& prefix, const Stage& a, const Stage& b) {
    CheckStep(prefix, a, b);
    Check<int64_t>(prefix + ".saved_tensor_bytes", static_cast<int64_t>(a.saved_tensors.size()),
                   static_cast<int64_t>(b.saved_tensors.size()));
  }

  void CheckVertex(const std::string& prefix, const Graph& x, const Graph& y, int p) {
    const Vertex& a = x.vertex(p);
    const Vertex& b = y.vertex(p);
    CheckStep(prefix, a, b);
    Check<int64_t>(prefix + ".backward_needs_output", a.backward_needs_output,
                   b.backward_needs_output);
    Check<int64_t>(prefix + ".alias", static_cast<int64_t>(a.alias), static_cast<int64_t>(b.alias));
    Check<int64_t>(prefix + ".linear_multi_input", a.linear_multi_input, b.linear_multi_input);
    Check<int64_t>(prefix + ".inputs", static_cast<int64_t>(a.inputs.size()),
                   static_cast<int64_t>(b.inputs.size()));
    for (size_t i = 0; status_.ok() && i < a.inputs.size(); ++i) {
      const std::string input = absl::StrCat(prefix, ".inputs[", i, "]");
      Check<int64_t>(input + ".vertex_id", a.inputs[i].vertex, b.inputs[i].vertex);
      Check<int64_t>(input + ".backward_needs", a.inputs[i].backward_needs,
                     b.inputs[i].backward_needs);
    }
  }

  const absl::Status& status() const { return status_; }

 private:
  const std::string profile_;
  absl::Status status_;
};

absl::Status CheckSame(const Profile& first, const Profile& other, size_t index) {
  SameStructure same(absl::StrCat("profiles[", index, "].profile."));
  const auto kind = [](const Profile& profile) {
    return std::string(ToString(KindOf(profile.problem)));
  };
  same.Check("kind", kind(first), kind(other));
  if (!same.status().ok()) return same.status();
  if (const Graph* a = std::get_if<Graph>(&first.problem)) {
    const Graph& b = std::get<Graph>(other.problem);
    same.Check<int64_t>("graph.vertices", a->size(), b.size());
    for (int p = 0; same.status().ok() && p < a->size(); ++p) {
      same.CheckVertex(absl::StrCat("graph.vertices[", p, "]"), *a, b, p);
    }
    return same.status();
  }
  const ChainSpec& a = std::get<Chain>(first.problem).spec();
  const ChainSpec& b = std::get<Chain>(other.problem).spec();
  same.Check<int64_t>("chain.stages", static_cast<int64_t>(a.stages.size()),
                      static_cast<int64_t>(b.stages.size()));
  for (size_t l = 0; same.status().ok() && l < a.stages.size(); ++l) {
    same.CheckStage(absl::StrCat("chain.stages[", l, "]"), a.stages[l], b.stages[l]);
  }
  if (same.status().ok()) same.CheckStage("chain.loss", a.loss, b.loss);
  return same.status();
}

}  // namespace

absl::StatusOr<BatchModel> BatchModel::Create(std::vector<BatchProfile> profiles) {
  constexpr size_t kLeast = 2, kMost = 16;
  if (profiles.size() < kLeast || profiles.size() > kMost) {
    return FieldError("profiles", static_cast<int64_t>(profiles.size()),
                      absl::StrCat("must have ", kLeast, " to ", kMost, " elements"));
  }
  for (size_t i = 0; i < profiles.size(); ++i) {
    const std::string field = absl::StrCat("profiles[", i, "].batch_size");
    const int64_t batch = profiles[i].batch_size;
    if (batch < 1) return FieldError(field, batch, "must be >= 1");
    for (size_t j = 0; j < i; ++j) {
      if (profiles[j].batch_size == batch) return FieldError(field, batch, "must be unique");
    }
    absl::Status same = CheckSame(profiles[0].profile, profiles[i].profile, i);
    if (!same.ok()) return same;
  }
  std::sort(profiles.begin(), profiles.end(), [](const BatchProfile& a, const BatchProfile& b) {
    return a.batch_size < b.batch_size;
  });
  return BatchModel(std::move(profiles));
}

absl::StatusOr<Profile> BatchModel::At(int64_t batch_size) const {
  size_t upper = 1;
  while (upper + 1 < profiles_.size() && profiles_[upper].batch_size < batch_size) ++upper;
  const BatchProfile& a = profiles_[upper - 1];
  const BatchProfile& b = profiles_[upper];
  const Line line(a.batch_size, b.batch_size, batch_size);
  Profile profile = a.profile;
  absl::StatusOr<Problem> problem = std::holds_alternative<Graph>(a.profile.problem)
                                        ? Interpolate(line, std::get<Graph>(a.profile.problem),
                                                      std::get<Graph>(b.profile.problem))
                                        : Interpolate(line, std::get<Chain>(a.profile.problem),
                                                      std::get<Chain>(b.profile.problem));
  if (!problem.ok()) return problem.status();
  profile.problem = *std::move(problem);
  return profile;
}

bool BatchModel::Within(int64_t batch_size) const {
  return profiles_.front().batch_size <= batch_size && batch_size <= profiles_.back().batch_size;
}

bool BatchModel::timeless() const {
  return std::any_of(profiles_.begin(), profiles_.end(), [](const BatchProfile& measured) {
    return IdealTime(measured.profile.problem) == Nanos(0);
  });
}

std::vector<int64_t> BatchModel::Suggested() const {
  std::vector<int64_t> batches;
  for (const BatchProfile& measured : profiles_) batches.push_back(measured.batch_size);
  return batches;
}

namespace {

constexpr int kNeighbours = 3;
constexpr int kMostSamples = 24;
constexpr int64_t kMostBatch = 1048576;
constexpr int64_t kDefaultBatch = 65536;

class Search {
 public:
  Search(const BatchSource& model, int64_t max_batch, const SolveProfile& solve)
      : model_(model), max_batch_(max_batch), solve_(solve), timeless_(model.timeless()) {}

  absl::StatusOr<BatchFit> Run() {
    absl::Status status = FindLargest();
    if (status.ok() && largest_ > 0 && !timeless_) status = SampleThroughput();
    if (!status.ok()) return status;
    BatchFit fit;
    fit.largest = largest_;
    if (const BatchPoint* best = Best()) {
      fit.fastest = best->batch_size;
      fit.samples_per_second = best->samples_per_second;
    }
    for (const auto& [batch, point] : points_) fit.points.push_back(point);
    return fit;
  }

 private:
  absl::Status FindLargest() {
    int64_t fits = 0, next = 1;
    while (next <= max_batch_) {
      int64_t over = max_batch_ + 1;
      while (next <= max_batch_) {
        absl::Status status = Look(next);
        if (!status.ok()) return status;
        if (!points_.at(next).fits) {
          over = next;
          break;
        }
        fits = next;
        next = std::max(fits + 1, std::min(2 * fits, max_batch_));
      }
      absl::Status status = Bisect(over, &fits);
      if (!status.ok()) return status;
      largest_ = fits;
      // Not one of the batches above, or on from there.
      next = max_batch_ + 1;
      for (int64_t b = fits + 1; b <= std::min(fits + kNeighbours, max_batch_); ++b) {
        status = Look(b);
        if (!status.ok()) return status;
        if (points_.at(b).fits) next = b;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Bisect(int64_t over, int64_t* fits) {
    while (over - *fits > 1) {
      const int64_t middle = *fits + (over - *fits) / 2;
      absl::Status status = Look(middle);
      if (!status.ok()) return status;
      (points_.at(middle).fits ? *fits : over) = middle;
    }
    return absl::OkStatus();
  }

  absl::Status SampleThroughput() {
    for (const int64_t batch : model_.Suggested()) {
      if (batch > largest_) break;
      absl::Status status = Look(batch);
      if (!status.ok()) return status;
    }
    for (int samples = 0; samples < kMostSamples; ++samples) {
      const std::optional<int64_t> next = NextSample();
      if (!next) break;
      absl::Status status = Look(*next);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Beside the best: the multiples of 8 next to it, then the middles of the gaps around it.
  std::optional<int64_t> NextSample() const {
    const BatchPoint* best = Best();
    if (best == nullptr) return std::nullopt;
    const int64_t b = best->batch_size;
    for (const int64_t eighth : {b / 8 * 8, (b / 8 + 1) * 8, (b / 8 - 1) * 8}) {
      if (IsNew(eighth)) return eighth;
    }
    const auto at = points_.find(b);
    const int64_t below = at == points_.begin() ? b : std::prev(at)->first;
    const int64_t above = std::next(at) == points_.end() ? b : std::next(at)->first;
    const int64_t low = b - (b - below) / 2, high = b + (above - b) / 2;
    if (b - below >= above - b)
      return IsNew(low) ? low : IsNew(high) ? std::optional(high) : std::nullopt;
    return IsNew(high) ? high : IsNew(low) ? std::optional(low) : std::nullopt;
  }

  bool IsNew(int64_t batch) const {
    return batch >= 1 && batch <= largest_ && points_.count(batch) == 0;
  }

  // The first of those with the most samples per second.
  const BatchPoint* Best() const {
    const BatchPoint* best = nullptr;
    for (const auto& [batch, point] : points_) {
      if (point.samples_per_second > (best == nullptr ? 0.0 : best->samples_per_second)) {
        best = &point;
      }
    }
    return best;
  }

  absl::Status Look(int64_t batch) {
    if (points_.count(batch) > 0) return absl::OkStatus();
    BatchPoint point;
    point.batch_size = batch;
    point.within_profiles = model_.Within(batch);
    const absl::StatusOr<Profile> profile = model_.At(batch);
    // What no profile can say fits no device.
    if (!profile.ok() && !absl::IsInvalidArgument(profile.status())) return profile.status();
    if (profile.ok()) {
      const absl::StatusOr<Plan> plan = solve_(*profile);
      if (!plan.ok()) return plan.status();
      point.fits = plan->status == PlanStatus::kFound;
      if (point.fits) Take(*plan, &point);
    }
    points_.emplace(batch, point);
    return absl::OkStatus();
  }

  void Take(const Plan& plan, BatchPoint* point) const {
    point->makespan = plan.prediction.makespan;
    point->peak = plan.prediction.peak;
    if (timeless_ || point->makespan == Nanos(0)) return;
    point->samples_per_second =
        static_cast<double>(point->batch_size) * 1e9 / static_cast<double>(point->makespan.value());
  }

  const BatchSource& model_;
  const int64_t max_batch_;
  const SolveProfile& solve_;
  const bool timeless_;
  int64_t largest_ = 0;
  std::map<int64_t, BatchPoint> points_;
};

}  // namespace

absl::StatusOr<BatchBounds> MakeBatchBounds(Bytes device_budget, Bytes reserved,
                                            int64_t max_batch_size) {
  if (device_budget < Bytes(0)) {
    return FieldError("device_budget_bytes", device_budget.value(), "must be >= 0");
  }
  if (reserved < Bytes(0) || reserved > device_budget) {
    return FieldError("reserved_bytes", reserved.value(), "must be in [0, device_budget_bytes]");
  }
  if (max_batch_size < 0 || max_batch_size > kMostBatch) {
    return FieldError("max_batch_size", max_batch_size,
                      absl::StrCat("must be in [0, ", kMostBatch, "]"));
  }
  return BatchBounds{device_budget - reserved,
                     max_batch_size == 0 ? kDefaultBatch : max_batch_size};
}

absl::StatusOr<BatchFit> FitBatch(const BatchSource& model, int64_t max_batch,
                                  const SolveProfile& solve) {
  return Search(model, max_batch, solve).Run();
}

}  // namespace stowage
