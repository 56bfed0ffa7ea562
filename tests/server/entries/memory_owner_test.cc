#include "server/entries/memory_owner.h"

#include <gtest/gtest.h>

#include "server/entries/plan_record.h"
#include "server/entries/reference_costs.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

PlanningProblem AskedBy(const std::string& tenant, const std::string& identity) {
  PlanningProblem problem = *ProblemOf(ProfileShape());
  problem.options.tenant = tenant;
  problem.identity = IdentityHash(identity);
  return problem;
}

TEST(MemoryOwner, IsTheTenantOrTheIdentityWhereThereIsNone) {
  const MemoryOwner vision = MemoryOwnerOf(AskedBy("vision", "ann"));
  EXPECT_EQ(vision, MemoryOwnerOf(AskedBy("vision", "bob")));
  EXPECT_NE(vision, MemoryOwnerOf(AskedBy("speech", "ann")));
  const MemoryOwner ann = MemoryOwnerOf(AskedBy("", "ann"));
  EXPECT_NE(ann, MemoryOwnerOf(AskedBy("", "bob")));
  EXPECT_NE(ann, MemoryOwnerOf(AskedBy("ann", ""))) << "a tenant of that name";
  EXPECT_EQ(MemoryOwnerOf(AskedBy("", "")), MemoryOwner());
}

TEST(MemoryOwner, OfAnEntryIsWhoseProfileIsTheOldest) {
  const PlanningProblem by_ann = AskedBy("", "ann"), by_bob = AskedBy("", "bob");
  PlanEntry entry = NewEntry(by_ann, JobHash("a"));
  EXPECT_EQ(MemoryOwnerOf(entry), MemoryOwnerOf(by_ann));
  entry.samples.push_back({JobHash("b"), by_bob.costs, by_bob.identity});
  EXPECT_EQ(MemoryOwnerOf(entry), MemoryOwnerOf(by_ann)) << "another one asks for it, too";
  entry.samples.erase(entry.samples.begin());
  EXPECT_EQ(MemoryOwnerOf(entry), MemoryOwnerOf(by_bob));
  entry.samples.clear();
  EXPECT_EQ(MemoryOwnerOf(entry), MemoryOwner()) << "of the catalogue";
  const PlanningProblem of_vision = AskedBy("vision", "ann");
  EXPECT_EQ(MemoryOwnerOf(NewEntry(of_vision, 0)), MemoryOwnerOf(of_vision));
}

}  // namespace
}  // namespace stowage::testing
