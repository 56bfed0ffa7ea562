#include "solvers/zoo/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/generate.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<NetworkCatalogue> Shipped() {
  auto networks = ReadCatalogue(STOWAGE_SOURCE_DIR "/solvers/zoo/data");
  EXPECT_TRUE(networks.ok()) << networks.status();
  return *std::move(networks);
}

NetworkCatalogue Small() { return *Generate({"alexnet", {224}, {4, 8}, {"v100", "cpu"}}); }

std::vector<std::string> CodesOf(const NetworkCatalogue& network,
                                 const CatalogueFrontier& frontier) {
  std::vector<std::string> codes;
  for (const size_t index : frontier.schedules) codes.push_back(network.schedules[index]);
  return codes;
}

TEST(Catalogue, TextIsReadBackAsItWas) {
  const NetworkCatalogue made = Small();
  const std::string text = FormatCatalogue(made);
  const absl::StatusOr<NetworkCatalogue> read = ParseCatalogue(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatCatalogue(*read), text);
  EXPECT_EQ(read->network, "alexnet");
  EXPECT_EQ(read->solver_version, kSolverVersion);
  EXPECT_EQ(read->schedules, made.schedules);
  ASSERT_EQ(read->frontiers.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const CatalogueFrontier &a = read->frontiers[i], &b = made.frontiers[i];
    EXPECT_EQ(a.batch, b.batch);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.structure, b.structure);
    EXPECT_EQ(a.schedules, b.schedules);
    EXPECT_EQ(a.info.schedule_class, b.info.schedule_class);
    EXPECT_EQ(a.info.least_budget, b.info.least_budget);
  }
}

// They have a length where others have an image and classes.
TEST(Catalogue, DecodersAreFoundByTheirLength) {
  const NetworkCatalogue made = *Generate({"gpt2", {64, 128}, {1, 2}, {"a100"}});
  ASSERT_EQ(made.frontiers.size(), 4u);
  const std::string text = FormatCatalogue(made);
  EXPECT_THAT(text, HasSubstr("\nfrontier length=128 batch=2 device=a100 "));
  const absl::StatusOr<NetworkCatalogue> read = ParseCatalogue(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatCatalogue(*read), text);
  const std::vector<NetworkCatalogue> networks = {*read};
  const CatalogueHit hit = FindInCatalogue(networks, {"gpt2", 1, 2, 1, 128}, "a100");
  ASSERT_NE(hit.frontier, nullptr);
  EXPECT_EQ(SizeText(*hit.frontier), "length 128, batch 2");
  const absl::StatusOr<Problem> problem = ProblemFor(*read, *hit.frontier);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const Chain& chain = std::get<Chain>(*problem);
  EXPECT_EQ(chain.length(), 14);
  EXPECT_EQ(chain.stage(14).output, Bytes(int64_t{2} * 128 * 50257 * 4));
  EXPECT_TRUE(ValidatedFrontier(*read, *hit.frontier, *problem).ok());
  EXPECT_EQ(FindInCatalogue(networks, {"gpt2", 1, 2, 1, 256}, "a100").frontier, nullptr);
  const std::string no_length = absl::StrReplaceAll(text, {{"length=128", "length=0"}});
  EXPECT_FALSE(ParseCatalogue(no_length).ok());
}

// The same from run to run, found by their form.
TEST(Catalogue, GraphsAreMadeAlike) {
  const CatalogueWish wish{"alexnet", {64}, {2}, {"v100"}, 10, /*graph=*/true};
  const NetworkCatalogue made = *Generate(wish);
  const std::string text = FormatCatalogue(made);
  EXPECT_EQ(FormatCatalogue(*Generate(wish)), text);
  EXPECT_THAT(text, HasSubstr("\nfrontier form=graph image=64 batch=2 classes=10 device=v100 "));
  const std::vector<NetworkCatalogue> networks = {*ParseCatalogue(text)};
  EXPECT_EQ(FormatCatalogue(networks[0]), text);
  const NetworkOptions options{"alexnet", 64, 2, 10};
  EXPECT_EQ(FindInCatalogue(networks, options, "v100").frontier, nullptr);
  const CatalogueHit hit = FindInCatalogue(networks, options, "v100", /*graph=*/true);
  ASSERT_NE(hit.frontier, nullptr);
  EXPECT_EQ(SizeText(*hit.frontier), "image 64, batch 2, 10 classes, op by op");
  const absl::StatusOr<Problem> problem = ProblemFor(*hit.network, *hit.frontier);
  ASSERT_TRUE(problem.ok()) << problem.status();
  ASSERT_TRUE(std::holds_alternative<Graph>(*problem));
  EXPECT_TRUE(ValidatedFrontier(*hit.network, *hit.frontier, *problem).ok());
  EXPECT_TRUE(FrontiersFor(*hit.network, "t4").ok());
}

