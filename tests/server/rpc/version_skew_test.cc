// Clients that are older or newer than the server: messages written by hand, field by field.
#include <gmock/gmock.h>

#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCompute[] = "/stowage.v1.PlanService/ComputePlan";

// Of a field that no version of the contract has had: number 900, some text; and 901, a varint.
const std::string& FutureFields() {
  static const auto* const kFields = new std::string("\xa2\x38\x05later\xa8\x38\x07");
  return *kFields;
}

template <class Message>
Message Parsed(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  Message message;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  EXPECT_TRUE(message.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  return message;
}

std::string ComputeBytes() {
  return ComputeRequestFor(ChainProfile({}), kTightBytes).SerializeAsString();
}

TEST(VersionSkew, FieldsOfANewerClientAreIgnoredAndChangeNoKey) {
  RpcFixture fixture;
  grpc::ByteBuffer plain;
  grpc::ByteBuffer later;
  ASSERT_TRUE(RawCall(fixture.channel, kCompute, ComputeBytes(), &plain).ok());
  // At the top and, as one more profile that merges with the first, inside.
  const std::string inside = std::string("\x0a") + static_cast<char>(FutureFields().size());
  const std::string bytes = ComputeBytes() + inside + FutureFields() + FutureFields();
  ASSERT_TRUE(RawCall(fixture.channel, kCompute, bytes, &later).ok());
  const auto first = Parsed<v1::ComputePlanResponse>(plain);
  const auto second = Parsed<v1::ComputePlanResponse>(later);
  EXPECT_EQ(second.key().digest(), first.key().digest());
  EXPECT_EQ(second.source(), v1::PLAN_SOURCE_CACHE);

  v1::GetPlanRequest get;
  *get.add_keys() = first.key();
  get.mutable_budget()->set_bytes(kTightBytes);
  grpc::ByteBuffer got;
  EXPECT_TRUE(RawCall(fixture.channel, "/stowage.v1.PlanService/GetPlan",
                      get.SerializeAsString() + FutureFields(), &got)
                  .ok());
}

// The first contract had neither jobs nor options without copies; zero and absent read the same.
TEST(VersionSkew, AnOlderClientSendsNoNewFields) {
  RpcFixture fixture;
  v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  ASSERT_FALSE(request.has_options());
  ASSERT_TRUE(request.job().empty());
  v1::ComputePlanResponse response;
  ASSERT_TRUE(fixture.Compute(request, &response).ok());
  const std::string key = response.key().digest();
  request.mutable_options();
  request.set_job("a-job");
  ASSERT_TRUE(fixture.Compute(request, &response).ok());
  EXPECT_EQ(response.key().digest(), key);
}

struct UnknownValue {
  const char* field;
  void (*set)(v1::ComputePlanRequest*);
};

class UnknownEnum : public ::testing::TestWithParam<UnknownValue> {};

TEST_P(UnknownEnum, IsRefusedByTheNameOfItsField) {
  RpcFixture fixture;
  v1::ComputePlanRequest request = ComputeRequestFor(ChainProfile({}), kTightBytes);
  GetParam().set(&request);
  v1::ComputePlanResponse response;
  const absl::Status status = fixture.Compute(request, &response);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto violation = GetFieldViolation(status);
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->field, GetParam().field);
  EXPECT_THAT(violation->rule, HasSubstr("that this version knows"));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, UnknownEnum,
    ::testing::Values(UnknownValue{"options.objective",
                                   [](v1::ComputePlanRequest* request) {
                                     request->mutable_options()->set_objective(
                                         static_cast<v1::Objective>(99));
                                   }},
                      UnknownValue{"profile.cost_source", [](v1::ComputePlanRequest* request) {
                                     request->mutable_profile()->set_cost_source(
                                         static_cast<v1::CostSource>(99));
                                   }}));

void ExpectUnknown(const RpcFixture& fixture, const std::string& method, const std::string& words) {
  grpc::ByteBuffer response;
  const absl::Status status =
      FromGrpcStatus(RawCall(fixture.channel, method, ComputeBytes(), &response));
  EXPECT_TRUE(absl::IsUnimplemented(status)) << method << status;
  EXPECT_EQ(GetReason(status), kReasonNotImplemented);
  const std::map<std::string, std::string> what = {{"method", method}, {"server_version", "9.8.7"}};
  EXPECT_EQ(GetErrorMetadata(status), what);
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(VersionSkew, AnRpcOfANewerContractIsUnimplementedByItsName) {
  RpcFixture fixture;
  for (const char* method :
       {"/stowage.v1.PlanService/ForecastPlan", "/stowage.v2.PlanService/GetPlan"}) {
    ExpectUnknown(fixture, method, std::string("stowaged 9.8.7 has no method ") + method);
  }
}

TEST(VersionSkew, WhoAsksForAnotherServiceLearnsNothingOfTheServer) {
  RpcFixture fixture;
  for (const char* method : {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                             "/stowaged/GetPlan", "/x/stowage.v1.PlanService/GetPlan"}) {
    grpc::ByteBuffer response;
    const grpc::Status status = RawCall(fixture.channel, method, ComputeBytes(), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_THAT(status.error_message(), Not(HasSubstr("9.8.7"))) << method;
    EXPECT_EQ(status.error_details(), "") << method;
  }
}

// Clients before PlanAdminService ask PlanService.
TEST(VersionSkew, WhatHasMovedSaysWhere) {
  RpcFixture fixture;
  for (const char* method : {"PinPlan", "DeletePlan"}) {
    ExpectUnknown(fixture, std::string("/stowage.v1.PlanService/") + method,
                  "one of stowage.v1.PlanAdminService now");
  }
}

TEST(VersionSkew, KeysOfAnotherEncodingAreUnknown) {
  RpcFixture fixture;
  v1::GetPlanRequest request;
  request.add_keys()->set_encoding_version(kEncodingVersion + 1);
  request.mutable_keys(0)->set_digest(std::string(32, 'k'));
  request.mutable_budget()->set_bytes(kTightBytes);
  v1::GetPlanResponse response;
  const absl::Status status = fixture.Get(request, &response);
  // A newer client looks again with what this server's capabilities say.
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(GetReason(status), kReasonPlanNotCached);
}

}  // namespace
}  // namespace stowage::testing
