// Which names of certificates are let in, and as whom.
#include "server/auth/san_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stowage {
namespace {

using ::testing::HasSubstr;

std::string MatchOf(const std::string& pattern, const CertificateNames& names) {
  const auto parsed = SanPattern::Parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern << ": " << parsed.status();
  return parsed.ok() ? parsed->Match(names) : "";
}

bool DnsMatches(const std::string& pattern, const std::string& name) {
  return !MatchOf(pattern, {{name}, {}, {}}).empty();
}

TEST(SanPattern, DnsNamesMatchExactlyOrByOneLeadingLabel) {
  EXPECT_TRUE(DnsMatches("job.train.example", "job.train.example"));
  EXPECT_TRUE(DnsMatches("Job.train.example", "job.TRAIN.example"));
  EXPECT_TRUE(DnsMatches("*.train.example", "job-7.train.example"));
  EXPECT_FALSE(DnsMatches("*.train.example", "train.example"));
  EXPECT_FALSE(DnsMatches("*.train.example", ".train.example"));
  EXPECT_FALSE(DnsMatches("*.train.example", "a.b.train.example"));
  EXPECT_FALSE(DnsMatches("*.train.example", "jobtrain.example"));
  EXPECT_FALSE(DnsMatches("train.example", "train.example.evil"));
  EXPECT_FALSE(DnsMatches("train.example", "eviltrain.example"));
}

TEST(SanPattern, KindsAreKeptApart) {
  const std::string uri = "spiffe://cluster/ns/train/sa/job";
  EXPECT_EQ(MatchOf(uri, {{}, {uri}, {}}), uri);
  EXPECT_EQ(MatchOf(uri, {{uri}, {}, {uri}}), "");
  EXPECT_EQ(MatchOf(uri, {{}, {uri + "2"}, {}}), "");
  EXPECT_EQ(MatchOf("10.1.2.3", {{}, {}, {"10.1.2.3"}}), "10.1.2.3");
  EXPECT_EQ(MatchOf("10.1.2.3", {{"10.1.2.3"}, {}, {"10.1.2.4"}}), "");
  EXPECT_EQ(MatchOf("::1", {{}, {}, {"0:0:0:0:0:0:0:1"}}), "0:0:0:0:0:0:0:1");
  EXPECT_EQ(MatchOf("job", {{}, {"job"}, {}}), "");
}

TEST(SanPattern, AStarAloneIsEveryCertificate) {
  EXPECT_EQ(MatchOf("*", {}), "*");
  EXPECT_EQ(MatchOf("*", {{"a.b"}, {}, {}}), "a.b");
}

TEST(SanPattern, OtherPatternsAreRefused) {
  for (const char* text : {"", "a b", "*.", "a.*", "*a.b", "*.*.b", "**", ".a", "a/b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SanPattern::Parse(text).status())) << text;
  }
}

TEST(SanTable, TheFileSaysWhoAndTheListLetsInPlannersOfNoTenant) {
  const auto table = SanTable::Parse({"*.train.example"}, "names",
                                     "ops.train.example - admin operations\n"
                                     "spiffe://c/vision vision reader\n");
  ASSERT_TRUE(table.ok()) << table.status();
  const auto ops = table->Find({{"ops.train.example"}, {}, {}});
  ASSERT_TRUE(ops.has_value());
  EXPECT_EQ(ops->identity, "operations");
  EXPECT_EQ(ops->role, Role::kAdmin);
  const auto vision = table->Find({{"ops.other"}, {"spiffe://c/vision"}, {}});
  ASSERT_TRUE(vision.has_value());
  EXPECT_EQ(vision->identity, "spiffe://c/vision");
  EXPECT_EQ(vision->tenant, "vision");
  EXPECT_EQ(vision->role, Role::kReader);
  const auto job = table->Find({{"job.train.example"}, {}, {}});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->identity, "job.train.example");
  EXPECT_EQ(job->tenant, "");
  EXPECT_EQ(job->role, Role::kPlanner);
  // Of no tenant: each has the share of its own name.
  EXPECT_EQ(job->account(), Account::Of("", "job.train.example"));
  EXPECT_FALSE(table->Find({{"job.other.example"}, {}, {}}).has_value());
  EXPECT_FALSE(table->Find({}).has_value());
}

TEST(SanTable, MistakesNameFileAndLine) {
  EXPECT_THAT(SanTable::Parse({}, "names", "\na/b t reader\n").status().ToString(),
              HasSubstr("names:2: must be a DNS name"));
  EXPECT_THAT(SanTable::Parse({"a/b"}, "names", "").status().ToString(),
              HasSubstr("a/b: must be a DNS name"));
}

}  // namespace
}  // namespace stowage
