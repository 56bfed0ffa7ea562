// Curves as files and text.
#ifndef STOWAGE_TESTS_BENCH_CURVE_REPORT_H_
#define STOWAGE_TESTS_BENCH_CURVE_REPORT_H_

#include <string>
#include <vector>

#include "tests/bench/curve_set.h"

namespace stowage {

// A header and a row per strategy and budget: every run of checkpoint_sequential, every point of a
// curve that has few, the budget grid (curve_gains.h) of one that has many.
std::string CurvesAsCsv(const std::vector<ConfigurationCurves>& all);

// Throughput against memory, a panel per batch, the throughput from 0 or as Panel::y_from_0 has it. All of one
// network and image size.
std::string CurvesAsSvg(const std::vector<ConfigurationCurves>& batches, bool from_0 = true);

// The mean gains of every strategy over checkpoint_sequential by network and over all, and how many
// configurations each is the mean of.
std::string GainSummary(const std::vector<ConfigurationCurves>& all, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CURVE_REPORT_H_
