#include "tests/bench/transfer_curves.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/offload_problem.h"
#include "tests/bench/svg_plot.h"
#include "tests/bench/transfer_ways.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
// What Beaumont et al. 2020 claim of DynProg.
constexpr double kClaim = 1.2;

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value()) / static_cast<double>(b.value());
}

double ImagesPerSecond(const TransferCurves& curves, Nanos makespan) {
  return 1e9 * static_cast<double>(curves.configuration.batch) /
         static_cast<double>(makespan.value());
}

absl::Status AddPoint(const Chain& chain, const TransferModel& link,
                      const std::vector<TransferWay>& ways, Bytes memory, TransferCurves* curves) {
  const absl::StatusOr<OffloadProblem> problem = testing::MakeOffloadProblem(chain, link, memory);
  if (!problem.ok()) return problem.status();
  TransferPoint point{
      memory, problem->LowerBound(), MakespanLowerBound(Instance(chain, link), memory), {}};
  for (const TransferWay& way : ways) {
    const Makespan makespan = way.within(memory);
    if (!makespan.ok()) return makespan.status();
    point.makespans.push_back(*makespan);
  }
  curves->points.push_back(point);
  return absl::OkStatus();
}

// "resnet" of "resnet50".
std::string Family(const std::string& network) {
  return network.substr(0, network.find_first_of("0123456789_"));
}

struct Ratios {
  int points = 0, found = 0, close = 0;
  double sum = 0, largest = 0;

  void Add(const TransferPoint& point, size_t way) {
    ++points;
    if (!point.makespans[way]) return;
    const double ratio = Ratio(*point.makespans[way], point.offload_bound);
    ++found;
    close += ratio <= kClaim ? 1 : 0;
    sum += ratio;
    largest = std::max(largest, ratio);
  }

  std::string Cell() const {
    if (found == 0) return "- ";
    return absl::StrFormat("%.1f%% of %d, %.3f, %.2f ", 100.0 * close / points, points, sum / found,
                           largest);
  }
};

Panel RatioPanel(const TransferCurves& curves) {
  Panel panel{"relative makespan", "memory [GiB]", "makespan / bound of offloading", {}, 2.0};
  for (size_t way = 0; way < curves.ways.size(); ++way) {
    Series series{curves.ways[way]};
    for (const TransferPoint& point : curves.points) {
      if (!point.makespans[way]) continue;
      series.line.push_back({static_cast<double>(point.memory.value()) / kGib,
                             Ratio(*point.makespans[way], point.offload_bound)});
    }
    panel.series.push_back(series);
  }
  return panel;
}

Panel ThroughputPanel(const TransferCurves& curves) {
  Panel panel{"throughput", "memory [GiB]", "modelled throughput [images/s]", {}};
  for (size_t way = 0; way < curves.ways.size(); ++way) {
    Series series{curves.ways[way]};
    for (const TransferPoint& point : curves.points) {
      if (!point.makespans[way]) continue;
      series.line.push_back({static_cast<double>(point.memory.value()) / kGib,
                             ImagesPerSecond(curves, *point.makespans[way])});
    }
    panel.series.push_back(series);
  }
  return panel;
}

}  // namespace

absl::StatusOr<TransferCurves> ComputeTransferCurves(const Configuration& configuration,
                                                     const TransferModel& link, int count) {
  const absl::StatusOr<Chain> chain = ModelledChain(configuration);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<OffloadProblem> problem =
      testing::MakeOffloadProblem(*chain, link, Bytes(0));
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<Frontier> recompute = RecomputeFrontier(*chain);
  if (!recompute.ok()) return recompute.status();
  const std::vector<TransferWay> ways = AllTransferWays(*chain, *recompute, link);

  TransferCurves curves;
  curves.configuration = configuration;
  curves.ideal = chain->ideal_time();
  curves.store_all_peak = problem->peak();
  for (const TransferWay& way : ways) curves.ways.push_back(way.name);
  const int64_t least = problem->least_memory().value(), range = problem->peak().value() - least;
  for (int i = 0; i < count; ++i) {
    const absl::Status status =
        AddPoint(*chain, link, ways, Bytes(least + range * i / (count - 1)), &curves);
    if (!status.ok()) return status;
  }
  return curves;
}

std::string TransferCsv(const std::vector<TransferCurves>& all) {
  std::string csv =
      "network,image,batch,way,memory_bytes,store_all_bytes,makespan_ns,ideal_ns,"
      "offload_bound_ns,bound_ns,images_per_second,costs\n";
  for (const TransferCurves& curves : all) {
    const Configuration& c = curves.configuration;
    for (size_t way = 0; way < curves.ways.size(); ++way) {
      for (const TransferPoint& point : curves.points) {
        if (!point.makespans[way]) continue;
        absl::StrAppendFormat(&csv, "%s,%d,%d,%s,%d,%d,%d,%d,%d,%d,%.4f,modelled\n", c.network,
                              c.image, c.batch, curves.ways[way], point.memory.value(),
                              curves.store_all_peak.value(), point.makespans[way]->value(),
                              curves.ideal.value(), point.offload_bound.value(),
                              point.bound.value(), ImagesPerSecond(curves, *point.makespans[way]));
      }
    }
  }
  return csv;
}

std::string TransferSvg(const TransferCurves& curves) {
  const Configuration& c = curves.configuration;
  return RenderSvg(
      absl::StrFormat("%s, %d x %d pixels, batch %d", c.network, c.image, c.image, c.batch),
      {RatioPanel(curves), ThroughputPanel(curves)});
}

std::string TransferSummary(const std::vector<TransferCurves>& all) {
  std::vector<std::string> families;
  for (const TransferCurves& curves : all) {
    const std::string family = Family(curves.configuration.network);
    if (families.empty() || families.back() != family) families.push_back(family);
  }
  families.push_back("all");
  std::string text = "| way |";
  for (const std::string& family : families) absl::StrAppend(&text, " ", family, " |");
  text += "\n|---|";
  for (size_t i = 0; i < families.size(); ++i) text += "---|";
  text += "\n";
  for (size_t way = 0; way < all.front().ways.size(); ++way) {
    absl::StrAppend(&text, "| ", all.front().ways[way], " |");
    for (const std::string& family : families) {
      Ratios ratios;
      for (const TransferCurves& curves : all) {
        if (family != "all" && Family(curves.configuration.network) != family) continue;
        for (const TransferPoint& point : curves.points) ratios.Add(point, way);
      }
      absl::StrAppend(&text, " ", ratios.Cell(), "|");
    }
    text += "\n";
  }
  return text;
}

}  // namespace stowage
