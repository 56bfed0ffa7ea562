// The calls for many plans at once: what goes over the wire, what comes back, and what becomes of an
// answer that breaks the contract.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "client/rpc/local_connection.h"
#include "proto/codec/codec.h"
#include "tests/client/rpc/expect_internal.h"
#include "tests/client/rpc/served_connection.h"

namespace stowage {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class CurveCallsTest : public ServedConnectionTest {};

void FillFrontier(const PlanKey& key, v1::GetFrontierResponse* response) {
  for (int i = 0; i < 3; ++i) {
    v1::FrontierPoint* point = response->add_points();
    point->set_budget_bytes(10 * (i + 1));
    point->set_peak_bytes(10 * (i + 1) - 1);
    point->set_makespan_ns(100 - i);
  }
  *response->mutable_key() = ToProto(key);
  response->set_solver("s");
  response->set_schedule_class("c");
  response->set_least_budget_bytes(9);
  response->set_exact(true);
  response->set_search_complete(true);
}

TEST_F(CurveCallsTest, GetFrontier) {
  std::function<void(v1::GetFrontierResponse*)> spoil;
  server_.get_frontier = [&](const v1::GetFrontierRequest& request, v1::GetFrontierResponse* out) {
    EXPECT_EQ(request.max_points(), 7);
    EXPECT_EQ(request.options().slots(), 5);
    EXPECT_EQ(request.profile().chain().stages_size(), 4);
    FillFrontier(key_, out);
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  KeyOptions key_options;
  key_options.slots = 5;
  const auto reply = connection_->GetFrontier(SmallProfile(), key_options, 7, call_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->points.size(), 3u);
  EXPECT_EQ(reply->points[1].budget, Bytes(20));
  EXPECT_EQ(reply->points[1].peak, Bytes(19));
  EXPECT_EQ(reply->points[1].makespan, Nanos(99));
  EXPECT_EQ(reply->key, key_);
  EXPECT_EQ(reply->solver, "s");
  EXPECT_EQ(reply->schedule_class, "c");
  EXPECT_EQ(reply->least_budget, Bytes(9));
  EXPECT_TRUE(reply->exact);
  EXPECT_TRUE(reply->search_complete);

  using Out = v1::GetFrontierResponse;
  spoil = [](Out* out) { out->clear_search_complete(); };
  EXPECT_FALSE(connection_->GetFrontier(SmallProfile(), key_options, 7, call_)->search_complete);
  ExpectInternal<Out>(
      [&] { return connection_->GetFrontier(SmallProfile(), key_options, 7, call_).status(); },
      &spoil,
      {[](Out* out) { out->mutable_points(2)->set_budget_bytes(20); },
       [](Out* out) { out->mutable_points(2)->set_makespan_ns(99); },
       [](Out* out) { out->mutable_points(0)->set_peak_bytes(11); },
       [](Out* out) { out->mutable_points(0)->set_peak_bytes(-1); },
       [](Out* out) { out->mutable_points(2)->set_makespan_ns(-5); },
       [](Out* out) { out->set_least_budget_bytes(-1); },
       [](Out* out) { out->mutable_key()->set_digest("short"); }});
}

void FillBatches(v1::FitBatchResponse* response) {
  for (const int batch : {1, 4, 8}) {
    v1::BatchPoint* point = response->add_points();
    point->set_batch_size(batch);
    point->set_fits(batch < 8);
    point->set_makespan_ns(batch < 8 ? batch * 10 : 0);
    point->set_peak_bytes(batch < 8 ? batch * 100 : 0);
    point->set_samples_per_second(batch < 8 ? 1e8 : 0);
    point->set_within_profiles(batch > 1);
  }
  response->set_largest_batch_size(4);
  response->set_fastest_batch_size(1);
  response->set_samples_per_second(1e8);
}

TEST_F(CurveCallsTest, FitBatch) {
  std::function<void(v1::FitBatchResponse*)> spoil;
  server_.fit_batch = [&](const v1::FitBatchRequest& request, v1::FitBatchResponse* out) {
    EXPECT_EQ(request.profiles_size(), 2);
    EXPECT_EQ(request.profiles(1).batch_size(), 16);
    EXPECT_EQ(request.device_budget_bytes(), 1000);
    EXPECT_EQ(request.reserved_bytes(), 10);
    EXPECT_EQ(request.max_batch_size(), 64);
    EXPECT_EQ(request.options().solver(), "x");
    FillBatches(out);
    if (spoil) spoil(out);
    return absl::OkStatus();
  };
  BatchQuery query;
  query.profiles = {{8, SmallProfile()}, {16, SmallProfile()}};
  query.device_budget = Bytes(1000);
  query.reserved = Bytes(10);
  query.max_batch_size = 64;
  query.options.solver = "x";
  const auto reply = connection_->FitBatch(query, call_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->largest, 4);
  EXPECT_EQ(reply->fastest, 1);
  EXPECT_EQ(reply->samples_per_second, 1e8);
  ASSERT_EQ(reply->points.size(), 3u);
  EXPECT_EQ(reply->points[1].batch_size, 4);
  EXPECT_EQ(reply->points[1].makespan, Nanos(40));
  EXPECT_EQ(reply->points[1].peak, Bytes(400));
  EXPECT_TRUE(reply->points[1].fits);
  EXPECT_TRUE(reply->points[1].within_profiles);
  EXPECT_FALSE(reply->points[2].fits);

  using Out = v1::FitBatchResponse;
  ExpectInternal<Out>([&] { return connection_->FitBatch(query, call_).status(); }, &spoil,
                      {[](Out* out) { out->set_largest_batch_size(8); },
                       [](Out* out) { out->set_largest_batch_size(1); },
                       [](Out* out) { out->set_fastest_batch_size(2); },
                       [](Out* out) { out->set_samples_per_second(kNaN); },
                       [](Out* out) { out->mutable_points(0)->set_batch_size(0); },
                       [](Out* out) { out->mutable_points(1)->set_batch_size(1); },
                       [](Out* out) { out->mutable_points(1)->set_samples_per_second(-1); },
                       [](Out* out) { out->mutable_points(1)->set_peak_bytes(-1); }});
}

TEST(LocalCurves, Frontier) {
  const auto local = MakeLocalConnection();
  const auto all = local->GetFrontier(SmallProfile(10), {}, 0, {});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_GT(all->points.size(), 4u);
  for (const int most : {1, 2, 4}) {
    const auto few = local->GetFrontier(SmallProfile(10), {}, most, {});
    ASSERT_TRUE(few.ok()) << few.status();
    ASSERT_EQ(few->points.size(), static_cast<size_t>(most));
    EXPECT_EQ(few->points.front().budget, all->points.front().budget);
    if (most > 1) {
      EXPECT_EQ(few->points.back().budget, all->points.back().budget);
    }
    EXPECT_FALSE(few->exact);
    for (int i = 1; i < most; ++i) {
      EXPECT_LT(few->points[i - 1].budget, few->points[i].budget);
    }
  }
  for (const int most : {-1, 601}) {
    EXPECT_TRUE(absl::IsInvalidArgument(local->GetFrontier(SmallProfile(), {}, most, {}).status()));
  }
}

}  // namespace
}  // namespace stowage
