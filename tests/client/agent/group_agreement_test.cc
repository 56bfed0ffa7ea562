// Agreement over process groups of gloo, ranks as threads.
#include "client/agent/group_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agreed_terms.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/model/field_error.h"
#include "tests/client/agent/gloo_group.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

class GroupAgreementTest : public ::testing::TestWithParam<int> {};

std::string TextOf(int round, int rank) {
  if (round == 1) return "";
  return std::string(static_cast<size_t>(round == 2 ? 100000 : rank), '\0') + "r" +
         std::to_string(rank);
}

TEST_P(GroupAgreementTest, CarriesWhatEachSays) {
  const int ranks = GetParam();
  OnGlooRanks(ranks, [ranks](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    EXPECT_EQ(agreement->rank(), rank);
    EXPECT_EQ(agreement->ranks(), ranks);
    for (int round = 0; round < 3; ++round) {
      const auto all = agreement->Gather(TextOf(round, rank));
      ASSERT_TRUE(all.ok()) << all.status();
      ASSERT_EQ(all->size(), static_cast<size_t>(ranks));
      for (int other = 0; other < ranks; ++other) {
        EXPECT_EQ((*all)[static_cast<size_t>(other)], TextOf(round, other));
      }
      const auto said = agreement->Broadcast(TextOf(round, rank));
      ASSERT_TRUE(said.ok()) << said.status();
      EXPECT_EQ(*said, TextOf(round, 0));
    }
  });
}

TEST_P(GroupAgreementTest, FindsTheGreatest) {
  const int ranks = GetParam();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::mt19937_64 random(7);
  std::vector<std::vector<int64_t>> said(static_cast<size_t>(ranks));
  for (auto& of_rank : said) {
    for (int i = 0; i < 20; ++i) of_rank.push_back(static_cast<int64_t>(random()));
  }
  said.back()[3] = kMost;
  said.front()[4] = -kMost - 1;
  std::vector<int64_t> greatest = said.front();
  for (const auto& of_rank : said) {
    for (size_t i = 0; i < greatest.size(); ++i) greatest[i] = std::max(greatest[i], of_rank[i]);
  }
  OnGlooRanks(ranks, [&](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    const auto found = agreement->Greatest(said[static_cast<size_t>(rank)]);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, greatest);
    EXPECT_EQ(agreement->Greatest({}).value(), std::vector<int64_t>());
  });
}

TEST_P(GroupAgreementTest, WordsGoRoundBesideOtherThings) {
  const int ranks = GetParam();
  OnGlooRanks(ranks, [ranks](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    ASSERT_TRUE(agreement->votes());
    EXPECT_EQ(agreement->Hear().status().code(), absl::StatusCode::kFailedPrecondition);
    for (int round = 0; round < 4; ++round) {
      // Of ranks that take turns, and one that nobody says.
      const bool says = round < 3 && rank == round % ranks;
      ASSERT_TRUE(agreement->Say(says ? 1U << rank : 0U).ok());
    }
    EXPECT_EQ(agreement->Broadcast("between").value(), "between");
    for (int round = 0; round < 4; ++round) {
      const auto heard = agreement->Hear();
      ASSERT_TRUE(heard.ok()) << heard.status();
      EXPECT_EQ(*heard, round < 3 ? 1U << (round % ranks) : 0U);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupAgreementTest, ::testing::Values(1, 2, 3, 5, 8));

TEST(GroupAgreement, ARankThatIsGoneIsSaidSo) {
  absl::Status status[2];
  OnGlooRanks(2, [&](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    ASSERT_TRUE(agreement->Broadcast("both").ok());
    if (rank == 1) return;  // and closes its connections
    status[0] = agreement->Gather("alone").status();
  });
  EXPECT_EQ(status[0].code(), absl::StatusCode::kUnavailable) << status[0];
  EXPECT_THAT(std::string(status[0].message()), HasSubstr("rank 0 of 2: another rank is gone"));
}

TEST(GroupAgreement, ARankThatDoesNotComeIsGivenUp) {
  // Rank 1 is there, and says nothing until the other one has given up.
  c10d::HashStore over;
  absl::Status status;
  OnGlooRanks(
      2,
      [&](int rank, Group group) {
        const auto agreement = MakeGroupAgreement(std::move(group)).value();
        if (rank == 0) {
          status = agreement->Gather("alone").status();
          over.set("over", std::vector<uint8_t>{1});
        } else {
          over.wait({"over"}, std::chrono::seconds(100));
        }
      },
      std::chrono::seconds(5));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

// The group's threads let go of what they carried when they like; a profile that is measured meanwhile sees none of it.
TEST(GroupAgreement, TakesNoMemoryOfTheAllocator) {
  OnGlooRanks(1, [](int, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    TrackingAllocator* const memory = TrackingAllocator::Get();
    const Bytes before = memory->current();
    memory->ResetPeak();
    ASSERT_TRUE(agreement->Gather(std::string(1000, 'a')).ok());
    ASSERT_TRUE(agreement->Broadcast(std::string(1000, 'a')).ok());
    ASSERT_TRUE(agreement->Greatest(std::vector<int64_t>(100)).ok());
    ASSERT_TRUE(agreement->Say(1).ok());
    ASSERT_TRUE(agreement->Hear().ok());
    EXPECT_EQ(memory->peak(), before);
  });
}

TEST(GroupAgreement, WantsAGroup) {
  const auto violation = GetFieldViolation(MakeGroupAgreement({}).status());
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->field, "group");
}

// By heads alone, until something is wrong.
TEST(AgreeOnDigest, NamesTheRankThatDiffersOrFails) {
  for (const int wrong : {-1, 0, 2}) {
    OnGlooRanks(3, [wrong](int rank, Group group) {
      const auto agreement = MakeGroupAgreement(std::move(group)).value();
      const auto differs = [](int other) {
        return absl::FailedPreconditionError("it is rank " + std::to_string(other));
      };
      const Digest digest = Sha256(rank == wrong ? "other" : "same");
      const absl::Status same = AgreeOnDigest(agreement.get(), digest, differs);
      EXPECT_EQ(same.ok(), wrong < 0) << same;
      if (wrong > 0) {
        EXPECT_THAT(std::string(same.message()),
                    HasSubstr(rank == wrong ? "it is rank 0" : "it is rank 2"));
      }
      absl::StatusOr<Digest> mine = digest;
      if (rank == wrong) mine = absl::NotFoundError("there is none");
      const absl::Status well = AgreeOnDigest(agreement.get(), mine, differs);
      if (wrong < 0) {
        EXPECT_TRUE(well.ok()) << well;
      } else {
        EXPECT_EQ(well.code(),
                  rank == wrong ? absl::StatusCode::kNotFound : absl::StatusCode::kInternal);
        EXPECT_THAT(std::string(well.message()), HasSubstr("there is none"));
      }
    });
  }
}

}  // namespace
}  // namespace stowage
