#include "solvers/schedule/frontier.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/varint.h"

namespace stowage {
namespace {

constexpr uint64_t kVersion = 1;
// Of one byte. Who reads the first flag alone refuses what has the second one.
constexpr uint8_t kExact = 1;
constexpr uint8_t kCutShort = 2;
constexpr int64_t kMaxText = 1 << 12;
constexpr int64_t kMostBytes = int64_t{16} << 20;
// The first shares of the makespan that thinning tries, each so much larger than the one before.
constexpr double kLeastTolerance = 1e-5;
constexpr double kToleranceStep = 1.25;

using Point = Frontier::Point;

// The first point whose peak is over the budget.
std::vector<Point>::const_iterator FirstOver(const std::vector<Point>& points, Bytes budget) {
  return std::upper_bound(points.begin(), points.end(), budget,
                          [](Bytes b, const Point& point) { return b < point.peak; });
}

Bytes MemoryOf(const Point& point) {
  return Bytes(static_cast<int64_t>(sizeof(Point)) + point.schedule.bytes());
}

void AppendText(const std::string& text, std::string* out) {
  AppendVarint(text.size(), out);
  *out += text;
}

bool ReadText(VarintReader* in, int64_t max, std::string* text) {
  int64_t size = 0;
  return in->Count(max, &size) && in->String(size, text);
}

bool ReadInfo(VarintReader* in, FrontierInfo* info) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  uint8_t flags = 0;
  int64_t least = 0;
  if (!ReadText(in, kMaxText, &info->solver) || !ReadText(in, kMaxText, &info->schedule_class) ||
      !in->Count(kMax, &least) || !in->Byte(&flags) || flags > (kExact | kCutShort) ||
      !in->Count(kMax, &info->slots)) {
    return false;
  }
  info->least_budget = Bytes(least);
  info->exact = (flags & kExact) != 0;
  info->search_complete = (flags & kCutShort) == 0;
  return true;
}

// Peaks and makespans are stored as steps from the point before.
bool ReadPoint(VarintReader* in, bool first, int64_t instructions_max, Point* point) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t peak_step = 0, makespan_step = 0;
  if (!in->Count(kMax - point->peak.value(), &peak_step) ||
      !in->Count(first ? kMax : point->makespan.value(), &makespan_step) ||
      (!first && (peak_step == 0 || makespan_step == 0))) {
    return false;
  }
  point->peak += Bytes(peak_step);
  point->makespan = Nanos(first ? makespan_step : point->makespan.value() - makespan_step);
  std::string code;
  if (!ReadText(in, instructions_max, &code)) return false;
  absl::StatusOr<PackedSchedule> schedule = PackedSchedule::FromCode(std::move(code));
  if (!schedule.ok()) return false;
  point->schedule = *std::move(schedule);
  return true;
}

// What Build keeps; nothing where that is too many.
std::vector<size_t> ChooseMost(const std::vector<PointCost>& points, size_t most,
                               double tolerance) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!chosen.empty() && i + 1 < points.size()) {
      const double kept = static_cast<double>(points[chosen.back()].makespan.value());
      if (static_cast<double>(points[i].makespan.value()) > kept * (1.0 - tolerance)) continue;
    }
    chosen.push_back(i);
    if (chosen.size() > most) return {};
  }
  return chosen;
}

// Drops those that are worth the least for their bytes: without one, the budgets up to the next get a plan that is slower
// by a share. Schedules of the least budgets may be a hundred times as long as others, and serve few budgets.
void DropOverBytes(const std::vector<PointCost>& points, std::vector<size_t>* chosen) {
  const auto worth = [&](size_t c) {
    const PointCost& point = points[(*chosen)[c]];
    const auto makespan = static_cast<double>(point.makespan.value());
    const double slower =
        (static_cast<double>(points[(*chosen)[c - 1]].makespan.value()) - makespan) /
        std::max(makespan, 1.0);
    const Bytes budgets = points[(*chosen)[c + 1]].peak - point.peak;
    return slower * static_cast<double>(std::max<int64_t>(budgets.value(), 1)) /
           static_cast<double>(std::max<int64_t>(point.bytes, 1));
  };
  int64_t left = std::max(kMostBytes - points.front().bytes, kMostBytes / 2);
  for (size_t c = 1; c < chosen->size(); ++c) left -= points[(*chosen)[c]].bytes;
  while (left < 0 && chosen->size() > 2) {
    size_t least = 1;
    for (size_t c = 2; c + 1 < chosen->size(); ++c) {
      if (worth(c) < worth(least)) least = c;
    }
    left += points[(*chosen)[least]].bytes;
    chosen->erase(chosen->begin() + static_cast<ptrdiff_t>(least));
  }
}

}  // namespace

