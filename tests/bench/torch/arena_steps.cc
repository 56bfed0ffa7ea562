// Trains reference networks on small images by chain plans, their steps served from one reserved region,
// and holds what is reserved against what is used, and the time against that of ordinary blocks: pairs of
// steps, one of each kind, in turns which comes first, on one thread.
//
// usage: arena_steps [network...]     exit code 1 if a step fails or departs from its trace
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/models/models.h"
#include "client/torch/execute/executor.h"
#include "client/torch/memory/step_arena.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kClasses = 10;
constexpr int64_t kImage = 96;
constexpr int kPairs = 15;
constexpr double kShares[] = {1.0, 0.7, 0.5};
constexpr const char* kNetworks[] = {"resnet18",    "resnet50",     "resnet101", "densenet121",
                                     "densenet201", "inception_v3", "vgg11"};

struct Steps {
  StepReport last;
  Bytes reserved;  // of the last, as its peak
  std::vector<Nanos> times;
};

absl::Status Step(const ChainModel& model, const Sample& sample, Executor* executor,
                  StepArena* arena, Steps* steps) {
  model.ZeroGradients();
  const Bytes before =
      TrackingAllocator::Get()->current() - Bytes(static_cast<int64_t>(sample.input.nbytes()));
  const ArenaScope scope(arena);
  absl::StatusOr<StepReport> report = executor->Step(sample.input, sample.target);
  if (!report.ok()) return report.status();
  steps->last = *report;
  steps->reserved = report->peak_reserved - before;
  steps->times.push_back(report->wall_time);
  return absl::OkStatus();
}

// Of the pairs, in rising order.
std::vector<double> Ratios(const std::vector<Nanos>& a, const std::vector<Nanos>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) {
    ratios.push_back(static_cast<double>(a[i].value()) / static_cast<double>(b[i].value()));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

double MiB(Bytes bytes) { return static_cast<double>(bytes.value()) / (1 << 20); }

absl::StatusOr<bool> RunPlan(const std::string& name, const ChainModel& model, const Sample& sample,
                             const Profile& profile, double share) {
  const absl::StatusOr<Plan> plan =
      MakePlan(profile, Budget(ShareOfStoreAll{share}), PlanOptions());
  if (!plan.ok()) return plan.status();
  if (plan->schedule.empty()) return true;
  const auto executor = Executor::Create(&model, std::get<Chain>(profile.problem), plan->schedule);
  if (!executor.ok()) return executor.status();
  const auto arena = StepArena::Create({});
  if (!arena.ok()) return arena.status();
  Steps served;
  Steps ordinary;
  absl::Status status = Step(model, sample, executor->get(), arena->get(), &ordinary);
  if (!status.ok()) return status;
  const auto start = std::chrono::steady_clock::now();
  status = (*arena)->Prepare();
  const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - start;
  // The region's pages are new.
  if (status.ok()) status = Step(model, sample, executor->get(), arena->get(), &served);
  served.times.clear();
  ordinary.times.clear();
  for (int i = 0; status.ok() && i < 2 * kPairs; ++i) {
    const bool in_region = (i + i / 2) % 2 == 0;
    status = Step(model, sample, executor->get(), in_region ? arena->get() : nullptr,
                  in_region ? &served : &ordinary);
  }
  if (!status.ok()) return status;
  const std::vector<double> ratios = Ratios(served.times, ordinary.times);
  const ArenaReport report = (*arena)->report();
  const double over =
      static_cast<double>(report.extent.value()) / static_cast<double>(report.live_peak.value());
  const double reserved =
      static_cast<double>(served.reserved.value()) / static_cast<double>(served.last.peak.value());
  std::printf(
      "| %s | %.0f%% | %lld | %.2f | %.4f | %.4f | %lld | %lld | %.2f s | %.3f (%.3f to %.3f) |\n",
      name.c_str(), share * 100, static_cast<long long>(report.counts.served),
      MiB(served.last.peak), over, reserved, static_cast<long long>(report.counts.outside),
      static_cast<long long>(report.counts.departed), planning.count(), ratios[kPairs / 2],
      ratios[kPairs / 4], ratios[kPairs - 1 - kPairs / 4]);
  std::fflush(stdout);
  return report.counts.departed == 0;
}

absl::StatusOr<bool> RunNetwork(const std::string& name) {
  ModelOptions options;
  options.classes = kClasses;
  options.image = kImage;
  const absl::StatusOr<ChainModel> model = MakeModel(name, options);
  if (!model.ok()) return model.status();
  const absl::StatusOr<Sample> sample = MakeImageSample(kBatch, kImage, kClasses, 1);
  if (!sample.ok()) return sample.status();
  ProfileOptions profiling;
  profiling.repeats = 1;
  const auto profile = ProfileChain(*model, sample->input, sample->target, profiling);
  if (!profile.ok()) return profile.status();
  bool good = true;
  for (const double share : kShares) {
    const absl::StatusOr<bool> ran = RunPlan(name, *model, *sample, *profile, share);
    if (!ran.ok()) return ran.status();
    good &= *ran;
  }
  return good;
}

int Run(std::vector<std::string> names) {
  TrackingAllocator::Install();
  at::set_num_threads(1);
  if (names.empty()) names.assign(std::begin(kNetworks), std::end(kNetworks));
  std::printf(
      "| network | budget | blocks | peak [MiB] | extent / live peak | reserved / peak | outside | "
      "departed | planned in | step time / ordinary, median of pairs (quartiles) |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  bool good = true;
  for (const std::string& name : names) {
    const absl::StatusOr<bool> ran = RunNetwork(name);
    if (!ran.ok())
      std::printf("%s: %s\n", name.c_str(), std::string(ran.status().message()).c_str());
    good &= ran.ok() && *ran;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Run(std::vector<std::string>(argv + 1, argv + argc));
}
