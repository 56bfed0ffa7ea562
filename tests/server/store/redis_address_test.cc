#include "server/store/redis_address.h"

#include <gtest/gtest.h>

#include <string>

namespace stowage::testing {
namespace {

TEST(RedisAddress, IsAHostASocketOrAUrl) {
  struct Case {
    std::string text;
    RedisAddress address;  // host, port, user, password, file, database
  };
  const Case cases[] = {
      {"cache:6380", {"cache", 6380, "", ""}},
      {"[::1]:6380", {"::1", 6380, "", ""}},
      {"/run/redis.sock", {"/run/redis.sock", 0, "", ""}},
      {"redis://cache", {"cache", 6379, "", ""}},
      {"redis://cache/", {"cache", 6379, "", ""}},
      {"redis://cache:6380/3", {"cache", 6380, "", "", "", 3}},
      {"redis://[2001:db8::1]", {"2001:db8::1", 6379, "", ""}},
      {"redis://[2001:db8::1]:6380/0", {"2001:db8::1", 6380, "", ""}},
      {"redis://stowage@cache", {"cache", 6379, "stowage", ""}},
      {"redis://:secret@cache", {"cache", 6379, "", "secret"}},
      {"redis://stowage:secret@cache:1/2", {"cache", 1, "stowage", "secret", "", 2}},
      {"redis://a%40b:p%3A%2f%25@cache", {"cache", 6379, "a@b", "p:/%"}},
      {"redis://u:p@w@cache", {"cache", 6379, "u", "p@w"}},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseRedisAddress(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_EQ(parsed->host_or_path, c.address.host_or_path) << c.text;
    EXPECT_EQ(parsed->port, c.address.port) << c.text;
    EXPECT_EQ(parsed->user, c.address.user) << c.text;
    EXPECT_EQ(parsed->password, c.address.password) << c.text;
    EXPECT_EQ(parsed->database, c.address.database) << c.text;
  }
}

TEST(RedisAddress, MayNameSentinels) {
  const auto one = ParseRedisAddress("redis+sentinel://a/plans");
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->sentinels.size(), 1u);
  EXPECT_EQ(one->sentinels[0].host, "a");
  EXPECT_EQ(one->sentinels[0].port, 26379);
  EXPECT_EQ(one->primary, "plans");
  EXPECT_EQ(one->database, 0);
  const auto many = ParseRedisAddress("redis+sentinel://u:p%2F@a:1,[::1]:2,b/my%20plans/3");
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(many->sentinels.size(), 3u);
  EXPECT_EQ(many->sentinels[1].host, "::1");
  EXPECT_EQ(many->sentinels[1].port, 2);
  EXPECT_EQ(many->sentinels[2].host, "b");
  EXPECT_EQ(many->sentinels[2].port, 26379);
  EXPECT_EQ(many->user, "u");
  EXPECT_EQ(many->password, "p/");
  EXPECT_EQ(many->primary, "my plans");
  EXPECT_EQ(many->database, 3);
}

TEST(RedisAddress, MayBeOfTls) {
  EXPECT_FALSE(ParseRedisAddress("redis://a")->tls.has_value());
  EXPECT_FALSE(ParseRedisAddress("redis+sentinel://a/plans")->tls.has_value());
  const auto one = ParseRedisAddress("rediss://u:p@a/2");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(one->tls.has_value());
  EXPECT_EQ(one->host_or_path, "a");
  EXPECT_EQ(one->port, 6379);
  EXPECT_EQ(one->database, 2);
  const auto many = ParseRedisAddress("rediss+sentinel://a,b/plans");
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_TRUE(many->tls.has_value());
  EXPECT_EQ(many->sentinels.size(), 2u);
}

TEST(RedisAddress, MayNameSomeOfACluster) {
  const auto cluster = ParseRedisAddress("rediss+cluster://u:p@a,[::1]:2/");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE(cluster->tls.has_value());
  ASSERT_EQ(cluster->nodes.size(), 2u);
  EXPECT_EQ(cluster->nodes[0].host, "a");
  EXPECT_EQ(cluster->nodes[0].port, 6379);
  EXPECT_EQ(cluster->nodes[1].host, "::1");
  EXPECT_EQ(cluster->nodes[1].port, 2);
  EXPECT_EQ(cluster->user, "u");
  EXPECT_FALSE(ParseRedisAddress("redis+cluster://a")->tls.has_value());
}

TEST(RedisAddress, WhatIsWrongIsSaidAndNoPassword) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must be HOST:PORT"},
      {"cache", "must be HOST:PORT"},
      {"cache:0", "must be HOST:PORT"},
      {"cache:65536", "must be HOST:PORT"},
      {"u:secret@cache:1", "must be HOST:PORT"},
      {"redis+tls://u:secret@cache", "the scheme of the URL must be redis, redis+s"},
      {"redis+sentinel://u:secret@cache", "must name a primary after the sentinels"},
      {"redis+sentinel://u:secret@cache/", "must name a primary after the sentinels"},
      {"redis+sentinel://u:secret@cache/%2", "two hexadecimal digits"},
      {"redis+sentinel://u:secret@cache,/plans", "must have a host"},
      {"redis+sentinel://u:secret@/plans", "must have a host"},
      {"redis+sentinel://a,b:0/plans", "the port of the URL must be in [1, 65535]"},
      {"redis+sentinel://a/plans/x", "the database of the URL must be a number"},
      {"redis://a,b:x", "the port of the URL must be in [1, 65535]"},
      {"redis+cluster://u:secret@cache/3", "the URL of a cluster must end after its hosts"},
      {"redis+cluster://", "must have a host"},
      {"http://u:secret@cache", "the scheme of the URL must be redis, redis+s"},
      {"redis://", "must have a host"},
      {"redis://u:secret@", "must have a host"},
      {"redis://:6379", "must have a host"},
      {"redis://[::1", "lacks a ]"},
      {"redis://[::1]6379", "the port of the URL must be in [1, 65535]"},
      {"redis://u:secret@cache:x", "the port of the URL must be in [1, 65535]"},
      {"redis://cache:0", "the port of the URL must be in [1, 65535]"},
      {"redis://u:secret@cache/x", "the database of the URL must be a number"},
      {"redis://cache/-1", "the database of the URL must be a number"},
      {"redis://cache/99999999999", "the database of the URL must be a number"},
      {"redis://cache/1/2", "the database of the URL must be a number"},
      {"redis://cache?db=1", "the URL must end after the database"},
      {"redis://u:secret#1@cache", "the URL must end after the database"},
      {"redis://u:secret%2@cache", "two hexadecimal digits"},
      {"redis://u:secret%@cache", "two hexadecimal digits"},
      {"redis://u%zz:secret@cache", "two hexadecimal digits"},
      {"redis://u:@cache", "must not be empty"},
  };
  for (const auto& [text, says] : cases) {
    const absl::Status status = ParseRedisAddress(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    const std::string message(status.message());
    EXPECT_NE(message.find(says), std::string::npos) << text << ": " << message;
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
  }
}

TEST(RedisAddress, IsShownWithoutItsPassword) {
  EXPECT_EQ(WithoutPassword("redis://u:secret@cache:1/2"), "redis://u:***@cache:1/2");
  EXPECT_EQ(WithoutPassword("redis://:se@cret@cache"), "redis://:***@cache");
  EXPECT_EQ(WithoutPassword("u:secret@cache:1"), "u:***@cache:1");
  for (const char* open : {"redis://u@cache:1", "redis://cache:1/2", "cache:1", "/run/a@b", ""}) {
    EXPECT_EQ(WithoutPassword(open), open);
  }
}

}  // namespace
}  // namespace stowage::testing
