#include "client/cli/cached_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace stowage {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CachedPlans, SayWhenTheirEntryLastChangedInUtc) {
  ListedPlan plan;
  plan.tenant = "vision";
  plan.updated = std::chrono::system_clock::time_point(std::chrono::seconds(1767323045));
  const Listing listing = ListingOf({plan});
  EXPECT_THAT(listing.Table(), HasSubstr("2026-01-02 03:04"));
  EXPECT_THAT(listing.Json(), HasSubstr("\"update_time\": \"2026-01-02T03:04:05Z\""));
  EXPECT_THAT(listing.Csv(), HasSubstr(",tenant,update_time\n"));
  EXPECT_THAT(listing.Csv(), EndsWith(",vision,2026-01-02T03:04:05Z\n"));
}

TEST(CachedPlans, WhatTheServerDoesNotKnowIsNull) {
  const Listing listing = ListingOf({ListedPlan()});
  EXPECT_THAT(listing.Json(), HasSubstr("\"update_time\": null"));
  EXPECT_THAT(listing.Table(), Not(HasSubstr("1970")));
}

}  // namespace
}  // namespace stowage