TEST(Catalogue, OtherTextIsRefusedByLineAndRule) {
  const std::string text = FormatCatalogue(Small());
  const std::tuple<const char*, const char*, const char*> changes[] = {
      {"stowage-catalogue 1", "stowage-catalogue 2", "line 1: must be 'stowage-catalogue 1'"},
      {"generator 1", "generator one", "line 2: must be 'generator NUMBER'"},
      {"generator 1", "generator 01", "line 2: "},
      {"solver_version", "version", "line 3: must be 'solver_version TEXT'"},
      {"costs modelled roofline", "costs measured", "line 4: must be 'costs modelled roofline'"},
      {"\nnetwork ", "\nnet ", "line 5: must be 'network NAME'"},
      {"\nschedule ", "\nschedule !", "line 6: must be 'schedule CODE'"},
      {"\nschedule ", "\nplan ", "line 6: must be 'schedule CODE' or 'frontier FIELDS'"},
      {"frontier image=224", "frontier image=0224", "the field 'image' of a frontier"},
      {"frontier image=224", "frontier size=224", "the field 'image' of a frontier"},
      {"frontier image", "frontier form=tree image", "the field 'form' of a frontier"},
      {" batch=4", " batch=many", "the field 'batch' of a frontier"},
      {" device=v100", " device=v100 color=green", "the field 'solver' of a frontier"},
      {" structure=", " structure=00", "the field 'structure' of a frontier"},
      {" schedules=", " schedules=99999,", "the field 'schedules' of a frontier"},
      {" exact=", " exact=2", "the field 'exact' of a frontier"},
      {" class=", " kind=", "the field 'class' of a frontier"},
      {"\nsha256 ", "\nschedule ", "a schedule must stand before all frontiers"},
      {"\nsha256 ", "\nsha256 0", "must be the last, 'sha256 DIGEST' of all before it"},
      // What no line shows.
      {" batch=8", " batch=9", "the file is cut, or was changed"},
  };
  for (const auto& [from, to, rule] : changes) {
    const std::string spoilt = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(spoilt, text) << from;
    const auto read = ParseCatalogue(spoilt);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << to;
    EXPECT_THAT(std::string(read.status().message()), AllOf(HasSubstr("line "), HasSubstr(rule)))
        << to;
  }
  // Cut anywhere, or longer than it was.
  for (size_t size = 0; size < text.size(); size += size + 200 < text.size() ? 97 : 1) {
    const auto read = ParseCatalogue(text.substr(0, size));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  for (const char* more : {"\n", "x", "schedule \n"})
    EXPECT_FALSE(ParseCatalogue(text + more).ok());
}

// Whatever a file says, plans come from the evaluator.
TEST(Catalogue, SchedulesThatDoNotFitTheNetworkAreRefused) {
  NetworkCatalogue made = Small();
  const Problem problem = *ProblemFor(made, made.frontiers[0]);
  ASSERT_TRUE(ValidatedFrontier(made, made.frontiers[0], problem).ok());

  CatalogueFrontier twice = made.frontiers[0];
  twice.schedules.push_back(twice.schedules.front());
  EXPECT_TRUE(absl::IsFailedPrecondition(ValidatedFrontier(made, twice, problem).status()));

  NetworkCatalogue foreign = *Generate({"vgg11", {64}, {2}, {"v100"}});
  const auto refused = ValidatedFrontier(foreign, foreign.frontiers[0], problem);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();

  CatalogueFrontier other = made.frontiers[0];
  other.structure = Sha256("another network");
  const auto changed = ProblemFor(made, other);
  EXPECT_TRUE(absl::IsFailedPrecondition(changed.status()));
  EXPECT_THAT(std::string(changed.status().message()), HasSubstr("alexnet"));
}

TEST(Catalogue, OtherDevicesTakeTheFastestSchedulesThereAre) {
  const NetworkCatalogue made = Small();
  const auto own = FrontiersFor(made, "cpu");
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->size(), 2u);  // a size each
  EXPECT_EQ((*own)[0].schedules, made.frontiers[1].schedules);
  const auto others = FrontiersFor(made, "t4");
  ASSERT_TRUE(others.ok()) << others.status();
  ASSERT_EQ(others->size(), 2u);
  for (const CatalogueFrontier& one : *others) {
    EXPECT_EQ(one.device, "t4");
    EXPECT_FALSE(one.info.exact);
    const Problem problem = *ProblemFor(made, one);
    const absl::StatusOr<Frontier> frontier = ValidatedFrontier(made, one, problem);
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    for (const CatalogueFrontier& made_for : made.frontiers) {
      if (made_for.batch != one.batch) continue;
      for (const std::string& code : CodesOf(made, made_for)) {
        const Simulation replay = *Evaluator(problem).Run(*DecodeSchedule(code, 1 << 20));
        ASSERT_NE(frontier->At(replay.peak), nullptr);
        EXPECT_LE(frontier->At(replay.peak)->makespan, replay.makespan);
      }
    }
  }
  EXPECT_FALSE(FrontiersFor(made, "abacus").ok());
}

