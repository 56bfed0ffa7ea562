#include "client/cli/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/cli/profile_file.h"
#include "solvers/planner.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Instance InstanceOf(const char* file, bool with_link) {
  const TransferModel link = {
      {1000000000, Nanos(0)}, {1000000000, Nanos(0)}, false, Bytes(1 << 30)};
  return Instance(ReadProfile(Data(file)).value().problem,
                  with_link ? std::optional<TransferModel>(link) : std::nullopt);
}

TEST(Comparison, KnownStrategiesAreSolversOfTheProblem) {
  for (const char* file : {"chain_resnet50.json", "graph_resnet50.json"}) {
    for (const bool with_link : {false, true}) {
      const Instance instance = InstanceOf(file, with_link);
      const std::vector<std::string> names = KnownStrategies(instance);
      EXPECT_GE(names.size(), 7u);
      EXPECT_EQ(names.back(), "") << "the planner's choice";
      for (const std::string& name : names) EXPECT_TRUE(FindSolver(instance, name).ok()) << name;
    }
  }
  EXPECT_THAT(KnownStrategies(InstanceOf("chain_resnet50.json", true)),
              Contains("offload_dynprog"));
  EXPECT_THAT(KnownStrategies(InstanceOf("graph_resnet50.json", true)),
              Not(Contains("offload_dynprog")));
}

TEST(Comparison, ParsesStrategies) {
  const Instance chain = InstanceOf("chain_resnet50.json", false);
  EXPECT_THAT(ParseStrategies(chain, "revolve,planner").value(), ElementsAre("revolve", ""));
  EXPECT_EQ(ParseStrategies(chain, "revolve,magic").status().code(),
            absl::StatusCode::kInvalidArgument);
}

Compared Row(const std::string& of, const std::string& budget, const std::string& strategy,
             Nanos makespan) {
  Compared row;
  row.of = of;
  row.budget = budget;
  row.strategy = strategy;
  row.plan.status = PlanStatus::kFound;
  row.plan.budget = Bytes(3 << 20);
  row.plan.prediction.makespan = makespan;
  row.plan.prediction.peak = Bytes(2 << 20);
  row.plan.bounds.store_all_makespan = Nanos(2000000);
  row.plan.bounds.lower_bound = Nanos(2500000);
  row.plan.bounds.schedule_class = "schedules of a class";
  row.plan.provenance.solver = strategy;
  return row;
}

TEST(Comparison, ShowsWhatDiffers) {
  std::vector<Compared> rows = {Row("net", "60%", "a", Nanos(2500000)),
                                Row("net", "60%", "b", Nanos(3000000)),
                                Row("net", "60%", "c", Nanos(0)), Row("net", "60%", "d", Nanos(0))};
  rows[1].plan.bounds.proven_optimal = true;
  rows[2].plan.status = PlanStatus::kProvenInfeasible;
  rows[3].failure = "out of time";
  EXPECT_EQ(ToText(rows),
            "net, budget 60% of plain training's peak (3.00 MiB)\n\n"
            "strategy                 step  over plain  peak  recomputed  recomputed  offloaded   "
            "gap to        proven\n"
            "               outcome     ms      step %   MiB    forwards          ms        MiB  "
            "bound %       fastest\n"
            "--------------------------------------------------------------------------------------"
            "-------------------\n"
            "a                 fits  2.500        25.0  2.00           0       0.000       0.00    "
            "  0.0        of all\n"
            "b                 fits  3.000        50.0  2.00           0       0.000       0.00    "
            " 20.0  of its class\n"
            "c         does not fit\n"
            "d          out of time\n"
            "\nplain: training that stores every activation. gap: time over a bound that no "
            "schedule within "
            "the budget beats.\nproven fastest of all: of all schedules within the budget; of its "
            "class: of "
            "those that its solver chooses among,\n"
            "  a                      schedules of a class\n"
            "  b                      schedules of a class\n");
  rows[1].of = "other";
  rows[1].budget = "50%";
  const std::string text = ToText(rows);
  EXPECT_THAT(text, HasSubstr("other"));
  EXPECT_THAT(text, HasSubstr("50%"));
  EXPECT_THAT(text, Not(HasSubstr("net, budget")));
}

TEST(Comparison, ProgramsGetAllColumns) {
  const Listing listing = ListingOf({Row("net", "60%", "a", Nanos(2500000))});
  EXPECT_EQ(
      listing.Csv(),
      "of,budget,budget_bytes,strategy,solver,outcome,makespan_ns,overhead,peak_bytes,"
      "recomputed_forwards,recompute_time_ns,offloaded_bytes,gap,proven_optimal,schedule_class\n"
      "net,60%,3145728,a,a,fits,2500000,0.25,2097152,0,0,0,0,false,schedules of a class\n");
}

}  // namespace
}  // namespace stowage
