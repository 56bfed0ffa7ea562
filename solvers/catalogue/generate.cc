#include "solvers/catalogue/generate.h"

#include <map>
#include <utility>

#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr int64_t kClasses = 1000;

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

// Of that size; not solved yet.
CatalogueFrontier Sized(const NetworkOptions& network) {
  CatalogueFrontier frontier;
  frontier.batch = network.batch;
  if (IsDecoder(network.name)) {
    frontier.length = network.length;
  } else {
    frontier.image = network.image;
    frontier.classes = network.classes;
  }
  return frontier;
}

absl::StatusOr<CatalogueFrontier> GenerateOne(const NetworkOptions& network,
                                              const std::string& device, ScheduleNumbers* numbers) {
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(device);
  if (!kind.ok()) return kind.status();
  const absl::StatusOr<Chain> chain = NetworkChain(network, kind->model);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<Frontier> solved = MakeChainFrontier(*chain, PlanOptions());
  if (!solved.ok()) return solved.status();
  CatalogueFrontier frontier = Sized(network);
  frontier.device = device;
  frontier.info = solved->info();
  frontier.structure = StructureDigest(*chain);
  const std::vector<size_t> chosen = ChooseCompact(solved->points(), kMostCataloguePoints);
  for (const size_t i : chosen) {
    frontier.schedules.push_back(numbers->Of(solved->points()[i].schedule));
  }
  frontier.info.exact = frontier.info.exact && chosen.size() == solved->points().size();
  return frontier;
}

}  // namespace

const std::vector<CatalogueWish>& ShippedWishes() {
  static const auto* const kWishes = [] {
    const std::vector<int64_t> usual = {8, 16, 32, 64, 128, 256};
    auto* wishes = new std::vector<CatalogueWish>;
    for (const char* name :
         {"alexnet", "vgg11", "vgg13", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50",
          "resnet101", "resnet152", "densenet121", "densenet161", "densenet169", "densenet201"}) {
      wishes->push_back({name, {224}, usual});
    }
    wishes->push_back({"inception_v3", {299}, usual});
    for (const NetworkInfo& decoder : AllDecoders()) {
      wishes->push_back({decoder.name, {512, 1024, 2048}, {1, 2, 4, 8, 16, 32}});
    }
    return wishes;
  }();
  return *kWishes;
}

const std::vector<std::string>& ShippedDevices() {
  static const auto* const kDevices =
      new std::vector<std::string>{"v100", "a100", "h100", "l4", "cpu"};
  return *kDevices;
}

absl::StatusOr<NetworkCatalogue> Generate(const CatalogueWish& wish,
                                          const std::vector<std::string>& devices) {
  NetworkCatalogue catalogue;
  catalogue.network = wish.network;
  catalogue.solver_version = kSolverVersion;
  ScheduleNumbers numbers(&catalogue.schedules);
  for (const int64_t size : wish.sizes) {
    for (const int64_t batch : wish.batches) {
      for (const std::string& device : devices) {
        const NetworkOptions network{wish.network, size, batch, kClasses, size};
        absl::StatusOr<CatalogueFrontier> frontier = GenerateOne(network, device, &numbers);
        if (!frontier.ok()) return frontier.status();
        catalogue.frontiers.push_back(*std::move(frontier));
      }
    }
  }
  return catalogue;
}

}  // namespace stowage
