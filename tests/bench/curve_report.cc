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

void AppendRow(const ConfigurationCurves& curves, const std::string& strategy,
               const std::string& parameter, Bytes budget, Bytes peak, Nanos makespan,
               std::string* csv) {
  const Configuration& c = curves.configuration;
  absl::StrAppendFormat(csv, "%s,%d,%d,%s,%s,%d,%d,%d,%.4f,%d,modelled\n", c.network, c.image,
                        c.batch, strategy, parameter, budget.value(), peak.value(),
                        makespan.value(), ImagesPerSecond(c, makespan), curves.ideal.value());
}

void AppendRuns(const ConfigurationCurves& curves, std::string* csv) {
  for (const SequentialRun& run : curves.runs) {
    AppendRow(curves, kSequential, absl::StrCat("segments=", run.segments), run.peak, run.peak,
              run.makespan, csv);
  }
}

void AppendCurve(const ConfigurationCurves& curves, const StrategyCurve& curve, std::string* csv) {
  const Frontier& frontier = curve.frontier;
  const int64_t slots = frontier.info().slots;
  const std::string parameter = slots > 0 ? absl::StrCat("slots=", slots) : "";
  std::vector<Bytes> budgets = BudgetGrid(curves);
  if (frontier.points().size() <= budgets.size()) {
    budgets.clear();
    for (const Frontier::Point& point : frontier.points()) budgets.push_back(point.peak);
  }
  for (const Bytes budget : budgets) {
    const Frontier::Point* point = frontier.At(budget);
    if (point == nullptr) continue;
    AppendRow(curves, curve.strategy, parameter, budget, point->peak, point->makespan, csv);
  }
}

PlotPoint PlotPointOf(const Configuration& configuration, Bytes peak, Nanos makespan) {
  return {static_cast<double>(peak.value()) / kGib, ImagesPerSecond(configuration, makespan)};
}

Series SeriesOf(const ConfigurationCurves& curves, const StrategyCurve& curve) {
  Series series;
  series.label = curve.strategy;
  if (curve.strategy == kSequential) {
    for (const SequentialRun& run : curves.runs) {
      series.crosses.push_back(PlotPointOf(curves.configuration, run.peak, run.makespan));
    }
    return series;
  }
  for (const Frontier::Point& point : curve.frontier.points()) {
    series.steps.push_back(PlotPointOf(curves.configuration, point.peak, point.makespan));
  }
  return series;
}

Panel PanelOf(const ConfigurationCurves& curves) {
  Panel panel;
  panel.title = absl::StrCat("batch ", curves.configuration.batch);
  panel.x_label = "memory for activations [GiB]";
  panel.y_label = "modelled throughput [images/s]";
  for (const StrategyCurve& curve : curves.curves) panel.series.push_back(SeriesOf(curves, curve));
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

// Those that have a choice of budgets and are not what the others are held against.
std::vector<std::string> ComparedStrategies(const std::vector<ConfigurationCurves>& all) {
  std::vector<std::string> strategies;
  for (const ConfigurationCurves& curves : all) {
    for (const StrategyCurve& curve : curves.curves) {
      const bool known =
          std::find(strategies.begin(), strategies.end(), curve.strategy) != strategies.end();
      const bool one_point = curve.frontier.points().size() < 2;
      if (!known && !one_point && curve.strategy != kSequential) {
        strategies.push_back(curve.strategy);
      }
    }
  }
  return strategies;
}

// A row of the summary: the means over the configurations of one network, or of all if it is empty.
std::string SummaryRow(const std::vector<ConfigurationCurves>& all, const std::string& strategy,
                       const std::string& network, const DeviceModel& device) {
  constexpr Bytes kUnlimited(std::numeric_limits<int64_t>::max());
  Mean best;
  Mean on_device;
  Mean curve;
  for (const ConfigurationCurves& curves : all) {
    if (!network.empty() && curves.configuration.network != network) continue;
    best.Add(GainOverBestRun(curves, strategy, kUnlimited));
    on_device.Add(GainOverBestRun(curves, strategy, ActivationMemory(curves, device)));
    curve.Add(GainOverCurve(curves, strategy));
  }
  return absl::StrFormat("%-24s %20s %20s %20s\n", network.empty() ? "all" : network, best.AsGain(),
                         on_device.AsGain(), curve.AsGain());
}

}  // namespace

std::string CurvesAsCsv(const std::vector<ConfigurationCurves>& all) {
  std::string csv =
      "network,image,batch,strategy,parameter,budget_bytes,peak_bytes,makespan_ns,"
      "images_per_second,ideal_ns,costs\n";
  for (const ConfigurationCurves& curves : all) {
    for (const StrategyCurve& curve : curves.curves) {
      if (curve.strategy == kSequential) {
        AppendRuns(curves, &csv);
      } else {
        AppendCurve(curves, curve, &csv);
      }
    }
  }
  return csv;
}

std::string CurvesAsSvg(const std::vector<ConfigurationCurves>& batches, bool from_0) {
  std::vector<Panel> panels;
  panels.reserve(batches.size());
  for (const ConfigurationCurves& curves : batches) {
    panels.push_back(PanelOf(curves));
    panels.back().y_from_0 = from_0;
  }
  const Configuration& first = batches.front().configuration;
  return RenderSvg(absl::StrFormat("%s, %d x %d pixels", first.network, first.image, first.image),
                   panels);
}

std::string GainSummary(const std::vector<ConfigurationCurves>& all, const DeviceModel& device) {
  std::string text = absl::StrFormat(
      "Mean throughput gain over %s (and of how many configurations). Modelled costs, %s.\n",
      kSequential, device.name);
  std::vector<std::string> networks;
  for (const ConfigurationCurves& curves : all) {
    const std::string& network = curves.configuration.network;
    if (networks.empty() || networks.back() != network) networks.push_back(network);
  }
  networks.emplace_back();
  for (const std::string& strategy : ComparedStrategies(all)) {
    absl::StrAppendFormat(&text, "\n%-24s %20s %20s %20s\n", strategy, "over its best run",
                          "best run on device", "whole curve");
    for (const std::string& network : networks) {
      text += SummaryRow(all, strategy, network, device);
    }
  }
  return text;
}

}  // namespace stowage
