#include "proto/codec/grpc_status.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/codec/utf8.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status ThereAndBack(const absl::Status& status) {
  return FromGrpcStatus(ToGrpcStatus(status));
}

TEST(GrpcStatus, EveryCodeAndItsMessage) {
  EXPECT_TRUE(ThereAndBack(absl::OkStatus()).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what happened");
    EXPECT_EQ(ThereAndBack(status), status);
    EXPECT_EQ(static_cast<int>(ToGrpcStatus(status).error_code()), code);
  }
}

TEST(GrpcStatus, FieldViolation) {
  const absl::Status status = FieldError("profile.name", "a: b", "must be >= 0");
  EXPECT_EQ(ThereAndBack(status), status);
  const auto violation = GetFieldViolation(ThereAndBack(status));
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->value, "a: b");
}

// What divides them may be in both.
TEST(GrpcStatus, ValueAndRuleOfAFieldViolationStayApart) {
  for (const char* value : {"a", "a: b", "", ": "}) {
    for (const char* rule : {"must be that of profiles[0]: 3 stages", "must be >= 0", ": "}) {
      const absl::Status status = FieldError("profiles[1]", value, rule);
      const auto violation = GetFieldViolation(ThereAndBack(status));
      ASSERT_TRUE(violation.has_value());
      EXPECT_EQ(violation->value, value);
      EXPECT_EQ(violation->rule, rule);
      EXPECT_EQ(ThereAndBack(status), status);
      const absl::Status with_reason = WithReason(status, "ODD");
      EXPECT_EQ(ThereAndBack(with_reason), with_reason);
    }
  }
}

TEST(GrpcStatus, DetailsAreThoseOfGoogleRpc) {
  const grpc::Status status = ToGrpcStatus(FieldError("budget.bytes", -5, "must be >= 0"));
  google::rpc::Status rich;
  ASSERT_TRUE(rich.ParseFromString(status.error_details()));
  EXPECT_EQ(rich.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(rich.message(), "budget.bytes = -5: must be >= 0");
  google::rpc::BadRequest detail;
  ASSERT_EQ(rich.details_size(), 2);
  ASSERT_TRUE(rich.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.field_violations(0).field(), "budget.bytes");
  EXPECT_EQ(detail.field_violations(0).description(), "-5: must be >= 0");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(rich.details(1).UnpackTo(&info));
  EXPECT_EQ(info.domain(), "stowage");
  EXPECT_EQ(info.reason(), "INVALID_FIELD");
  EXPECT_EQ(info.metadata().at("rule"), "must be >= 0");
}

TEST(GrpcStatus, MetadataOfAReason) {
  absl::Status status = WithReason(absl::ResourceExhaustedError("busy"), "QUEUE_FULL");
  status = WithErrorMetadata(status, "limit", "64");
  status = WithErrorMetadata(status, "tenant", "vision");
  EXPECT_EQ(ThereAndBack(status), status);
  const std::map<std::string, std::string> expected = {{"limit", "64"}, {"tenant", "vision"}};
  EXPECT_EQ(GetErrorMetadata(ThereAndBack(status)), expected);
  EXPECT_TRUE(GetErrorMetadata(absl::InternalError("x")).empty());

  google::rpc::Status rich;
  ASSERT_TRUE(rich.ParseFromString(ToGrpcStatus(status).error_details()));
  google::rpc::QuotaFailure quota;
  ASSERT_EQ(rich.details_size(), 2);
  ASSERT_TRUE(rich.details(1).UnpackTo(&quota));
  EXPECT_EQ(quota.violations(0).subject(), "tenant:vision");
  EXPECT_EQ(quota.violations(0).description(), "busy");
}

TEST(GrpcStatus, WhatDoesNotFitAStateIsAPreconditionFailure) {
  for (const absl::Status& plain :
       {absl::FailedPreconditionError("pinned"), absl::AbortedError("changed")}) {
    const absl::Status status = WithReason(plain, "REVISION_STATE");
    EXPECT_EQ(ThereAndBack(status), status);
    google::rpc::Status rich;
    ASSERT_TRUE(rich.ParseFromString(ToGrpcStatus(status).error_details()));
    google::rpc::PreconditionFailure failure;
    ASSERT_EQ(rich.details_size(), 2);
    ASSERT_TRUE(rich.details(1).UnpackTo(&failure));
    EXPECT_EQ(failure.violations(0).type(), "REVISION_STATE");
    EXPECT_EQ(failure.violations(0).description(), plain.message());
  }
}

// Turned away before the message is read: gRPC sends code and message alone.
TEST(GrpcStatus, TheReasonOfOneWhoIsNobodyIsInTheMessage) {
  const auto reason = [](grpc::StatusCode code, const std::string& message) {
    return GetReason(FromGrpcStatus(grpc::Status(code, message)));
  };
  EXPECT_EQ(reason(grpc::UNAUTHENTICATED, "TOKEN_UNKNOWN: no such token"), "TOKEN_UNKNOWN");
  for (const char* words : {"no reason", "Token: bad", ": x", "A: b", "TOKEN_UNKNOWN"}) {
    EXPECT_EQ(reason(grpc::UNAUTHENTICATED, words), "") << words;
  }
  EXPECT_EQ(reason(grpc::UNAVAILABLE, "TOKEN_UNKNOWN: no such token"), "");
}

TEST(GrpcStatus, DescriptionOfAnotherServerIsTheRule) {
  google::rpc::BadRequest detail;
  detail.add_field_violations()->set_field("x");
  detail.mutable_field_violations(0)->set_description("is odd");
  google::rpc::Status rich;
  rich.add_details()->PackFrom(detail);
  const auto status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "its own words", rich.SerializeAsString()));
  EXPECT_EQ(status.message(), "its own words");
  const auto violation = GetFieldViolation(status);
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, "x");
  EXPECT_EQ(violation->value, "");
  EXPECT_EQ(violation->rule, "is odd");
}

