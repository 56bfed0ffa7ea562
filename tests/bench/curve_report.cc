#include "tests/bench/curve_report.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/curve_gains.h"
#include "tests/bench/svg_plot.h"

namespace stowage {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double ImagesPerSecond(const Configuration& configuration, Nanos makespan) {
  return 1e9 * static_cast<double>(configuration.batch) / static_cast<double>(makespan.value());
}

std::string ParameterOf(const Frontier& frontier, const Frontier::Point& point) {
  const FrontierInfo& info = frontier.info();
  if (info.solver == kSequential) return absl::StrCat("segments=", SegmentsOf(frontier, point));
  return info.slots > 0 ? absl::StrCat("slots=", info.slots) : "";
}

void AppendRows(const ConfigurationCurves& curves, const StrategyCurve& curve, std::string* csv) {
  const Configuration& c = curves.configuration;
  std::vector<Bytes> budgets = BudgetGrid(curves);
  if (curve.frontier.points().size() <= budgets.size()) {
    budgets.clear();
    for (const Frontier::Point& point : curve.frontier.points()) budgets.push_back(point.peak);
  }
  for (const Bytes budget : budgets) {
    const Frontier::Point* point = curve.frontier.At(budget);
    if (point == nullptr) continue;
    absl::StrAppendFormat(csv, "%s,%d,%d,%s,%s,%d,%d,%d,%.4f,%d,modelled\n", c.network, c.image,
                          c.batch, curve.strategy, ParameterOf(curve.frontier, *point),
                          budget.value(), point->peak.value(), point->makespan.value(),
                          ImagesPerSecond(c, point->makespan), curves.ideal.value());
  }
}

Panel PanelOf(const ConfigurationCurves& curves) {
  Panel panel;
  panel.title = absl::StrCat("batch ", curves.configuration.batch);
  panel.x_label = "memory for activations [GiB]";
  panel.y_label = "modelled throughput [images/s]";
  for (const StrategyCurve& curve : curves.curves) {
    Series series;
    series.label = curve.strategy;
    for (const Frontier::Point& point : curve.frontier.points()) {
      series.points.push_back({static_cast<double>(point.peak.value()) / kGib,
                               ImagesPerSecond(curves.configuration, point.makespan)});
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

class Mean {
 public:
  void Add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  // "+12.3 % (57)"
  std::string AsGain() const {
    return count_ == 0 ? "-" : absl::StrFormat("%+.1f %% (%d)", 100 * sum_ / count_, count_);
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

// What is left for activations beside weights and their gradients.
Bytes ActivationMemory(const ConfigurationCurves& curves, const DeviceModel& device) {
  return device.memory - curves.parameters - curves.parameters;
}

std::vector<std::string> StrategiesOf(const std::vector<ConfigurationCurves>& all) {
  std::vector<std::string> strategies;
  for (const ConfigurationCurves& curves : all) {
    for (const StrategyCurve& curve : curves.curves) {
      if (std::find(strategies.begin(), strategies.end(), curve.strategy) == strategies.end()) {
        strategies.push_back(curve.strategy);
      }
    }
  }
  return strategies;
}

}  // namespace

std::string CurvesAsCsv(const std::vector<ConfigurationCurves>& all) {
  std::string csv =
      "network,image,batch,strategy,parameter,budget_bytes,peak_bytes,makespan_ns,"
      "images_per_second,ideal_ns,costs\n";
  for (const ConfigurationCurves& curves : all) {
    for (const StrategyCurve& curve : curves.curves) AppendRows(curves, curve, &csv);
  }
  return csv;
}

std::string CurvesAsSvg(const std::vector<ConfigurationCurves>& batches) {
  std::vector<Panel> panels;
  for (const ConfigurationCurves& curves : batches) panels.push_back(PanelOf(curves));
  const Configuration& first = batches.front().configuration;
  return RenderSvg(absl::StrFormat("%s, %d x %d pixels", first.network, first.image, first.image),
                   panels);
}

std::string GainSummary(const std::vector<ConfigurationCurves>& all, const DeviceModel& device) {
  std::string text = absl::StrFormat(
      "Mean throughput gain over %s (number of configurations), modelled costs, %s\n"
      "%-24s %20s %20s %20s\n",
      kSequential, device.name, "", "over its best run", "best run on device", "whole curve");
  constexpr Bytes kUnlimited(std::numeric_limits<int64_t>::max());
  for (const std::string& strategy : StrategiesOf(all)) {
    if (strategy == kSequential) continue;
    Mean best;
    Mean on_device;
    Mean curve;
    for (const ConfigurationCurves& curves : all) {
      best.Add(GainOverBestRun(curves, strategy, kUnlimited));
      on_device.Add(GainOverBestRun(curves, strategy, ActivationMemory(curves, device)));
      curve.Add(GainOverCurve(curves, strategy));
    }
    absl::StrAppendFormat(&text, "%-24s %20s %20s %20s\n", strategy, best.AsGain(),
                          on_device.AsGain(), curve.AsGain());
  }
  return text;
}

}  // namespace stowage