std::vector<size_t> ChooseCompact(const std::vector<PointCost>& points, size_t most) {
  if (points.empty()) return {};
  std::vector<size_t> chosen = ChooseMost(points, most, 0.0);
  for (double tolerance = kLeastTolerance; chosen.empty() && tolerance < 1.0;
       tolerance *= kToleranceStep) {
    chosen = ChooseMost(points, most, tolerance);
  }
  if (chosen.empty()) {
    chosen = {0};
    if (points.size() > 1 && most > 1) chosen.push_back(points.size() - 1);
  }
  DropOverBytes(points, &chosen);
  return chosen;
}

std::vector<size_t> ChooseCompact(const std::vector<Frontier::Point>& points, size_t most) {
  std::vector<PointCost> costs;
  costs.reserve(points.size());
  for (const Frontier::Point& point : points) costs.push_back({point.makespan, 0});
  return ChooseCompact(costs, most);
}

const Frontier::Point* Frontier::At(Bytes budget) const {
  const auto over = FirstOver(points_, budget);
  return over == points_.begin() ? nullptr : &*(over - 1);
}

Plan Frontier::PlanAt(Bytes budget) const {
  Plan plan;
  plan.budget = budget;
  plan.bounds.schedule_class = info_.schedule_class;
  plan.bounds.least_budget = info_.least_budget;
  plan.provenance.solver = info_.solver;
  plan.provenance.slots = info_.slots;
  const Point* point = At(budget);
  if (point == nullptr) {
    const bool proven = budget < info_.least_budget;
    plan.status = proven ? PlanStatus::kProvenInfeasible : PlanStatus::kNotFound;
    plan.explanation =
        proven
            ? absl::StrCat("of ", info_.schedule_class, ", none needs less than ",
                           info_.least_budget.value(), " bytes")
            : absl::StrCat("the least that a schedule was found for is ",
                           points_.empty() ? std::string("not known")
                                           : absl::StrCat(points_.front().peak.value(), " bytes"));
    plan.search_complete = proven || info_.search_complete;
    return plan;
  }
  plan.status = PlanStatus::kFound;
  plan.schedule = point->schedule.Unpack();
  plan.bounds.proven_optimal = info_.exact;
  plan.explanation =
      absl::StrCat("one of ", points_.size(), " plans, solved at once for all budgets",
                   info_.search_complete ? "" : "; the deadline cut the search short");
  plan.search_complete = info_.search_complete;
  return plan;
}

std::string Frontier::Encode() const {
  std::string bytes;
  AppendVarint(kVersion, &bytes);
  AppendText(info_.solver, &bytes);
  AppendText(info_.schedule_class, &bytes);
  AppendVarint(static_cast<uint64_t>(info_.least_budget.value()), &bytes);
  bytes.push_back(
      static_cast<char>((info_.exact ? kExact : 0) | (info_.search_complete ? 0 : kCutShort)));
  AppendVarint(static_cast<uint64_t>(info_.slots), &bytes);
  AppendVarint(points_.size(), &bytes);
  Point previous;
  for (const Point& point : points_) {
    const bool first = &point == &points_.front();
    AppendVarint(static_cast<uint64_t>((point.peak - previous.peak).value()), &bytes);
    AppendVarint(static_cast<uint64_t>(
                     (first ? point.makespan : previous.makespan - point.makespan).value()),
                 &bytes);
    AppendText(point.schedule.code(), &bytes);
    previous = point;
  }
  return bytes;
}

