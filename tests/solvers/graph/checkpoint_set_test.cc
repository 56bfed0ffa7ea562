#include "solvers/graph/checkpoint_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/solvers/graph/brute_force_acyclic_quotient.h"
#include "tests/solvers/graph/random_dag.h"

namespace stowage::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SegmentRule kRules[] = {SegmentRule::kTwoEndPoints, SegmentRule::kSeveralEndPoints};

CheckpointGraph Make(const std::vector<int64_t>& bytes, std::vector<std::pair<int, int>> edges,
                     std::vector<int> must_keep = {}, std::vector<int> needs_inputs = {}) {
  CheckpointGraphSpec spec;
  for (const int64_t b : bytes) spec.bytes.emplace_back(b);
  spec.edges = std::move(edges);
  spec.must_keep.resize(bytes.size());
  spec.needs_inputs.resize(bytes.size());
  for (const int v : must_keep) spec.must_keep[static_cast<size_t>(v)] = true;
  for (const int v : needs_inputs) spec.needs_inputs[static_cast<size_t>(v)] = true;
  return *CheckpointGraph::Create(std::move(spec));
}

// Long skips over a block: two end points cost 31, several 29.
CheckpointGraph Skips() {
  return Make({5, 2, 8, 8, 8}, {{0, 1}, {0, 3}, {0, 4}, {1, 2}, {2, 3}, {3, 4}});
}

std::string ErrorOf(const CheckpointGraph& graph, std::vector<int> set, SegmentRule rule) {
  const auto validated = ValidateCheckpoints(graph, std::move(set), rule);
  EXPECT_EQ(validated.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(validated.status().message());
}

TEST(ValidateCheckpoints, EqualsTheDefinitionOnEverySetOfRandomDags) {
  std::mt19937_64 rng(11);
  int allowed = 0, forbidden = 0;
  for (int i = 0; i < 300; ++i) {
    RandomDagOptions options;
    options.density = 0.1 + 0.1 * (i % 6);
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(1 + i % 9, options, &rng);
    for (uint32_t kept = 0; kept < uint32_t{1} << graph.size(); ++kept) {
      std::vector<int> set;
      for (int v = graph.size() - 1; v >= 0; --v) {
        if ((kept >> v & 1) != 0) set.push_back(v);
      }
      for (const SegmentRule rule : kRules) {
        const auto validated = ValidateCheckpoints(graph, set, rule);
        const auto defined = CostByDefinition(graph, kept, rule);
        ASSERT_EQ(validated.ok(), defined.has_value()) << Describe(graph) << ", set " << kept;
        ++(validated.ok() ? allowed : forbidden);
        if (!validated.ok()) continue;
        EXPECT_EQ(validated->checkpoint_bytes.value(), defined->checkpoints) << Describe(graph);
        EXPECT_EQ(validated->segment_bytes.value(), defined->segment)
            << Describe(graph) << ", set " << kept;
      }
    }
  }
  EXPECT_GT(allowed, 3000);
  EXPECT_GT(forbidden, 3000);
}

TEST(ValidateCheckpoints, TellsTheSegments) {
  Segmentation split;
  const auto set = ValidateCheckpoints(Skips(), {4, 2, 0}, SegmentRule::kSeveralEndPoints, &split);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->checkpoints, ElementsAre(0, 2, 4));
  EXPECT_EQ(set->objective(), Bytes(29));
  constexpr int kCheckpoint = Segmentation::kCheckpoint;
  EXPECT_THAT(split.segment_of, ElementsAre(kCheckpoint, 0, kCheckpoint, 1, kCheckpoint));
  EXPECT_THAT(split.segment_bytes, ElementsAre(Bytes(2), Bytes(8)));
}

TEST(ValidateCheckpoints, NamesWhatIsWrong) {
  const CheckpointGraph graph = Make({1, 1, 1, 1}, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}, {2});
  for (const SegmentRule rule : kRules) {
    EXPECT_THAT(ErrorOf(graph, {0, 2, 3, 4}, rule), HasSubstr("4"));
    EXPECT_THAT(ErrorOf(graph, {-1, 0, 2, 3}, rule), HasSubstr("-1"));
    EXPECT_THAT(ErrorOf(graph, {0, 2, 3, 2}, rule), AllOf(HasSubstr("2"), HasSubstr("once")));
    EXPECT_THAT(ErrorOf(graph, {2, 3}, rule), AllOf(HasSubstr("without 0"), HasSubstr("source")));
    EXPECT_THAT(ErrorOf(graph, {0, 2}, rule), AllOf(HasSubstr("without 3"), HasSubstr("target")));
    EXPECT_THAT(ErrorOf(graph, {0, 3}, rule), AllOf(HasSubstr("without 2"), HasSubstr("kept")));
  }
}

