#include "tests/bench/curve_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/segments.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "tests/bench/parallel.h"
#include "tests/bench/thread_cpu.h"

namespace stowage {
namespace {

void AddCurve(const Chain& chain, const Solver& solver, const SolveOptions& options,
              ConfigurationCurves* curves) {
  const Nanos start = ThreadCpu();
  absl::StatusOr<Frontier> frontier = solver.SolveFrontier(chain, options);
  const std::string& name = solver.info().name;
  if (!frontier.ok()) {
    curves->failures.push_back(absl::StrCat(name, ": ", frontier.status().ToString()));
    return;
  }
  curves->curves.push_back({name, *std::move(frontier), ThreadCpu() - start});
}

// In the order of the registry.
absl::StatusOr<std::vector<const Solver*>> SolversNamed(
    const std::vector<std::string>& strategies) {
  std::vector<const Solver*> solvers;
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    const auto& name = solver->info().name;
    const bool asked = strategies.empty() ? !solver->info().copies
                                          : std::find(strategies.begin(), strategies.end(), name) !=
                                                strategies.end();
    if (asked) solvers.push_back(solver);
  }
  for (const std::string& name : strategies) {
    const auto has = [&name](const Solver* solver) { return solver->info().name == name; };
    if (std::none_of(solvers.begin(), solvers.end(), has)) {
      return FieldError("strategies", name, "must be the name of a chain solver");
    }
  }
  return solvers;
}

// The counts that Beaumont et al. 2019 draw their ten from.
absl::StatusOr<std::vector<SequentialRun>> SequentialRuns(const Chain& chain) {
  const int most = std::min(chain.length(), static_cast<int>(2 * std::sqrt(chain.length())));
  std::vector<SequentialRun> runs;
  for (int segments = 2; segments <= most; ++segments) {
    absl::StatusOr<Simulation> run = Evaluator(chain).Run(SequentialSchedule(chain, segments));
    if (!run.ok()) return run.status();
    runs.push_back({segments, run->peak, run->makespan});
  }
  return runs;
}

}  // namespace

absl::StatusOr<ConfigurationCurves> ComputeCurves(const Configuration& configuration,
                                                  const DeviceModel& device,
                                                  const std::vector<std::string>& strategies,
                                                  const SolveOptions& options) {
  const auto solvers = SolversNamed(strategies);
  if (!solvers.ok()) return solvers.status();
  NetworkOptions network_options;
  network_options.name = configuration.network;
  network_options.image = configuration.image;
  network_options.batch = configuration.batch;
  absl::StatusOr<Network> network = MakeNetwork(network_options);
  if (!network.ok()) return network.status();
  absl::StatusOr<Chain> chain = ChainOf(*network, device);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<Bytes> store_all = ResolveBudget(*chain, ShareOfStoreAll{1.0}, PlanOptions());
  if (!store_all.ok()) return store_all.status();
  absl::StatusOr<std::vector<SequentialRun>> runs = SequentialRuns(*chain);
  if (!runs.ok()) return runs.status();

  ConfigurationCurves curves;
  curves.configuration = configuration;
  curves.length = chain->length();
  for (const NetworkOp& op : network->ops) curves.parameters += op.parameter_bytes();
  curves.ideal = chain->ideal_time();
  curves.store_all_peak = *store_all;
  curves.runs = *std::move(runs);
  for (const Solver* solver : *solvers) AddCurve(*chain, *solver, options, &curves);
  return curves;
}

absl::StatusOr<std::vector<ConfigurationCurves>> ComputeAllCurves(
    const std::vector<Configuration>& configurations, const DeviceModel& device,
    const std::vector<std::string>& strategies, const SolveOptions& options, int threads,
    void (*done)(const ConfigurationCurves&)) {
  return MakeAll<ConfigurationCurves>(
      configurations.size(), threads,
      [&](size_t i) { return ComputeCurves(configurations[i], device, strategies, options); },
      [&](const ConfigurationCurves& curves) {
        if (done != nullptr) done(curves);
      });
}

const Frontier* CurveOf(const ConfigurationCurves& curves, const std::string& strategy) {
  for (const StrategyCurve& curve : curves.curves) {
    if (curve.strategy == strategy) return &curve.frontier;
  }
  return nullptr;
}

}  // namespace stowage