TEST(GrpcStatus, ReasonAndRetryDelay) {
  const auto delay = std::chrono::milliseconds(1500);
  const absl::Status status =
      WithRetryDelay(WithReason(absl::ResourceExhaustedError("busy"), "QUEUE_FULL"), delay);
  EXPECT_EQ(ThereAndBack(status), status);
  EXPECT_EQ(GetReason(ThereAndBack(status)), "QUEUE_FULL");
  EXPECT_EQ(GetRetryDelay(ThereAndBack(status)), delay);
  EXPECT_EQ(GetReason(absl::NotFoundError("")), "");
  EXPECT_EQ(GetRetryDelay(absl::NotFoundError("")), std::nullopt);
}

TEST(GrpcStatus, RetryDelaysThatNobodyShouldWaitAreIgnored) {
  for (const int64_t seconds : {int64_t{-1}, int64_t{86401}, int64_t{1} << 62}) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(seconds);
    google::rpc::Status rich;
    rich.add_details()->PackFrom(retry);
    const auto status = FromGrpcStatus(
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", rich.SerializeAsString()));
    EXPECT_EQ(GetRetryDelay(status), std::nullopt) << seconds;
  }
}

TEST(GrpcStatus, BrokenDetailsLeaveCodeAndMessage) {
  const auto status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::NOT_FOUND, "gone", std::string("\xff\x00\x13garbage", 10)));
  EXPECT_EQ(status, absl::NotFoundError("gone"));
}

TEST(GrpcStatus, LongTextsFitIntoATrailer) {
  const absl::Status status =
      FieldError("f", std::string(100000, '\xc3'), std::string(100000, 'r'));
  const grpc::Status wire = ToGrpcStatus(status);
  // Percent-encoding triples a message, base64 adds a third to the details.
  EXPECT_LT(3 * wire.error_message().size() + 4 * wire.error_details().size() / 3, 8192u);
  EXPECT_TRUE(GetFieldViolation(FromGrpcStatus(wire)).has_value());
}

TEST(Utf8, KeepsWhatIsWellFormedAndReplacesTheRest) {
  EXPECT_EQ(ToValidUtf8("plain"), "plain");
  EXPECT_EQ(ToValidUtf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2");
  EXPECT_EQ(ToValidUtf8("\xff"), "?");
  EXPECT_EQ(ToValidUtf8("cut \xe2\x82"), "cut ??");
  EXPECT_EQ(ToValidUtf8("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(ToValidUtf8("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(ToValidUtf8("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(ToValidUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

}  // namespace
}  // namespace stowage