TEST(Catalogue, AFolderMustHoldWhatItsNamesSay) {
  const TemporaryFolder folder;
  EXPECT_FALSE(ReadCatalogue(folder / "nowhere").ok());
  EXPECT_THAT(std::string(ReadCatalogue(folder.path()).status().message()), HasSubstr("no file"));
  std::ofstream(folder / "alexnet.catalogue") << FormatCatalogue(Small());
  std::ofstream(folder / "README.md") << "not a catalogue";
  const auto read = ReadCatalogue(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 1u);
  const CatalogueHit hit = FindInCatalogue(*read, {"alexnet", 224, 8, 1000}, "cpu");
  ASSERT_NE(hit.frontier, nullptr);
  EXPECT_EQ(hit.frontier->batch, 8);
  EXPECT_EQ(FindInCatalogue(*read, {"alexnet", 224, 8, 10}, "cpu").frontier, nullptr);
  EXPECT_EQ(FindInCatalogue(*read, {"alexnet", 224, 8, 1000}, "a100").frontier, nullptr);
  std::ofstream(folder / "damaged.catalogue") << FormatCatalogue(Small()).substr(0, 1000);
  const auto damaged = ReadCatalogue(folder.path());
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(damaged.status().message()),
              AllOf(HasSubstr(folder / "damaged.catalogue: line "), HasSubstr("the file is cut")));
  std::filesystem::remove(folder / "damaged.catalogue");
  std::ofstream(folder / "vgg11.catalogue") << FormatCatalogue(Small());
  EXPECT_THAT(std::string(ReadCatalogue(folder.path()).status().message()), HasSubstr("vgg11"));
}

// All that is shipped: no plan of it is taken on trust.
TEST(ShippedCatalogue, IsAcceptedByTheEvaluatorPlanByPlan) {
  int64_t bytes = 0;
  size_t frontiers = 0, wished = 0;
  for (const NetworkCatalogue& network : Shipped()) {
    SCOPED_TRACE(network.network);
    bytes += static_cast<int64_t>(FormatCatalogue(network).size());
    EXPECT_EQ(network.generator, kGeneratorVersion);
    for (const CatalogueFrontier& one : network.frontiers) {
      SCOPED_TRACE(absl::StrCat(one.batch, " on ", one.device));
      const absl::StatusOr<Problem> problem = ProblemFor(network, one);
      ASSERT_TRUE(problem.ok()) << problem.status();
      const absl::StatusOr<Frontier> frontier = ValidatedFrontier(network, one, *problem);
      ASSERT_TRUE(frontier.ok()) << frontier.status();
      ASSERT_FALSE(frontier->points().empty());
      // From the least budget of the class to plain training.
      const Simulation plain = *Instance(*problem).store_all();
      EXPECT_GE(frontier->points().front().peak, one.info.least_budget);
      EXPECT_LE(frontier->points().back().peak, plain.peak);
      EXPECT_EQ(frontier->points().back().makespan, plain.makespan);
      EXPECT_FALSE(one.graph && one.info.exact);
      ++frontiers;
    }
  }
  for (const CatalogueWish& wish : ShippedWishes()) {
    wished += wish.sizes.size() * wish.batches.size() * wish.devices.size();
  }
  EXPECT_EQ(frontiers, wished);
  EXPECT_LE(bytes, 3 << 20);
}

