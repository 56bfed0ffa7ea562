#include "solvers/zoo/generate.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "solvers/graph/solvers.h"
#include "solvers/planner.h"
#include "solvers/schedule/schedule.h"

namespace stowage {
namespace {

// Of a graph: its schedules are long.
constexpr size_t kMostGraphPoints = 11;

// Numbers schedules as they come, equal ones alike.
class ScheduleNumbers {
 public:
  explicit ScheduleNumbers(std::vector<std::string>* schedules) : schedules_(schedules) {}

  size_t Of(const std::string& code) {
    const auto [at, is_new] = numbers_.emplace(code, schedules_->size());
    if (is_new) schedules_->push_back(code);
    return at->second;
  }

 private:
  std::vector<std::string>* const schedules_;
  std::map<std::string, size_t> numbers_;
};

// Of that size and form; not solved yet.
CatalogueFrontier Sized(const NetworkOptions& network, bool graph) {
  CatalogueFrontier frontier;
  frontier.graph = graph;
  frontier.batch = network.batch;
  if (IsDecoder(network.name)) {
    frontier.length = network.length;
  } else {
    frontier.image = network.image;
    frontier.classes = network.classes;
  }
  return frontier;
}

// What a catalogue has of a frontier.
struct Chosen {
  FrontierInfo info;
  std::vector<PackedSchedule> schedules;
};

absl::StatusOr<Chosen> Solved(const Problem& problem) {
  const absl::StatusOr<Frontier> solved = MakeFrontier(problem, PlanOptions());
  if (!solved.ok()) return solved.status();
  const bool graph = std::holds_alternative<Graph>(problem);
  const std::vector<size_t> chosen =
      ChooseCompact(solved->points(), graph ? kMostGraphPoints : kMostCataloguePoints);
  Chosen result{solved->info(), {}};
  result.info.exact = result.info.exact && chosen.size() == solved->points().size();
  for (const size_t i : chosen) result.schedules.push_back(solved->points()[i].schedule);
  return result;
}

// Of what was solved for a graph of another batch or device, what is a frontier on this one.
absl::StatusOr<Chosen> Replayed(const Chosen& solved, const Graph& graph) {
  FrontierBuilder builder(graph);
  for (const PackedSchedule& schedule : solved.schedules) {
    const absl::Status added = builder.Add(schedule.Unpack());
    if (!added.ok()) return added;
  }
  Chosen result{solved.info, {}};
  result.info.exact = false;
  result.info.least_budget = PeakLowerBound(graph);
  const Frontier frontier = builder.Build(result.info);
  for (const Frontier::Point& point : frontier.points()) result.schedules.push_back(point.schedule);
  return result;
}

// One network at one size of its images or sequences.
absl::Status AddFrontiers(const CatalogueWish& wish, int64_t size, ScheduleNumbers* numbers,
                          std::vector<CatalogueFrontier>* frontiers) {
  std::optional<Chosen> first;
  for (const int64_t batch : wish.batches) {
    for (const std::string& device : wish.devices) {
      const NetworkOptions options{wish.network, size, batch, wish.classes, size};
      const absl::StatusOr<Problem> problem = ModelledProblem(options, wish.graph, device);
      if (!problem.ok()) return problem.status();
      const absl::StatusOr<Chosen> chosen =
          wish.graph && first ? Replayed(*first, std::get<Graph>(*problem)) : Solved(*problem);
      if (!chosen.ok()) return chosen.status();
      if (!first) first = *chosen;
      CatalogueFrontier frontier = Sized(options, wish.graph);
      frontier.device = device;
      frontier.info = chosen->info;
      frontier.structure = StructureDigest(*problem);
      for (const PackedSchedule& schedule : chosen->schedules) {
        frontier.schedules.push_back(numbers->Of(schedule.code()));
      }
      frontiers->push_back(std::move(frontier));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<CatalogueWish>& ShippedWishes() {
  static const auto* const kWishes = [] {
    const std::vector<int64_t> usual = {8, 16, 32, 64, 128, 256};
    const std::vector<std::string> devices = {"v100", "a100", "h100", "l4", "cpu"};
    auto* wishes = new std::vector<CatalogueWish>;
    for (const char* name :
         {"alexnet", "vgg11", "vgg13", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50",
          "resnet101", "resnet152", "densenet121", "densenet161", "densenet169", "densenet201"}) {
      wishes->push_back({name, {224}, usual, devices});
    }
    wishes->push_back({"inception_v3", {299}, usual, devices});
    for (const NetworkInfo& decoder : AllDecoders()) {
      wishes->push_back({decoder.name, {512, 1024, 2048}, {1, 2, 4, 8, 16, 32}, devices});
    }
    // Chains of two stages: worth planning op by op alone. Images and classes of CIFAR-10.
    for (const char* name : {"nasnet_a", "amoebanet_a", "darts_v2"}) {
      wishes->push_back({name,
                         {32},
                         {64, 32, 96, 128},
                         {"a100", "v100", "h100", "l4", "cpu"},
                         10,
                         /*graph=*/true});
    }
    return wishes;
  }();
  return *kWishes;
}

absl::StatusOr<NetworkCatalogue> Generate(const CatalogueWish& wish) {
  NetworkCatalogue catalogue;
  catalogue.network = wish.network;
  catalogue.solver_version = kSolverVersion;
  ScheduleNumbers numbers(&catalogue.schedules);
  for (const int64_t size : wish.sizes) {
    const absl::Status added = AddFrontiers(wish, size, &numbers, &catalogue.frontiers);
    if (!added.ok()) return added;
  }
  return catalogue;
}

}  // namespace stowage