TEST(ValidateCheckpoints, NamesTheSegmentThatBreaksTheRule) {
  EXPECT_THAT(ErrorOf(Skips(), {0, 2, 4}, SegmentRule::kTwoEndPoints),
              AllOf(HasSubstr("vertex 3"), HasSubstr("reads"), HasSubstr("2")));
  const CheckpointGraph fork = Make({1, 1, 1, 1, 1}, {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}});
  EXPECT_THAT(ErrorOf(fork, {0, 2, 4}, SegmentRule::kTwoEndPoints),
              AllOf(HasSubstr("vertex 3"), HasSubstr("read by one")));
  // 1 and 3 are one segment through the edge between them, and 2 is computed in between.
  const CheckpointGraph around = Make({1, 1, 1, 1, 1}, {{0, 1}, {1, 2}, {1, 3}, {2, 3}, {3, 4}});
  EXPECT_THAT(ErrorOf(around, {0, 2, 4}, SegmentRule::kSeveralEndPoints),
              AllOf(HasSubstr("vertex"), HasSubstr("waits for itself")));
}

TEST(ValidateCheckpoints, CountsInputsThatACheckpointNeedsInEverySegmentThatFeedsIt) {
  const CheckpointGraph graph =
      Make({1, 10, 20, 5, 1}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}}, {}, {3});
  const auto kept = ValidateCheckpoints(graph, {0, 3, 4}, SegmentRule::kTwoEndPoints);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->segment_bytes, Bytes(30));  // 1 beside 2, 2 beside 1
  const auto one_kept = ValidateCheckpoints(graph, {0, 1, 3, 4}, SegmentRule::kTwoEndPoints);
  ASSERT_TRUE(one_kept.ok());
  EXPECT_EQ(one_kept->segment_bytes, Bytes(20));
}

TEST(IsBetter, PrefersLessThenFewerThenSmallerIndices) {
  const CheckpointSet set = {{0, 3, 4}, Bytes(5), Bytes(5)};
  EXPECT_TRUE(IsBetter({{0, 1, 2, 3, 4}, Bytes(4), Bytes(5)}, set));
  EXPECT_TRUE(IsBetter({{0, 4}, Bytes(3), Bytes(7)}, set));
  EXPECT_TRUE(IsBetter({{0, 2, 4}, Bytes(5), Bytes(5)}, set));
  EXPECT_FALSE(IsBetter(set, set));
  EXPECT_FALSE(IsBetter({{0, 4}, Bytes(6), Bytes(5)}, set));
}

TEST(RepairCheckpoints, KeepsWhatIsAllowedAlready) {
  const CheckpointGraph chain = Make({1, 2, 3, 4}, {{0, 1}, {1, 2}, {2, 3}});
  StopPoll poll(nullptr);
  EXPECT_THAT(RepairCheckpoints(chain, {2}, &poll)->checkpoints, ElementsAre(0, 2, 3));
  EXPECT_THAT(RepairCheckpoints(chain, {}, &poll)->checkpoints, ElementsAre(0, 3));
}

TEST(RepairCheckpoints, AnySetBecomesAllowedByBothRules) {
  std::mt19937_64 rng(12);
  for (int i = 0; i < 2000; ++i) {
    RandomDagOptions options;
    options.with_flags = i % 2 == 1;
    options.density = 0.05 + 0.05 * (i % 8);
    const CheckpointGraph graph = RandomDag(1 + i % 40, options, &rng);
    std::vector<int> set;
    for (int v = 0; v < graph.size(); ++v) {
      if (rng() % 4 == 0) set.push_back(v);
    }
    StopPoll poll(nullptr);
    const CheckpointSet repaired = *RepairCheckpoints(graph, set, &poll);
    EXPECT_TRUE(std::includes(repaired.checkpoints.begin(), repaired.checkpoints.end(), set.begin(),
                              set.end()));
    for (const SegmentRule rule : kRules) {
      EXPECT_TRUE(ValidateCheckpoints(graph, repaired.checkpoints, rule).ok()) << Describe(graph);
    }
  }
}

}  // namespace
}  // namespace stowage::testing