void ExpectMadeAgain(const std::vector<NetworkCatalogue>& shipped, const CatalogueWish& wish) {
  SCOPED_TRACE(wish.network);
  const absl::StatusOr<NetworkCatalogue> made = Generate(wish);
  ASSERT_TRUE(made.ok()) << made.status();
  const NetworkOptions options{wish.network, wish.sizes[0], wish.batches[0], wish.classes,
                               wish.sizes[0]};
  const CatalogueHit hit = FindInCatalogue(shipped, options, wish.devices[0], wish.graph);
  ASSERT_NE(hit.frontier, nullptr);
  EXPECT_EQ(CodesOf(*hit.network, *hit.frontier), CodesOf(*made, made->frontiers[0]));
  EXPECT_EQ(hit.network->solver_version, made->solver_version);
  EXPECT_EQ(hit.frontier->info.solver, made->frontiers[0].info.solver);
  EXPECT_EQ(hit.frontier->info.slots, made->frontiers[0].info.slots);
  EXPECT_EQ(hit.frontier->info.exact, made->frontiers[0].info.exact);
  EXPECT_EQ(hit.frontier->info.least_budget, made->frontiers[0].info.least_budget);
  EXPECT_EQ(hit.frontier->structure, made->frontiers[0].structure);
}

// A sample; `stowage catalogue make` makes it all.
TEST(ShippedCatalogue, IsWhatTheGeneratorMakes) {
  const std::vector<NetworkCatalogue> shipped = Shipped();
  for (const CatalogueWish& wish :
       std::vector<CatalogueWish>{{"alexnet", {224}, {64}, {"a100"}},
                                  {"resnet18", {224}, {32}, {"cpu"}},
                                  {"vgg16", {224}, {128}, {"h100"}},
                                  {"resnet50", {224}, {256}, {"v100"}},
                                  {"gpt2", {1024}, {8}, {"a100"}},
                                  {"gpt2_medium", {512}, {2}, {"l4"}},
                                  // A search of ten seconds, whose effort is counted.
                                  {"amoebanet_a", {32}, {64}, {"a100"}, 10, /*graph=*/true}}) {
    ExpectMadeAgain(shipped, wish);
  }
}

// What it costs to have few points: a plan for any budget is close to the one that a solve would bring.
TEST(ShippedCatalogue, PlansAreNearlyAsFastAsThoseOfASolve) {
  const std::vector<NetworkCatalogue> shipped = Shipped();
  const CatalogueHit hit = FindInCatalogue(shipped, {"resnet50", 224, 64, 1000}, "a100");
  ASSERT_NE(hit.frontier, nullptr);
  const Problem problem = *ProblemFor(*hit.network, *hit.frontier);
  const Frontier frontier = *ValidatedFrontier(*hit.network, *hit.frontier, problem);
  const Bytes plain = Instance(problem).store_all()->peak;
  for (const double share : {0.35, 0.45, 0.6, 0.75, 0.9}) {
    const Bytes budget = ShareOf({share}, plain);
    const Plan solved = *MakePlan(problem, budget, PlanOptions());
    ASSERT_EQ(solved.status, PlanStatus::kFound) << share;
    ASSERT_NE(frontier.At(budget), nullptr) << share;
    EXPECT_LE(static_cast<double>(frontier.At(budget)->makespan.value()),
              1.01 * static_cast<double>(solved.prediction.makespan.value()))
        << share;
  }
}

}  // namespace
}  // namespace stowage
