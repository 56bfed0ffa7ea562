// Every way in which ranks speak to each other, held to the same.
#include "client/agent/plan_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/agent/board_agreement.h"
#include "solvers/model/field_error.h"
#include "tests/support/temporary_folder.h"
#ifdef STOWAGE_TEST_C10D
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "client/agent/store_agreement.h"
#endif

namespace stowage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

// A place where ranks meet, new for each test.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(const RankOptions& options) = 0;
  // Texts that are kept there.
  virtual int64_t kept() = 0;
};

class FolderMeeting : public Meeting {
 public:
  absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(const RankOptions& options) override {
    return MakeFolderAgreement({folder_.path(), options.rank, options.ranks, options.timeout});
  }
  int64_t kept() override {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  }

 private:
  const TemporaryFolder folder_;
};

#ifdef STOWAGE_TEST_C10D
using Store = c10::intrusive_ptr<c10d::Store>;

// Each rank has a store of its own to the same place.
class StoreMeeting : public Meeting {
 public:
  explicit StoreMeeting(std::function<Store()> open) : open_(std::move(open)), other_(open_()) {}

  absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(const RankOptions& options) override {
    return MakeStoreAgreement(open_(), options);
  }
  int64_t kept() override {
    int64_t kept = 0;
    for (int round = 0; round < 10; ++round) {
      for (int rank = 0; rank < kRanks; ++rank) {
        const std::string name = std::to_string(round) + "-" + std::to_string(rank);
        if (other_->check({std::string("stowage/") + kAgreementPrefix + name})) ++kept;
      }
    }
    return kept;
  }

 private:
  const std::function<Store()> open_;
  const Store other_;
};

std::unique_ptr<Meeting> InHash() {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  return std::make_unique<StoreMeeting>([store] { return store; });
}

std::unique_ptr<Meeting> InFile() {
  const auto folder = std::make_shared<TemporaryFolder>();
  return std::make_unique<StoreMeeting>(
      [folder] { return c10::make_intrusive<c10d::FileStore>(*folder / "store", kRanks + 1); });
}

std::unique_ptr<Meeting> OverTcp() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto server = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  return std::make_unique<StoreMeeting>([server] {
    c10d::TCPStoreOptions client;
    client.port = server->getPort();
    client.waitWorkers = false;
    return c10::make_intrusive<c10d::PrefixStore>(
        "job", c10::make_intrusive<c10d::TCPStore>("127.0.0.1", client));
  });
}
#endif

struct Way {
  const char* name;
  std::function<std::unique_ptr<Meeting>()> meet;
};

class PlanAgreementTest : public ::testing::TestWithParam<Way> {
 protected:
  absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(
      int rank, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    return meeting_->Join({rank, kRanks, timeout});
  }

  const std::unique_ptr<Meeting> meeting_ = GetParam().meet();
};