absl::StatusOr<Frontier> Frontier::Decode(const std::string& bytes) {
  const absl::Status malformed = absl::InvalidArgumentError("the encoded frontier is malformed");
  VarintReader in(bytes);
  Frontier frontier;
  uint64_t version = 0;
  int64_t count = 0;
  if (!in.Varint(&version)) return malformed;
  if (version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the encoded frontier has version ", version, ", not ", kVersion));
  }
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (!ReadInfo(&in, &frontier.info_) || !in.Count(size, &count)) return malformed;
  Point point;
  for (int64_t i = 0; i < count; ++i) {
    if (!ReadPoint(&in, i == 0, size, &point)) return malformed;
    frontier.points_.push_back(point);
  }
  if (!in.done()) return malformed;
  return frontier;
}

absl::Status FrontierBuilder::Add(const Schedule& schedule) {
  const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
  if (!simulation.ok()) {
    return absl::InternalError(absl::StrCat("the evaluator refused a point of a frontier: ",
                                            simulation.status().message()));
  }
  if (MakespanAt(simulation->peak) <= simulation->makespan) return absl::OkStatus();
  Insert({simulation->peak, simulation->makespan, PackedSchedule(schedule)});
  return absl::OkStatus();
}

void FrontierBuilder::Add(const Frontier& frontier) {
  for (const Point& point : frontier.points()) Insert(point);
}

const Frontier::Point* FrontierBuilder::At(Bytes budget) const {
  const auto over = FirstOver(points_, budget);
  return over == points_.begin() ? nullptr : &*(over - 1);
}

Nanos FrontierBuilder::MakespanAt(Bytes budget) const {
  const Frontier::Point* point = At(budget);
  return point == nullptr ? Nanos(std::numeric_limits<int64_t>::max()) : point->makespan;
}

void FrontierBuilder::Insert(Frontier::Point point) {
  if (MakespanAt(point.peak) <= point.makespan) return;
  const auto at = std::lower_bound(points_.begin(), points_.end(), point.peak,
                                   [](const Point& p, Bytes peak) { return p.peak < peak; });
  const auto slower = std::find_if(
      at, points_.end(), [&point](const Point& p) { return p.makespan < point.makespan; });
  for (auto dominated = at; dominated != slower; ++dominated) taken_ -= MemoryOf(*dominated);
  taken_ += MemoryOf(point);
  points_.insert(points_.erase(at, slower), std::move(point));
  if (taken_ > memory_) Thin();
}

// To half of the memory: it is not for every point that comes.
void FrontierBuilder::Thin() {
  while (taken_ > Bytes(memory_.value() / 2) && points_.size() > 2) {
    std::vector<Point> kept;
    taken_ = Bytes(0);
    for (const size_t i : ChooseCompact(points_, std::max<size_t>(points_.size() / 2, 2))) {
      taken_ += MemoryOf(points_[i]);
      kept.push_back(std::move(points_[i]));
    }
    points_ = std::move(kept);
    thinned_ = true;
  }
}

Frontier FrontierBuilder::Build(FrontierInfo info, double tolerance) const {
  Frontier frontier;
  frontier.info_ = std::move(info);
  frontier.info_.exact = frontier.info_.exact && !thinned_;
  for (const Point& point : points_) {
    const bool last = &point == &points_.back();
    if (!frontier.points_.empty() && !last) {
      const double kept = static_cast<double>(frontier.points_.back().makespan.value());
      if (static_cast<double>(point.makespan.value()) > kept * (1.0 - tolerance)) continue;
    }
    frontier.points_.push_back(point);
  }
  return frontier;
}

Frontier FrontierBuilder::BuildCompact(FrontierInfo info) const {
  std::vector<PointCost> costs;
  costs.reserve(points_.size());
  for (const Point& point : points_) {
    costs.push_back(
        {point.makespan, static_cast<int64_t>(point.schedule.code().size()), point.peak});
  }
  const std::vector<size_t> chosen = ChooseCompact(costs);
  Frontier frontier;
  frontier.info_ = std::move(info);
  frontier.info_.exact = frontier.info_.exact && !thinned_ && chosen.size() == points_.size();
  for (const size_t i : chosen) frontier.points_.push_back(points_[i]);
  return frontier;
}

}  // namespace stowage