TEST_P(PlanAgreementTest, CarriesWhatEachSaysRoundByRound) {
  std::vector<std::string> heard[kRanks][4];
  std::vector<std::unique_ptr<PlanAgreement>> agreements;
  for (int rank = 0; rank < kRanks; ++rank) {
    auto agreement = Join(rank);
    ASSERT_TRUE(agreement.ok()) << agreement.status();
    EXPECT_EQ((*agreement)->rank(), rank);
    EXPECT_EQ((*agreement)->ranks(), kRanks);
    agreements.push_back(*std::move(agreement));
  }
  // Texts of any bytes, also none and many.
  const auto text = [](int round, int rank) {
    if (round == 2) return std::string();
    return std::to_string(round) + "\n" + std::string(round == 3 ? 200000 : 1, '\0') + "r" +
           std::to_string(rank);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 4; ++round) {
        heard[rank][round] = *agreements[static_cast<size_t>(rank)]->Gather(text(round, rank));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_rank : heard) {
    for (int round = 0; round < 4; ++round) {
      EXPECT_THAT(of_rank[round], ElementsAre(text(round, 0), text(round, 1), text(round, 2)));
    }
  }
  // Of the last round alone.
  EXPECT_EQ(meeting_->kept(), kRanks);
  EXPECT_EQ(Join(0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(PlanAgreementTest, BroadcastsAndFindsTheGreatest) {
  std::vector<std::unique_ptr<PlanAgreement>> agreements;
  for (int rank = 0; rank < kRanks; ++rank) agreements.push_back(Join(rank).value());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&agreements, rank] {
      PlanAgreement& agreement = *agreements[static_cast<size_t>(rank)];
      EXPECT_FALSE(agreement.votes());
      EXPECT_EQ(agreement.Say(1).code(), absl::StatusCode::kUnimplemented);
      EXPECT_EQ(agreement.Hear().status().code(), absl::StatusCode::kUnimplemented);
      EXPECT_EQ(agreement.Broadcast("of rank " + std::to_string(rank)).value(), "of rank 0");
      EXPECT_THAT(agreement.Greatest({rank, -rank, 7}).value(), ElementsAre(kRanks - 1, 0, 7));
      EXPECT_THAT(agreement.Greatest({}).value(), ElementsAre());
      const absl::Status other =
          agreement.Greatest(std::vector<int64_t>(rank == 1 ? 2 : 1)).status();
      EXPECT_EQ(other.code(), absl::StatusCode::kInternal) << other;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(PlanAgreementTest, ARankThatDoesNotComeIsNamed) {
  const auto agreement = Join(0, std::chrono::milliseconds(50));
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  const absl::Status status = (*agreement)->Gather("alone").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 of 3"));
}

TEST_P(PlanAgreementTest, OptionsOutOfRangeAreRefused) {
  for (const auto& [options, field] : std::vector<std::pair<RankOptions, std::string>>{
           {{3, 3}, "rank"},
           {{-1, 3}, "rank"},
           {{0, 0}, "ranks"},
           {{0, 3, std::chrono::milliseconds(0)}, "timeout"}}) {
    const auto violation = GetFieldViolation(meeting_->Join(options).status());
    ASSERT_TRUE(violation) << field;
    EXPECT_EQ(violation->field, field);
  }
}

std::vector<Way> Ways() {
  std::vector<Way> ways = {{"folder", [] { return std::make_unique<FolderMeeting>(); }}};
#ifdef STOWAGE_TEST_C10D
  ways.push_back({"hash_store", InHash});
  ways.push_back({"file_store", InFile});
  ways.push_back({"tcp_store", OverTcp});
#endif
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Ways, PlanAgreementTest, ::testing::ValuesIn(Ways()),
                         [](const auto& way) { return std::string(way.param.name); });

// Fails once, then would do.
class FailsOnce : public PlanAgreement {
 public:
  int rank() const override { return 1; }
  int ranks() const override { return 2; }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    ++calls;
    if (calls == 2) return absl::DeadlineExceededError("rank 0 has not come");
    return std::vector<std::string>{"zero", mine};
  }
  int calls = 0;
};

// The others wait in an exchange that this rank has given up: what it says next would be taken for its part in that.
TEST(FinalAgreement, SaysNothingAfterAnError) {
  FailsOnce inner;
  FinalAgreement agreement(&inner);
  EXPECT_EQ(agreement.rank(), 1);
  EXPECT_EQ(agreement.ranks(), 2);
  EXPECT_FALSE(agreement.votes());
  EXPECT_THAT(*agreement.Gather("one"), ElementsAre("zero", "one"));
  EXPECT_TRUE(agreement.status().ok());
  const absl::Status first = agreement.Broadcast("").status();
  EXPECT_EQ(first.code(), absl::StatusCode::kDeadlineExceeded);
  for (const absl::Status& later :
       {agreement.Gather("").status(), agreement.Greatest({1}).status(), agreement.Say(1),
        agreement.Hear().status(), agreement.status()}) {
    EXPECT_EQ(later, first);
  }
  EXPECT_EQ(inner.calls, 2);
}

TEST(FolderAgreement, WantsAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(MakeFolderAgreement({folder / "none", 0, 1}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

#ifdef STOWAGE_TEST_C10D
TEST(StoreAgreement, WantsAStore) {
  EXPECT_EQ(MakeStoreAgreement({}, {0, 1}).status().code(), absl::StatusCode::kInvalidArgument);
}

// As a server that has gone away.
class BrokenStore : public c10d::HashStore {
 public:
  bool check(const std::vector<std::string>&) override {
    throw std::runtime_error("Connection reset by peer");
  }
};

TEST(StoreAgreement, AStoreThatFailsIsUnavailable) {
  const auto agreement = MakeStoreAgreement(c10::make_intrusive<BrokenStore>(), {0, 2});
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  const absl::Status status = (*agreement)->Gather("there?").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Connection reset"));
}

// One start after another over the same store.
TEST(StoreAgreement, EachStartTakesANewPrefix) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  for (const char* const start : {"first/", "second/"}) {
    const auto agreement = MakeStoreAgreement(store, {0, 1}, start);
    ASSERT_TRUE(agreement.ok()) << agreement.status();
    EXPECT_THAT(*(*agreement)->Gather(start), ElementsAre(start));
    EXPECT_EQ(MakeStoreAgreement(store, {0, 1}, start).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}
#endif

}  // namespace
}  // namespace stowage
