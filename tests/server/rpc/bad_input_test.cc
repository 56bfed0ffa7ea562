// What bad input gets: INVALID_ARGUMENT that names field, value and rule, on the wire as
// google.rpc.BadRequest.
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "stowage/v1/plan_admin_service.pb.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2;

class BadInput : public ::testing::Test {
 protected:
  void ExpectViolation(const v1::ComputePlanRequest& request, const std::string& field,
                       const std::string& value) {
    v1::ComputePlanResponse response;
    const absl::Status status = fixture_.Compute(request, &response);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const auto violation = GetFieldViolation(status);
    ASSERT_TRUE(violation.has_value()) << status;
    EXPECT_EQ(violation->field, field) << status;
    EXPECT_EQ(violation->value, value) << status;
    EXPECT_NE(violation->rule, "");
  }

  // Any field below `prefix`.
  void ExpectViolationBelow(const v1::ComputePlanRequest& request, const std::string& prefix) {
    v1::ComputePlanResponse response;
    const absl::Status status = fixture_.Compute(request, &response);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const auto violation = GetFieldViolation(status);
    ASSERT_TRUE(violation.has_value()) << status;
    EXPECT_EQ(violation->field.substr(0, prefix.size()), prefix) << status;
  }

  static v1::ComputePlanRequest Good() { return ComputeRequestFor(ChainProfile({}), 1500); }
  static v1::ComputePlanRequest GoodGraph() {
    return ComputeRequestFor(GraphProfile(5, 0, 1), 100000);
  }

  static RequestLimits Limits() {
    RequestLimits limits;
    limits.max_stages = 20;
    limits.max_vertices = 30;
    limits.max_message_bytes = 65536;
    return limits;
  }

  RpcFixture fixture_{false, Limits()};
};

TEST_F(BadInput, NegativeBytes) {
  v1::ComputePlanRequest request = Good();
  request.mutable_profile()->mutable_chain()->mutable_stages(3)->set_saved_bytes(-5);
  ExpectViolation(request, "profile.chain.stages[3].saved_bytes", "-5");
}

TEST_F(BadInput, NegativeTime) {
  v1::ComputePlanRequest request = Good();
  request.mutable_profile()->mutable_chain()->mutable_stages(0)->set_forward_time_ns(-1);
  ExpectViolation(request, "profile.chain.stages[0].forward_time_ns", "-1");
}

TEST_F(BadInput, OverflowingSums) {
  v1::ComputePlanRequest request = Good();
  for (auto& stage : *request.mutable_profile()->mutable_chain()->mutable_stages()) {
    stage.set_saved_bytes(kHuge);
  }
  ExpectViolationBelow(request, "profile.chain");
  v1::ComputePlanRequest times = Good();
  times.mutable_profile()->mutable_chain()->mutable_stages(0)->set_forward_time_ns(kHuge);
  ExpectViolationBelow(times, "profile.chain");
}

TEST_F(BadInput, ACycle) {
  v1::ComputePlanRequest request = GoodGraph();
  // Vertex 1 reads vertex 3, which comes after it.
  request.mutable_profile()->mutable_graph()->mutable_vertices(1)->mutable_inputs(0)->set_vertex_id(
      3);
  ExpectViolationBelow(request, "profile.graph.vertices[");
}

TEST_F(BadInput, AnUnknownVertex) {
  v1::ComputePlanRequest request = GoodGraph();
  request.mutable_profile()->mutable_graph()->mutable_vertices(1)->mutable_inputs(0)->set_vertex_id(
      99);
  ExpectViolationBelow(request, "profile.graph.vertices[");
}

TEST_F(BadInput, NothingAtAll) {
  ExpectViolationBelow(v1::ComputePlanRequest(), "profile");
  v1::ComputePlanRequest no_stages = Good();
  no_stages.mutable_profile()->mutable_chain()->clear_stages();
  ExpectViolationBelow(no_stages, "profile.chain.stages");
  v1::ComputePlanRequest no_vertices = GoodGraph();
  no_vertices.mutable_profile()->mutable_graph()->clear_vertices();
  ExpectViolationBelow(no_vertices, "profile.graph.vertices");
  v1::ComputePlanRequest no_budget = Good();
  no_budget.clear_budget();
  ExpectViolationBelow(no_budget, "budget");
}

TEST_F(BadInput, BudgetsAndOptionsThatAreNone) {
  v1::ComputePlanRequest request = Good();
  request.mutable_budget()->set_bytes(-1);
  ExpectViolation(request, "budget.bytes", "-1");
  request.mutable_budget()->set_share_of_store_all(std::numeric_limits<double>::quiet_NaN());
  ExpectViolationBelow(request, "budget.share_of_store_all");
  request.mutable_budget()->set_bytes(1500);
  request.mutable_options()->set_solver("no such solver");
  ExpectViolationBelow(request, "options.solver");
  request.mutable_options()->clear_solver();
  request.mutable_options()->set_slots(-3);
  ExpectViolation(request, "options.slots", "-3");
}

TEST_F(BadInput, MoreThanThisServerTakes) {
  ProfileShape shape;
  shape.stages = 21;
  ExpectViolation(ComputeRequestFor(ChainProfile(shape), 1500), "profile.chain.stages",
                  "21 elements");
  ExpectViolation(ComputeRequestFor(GraphProfile(31, 0, 1), 1500), "profile.graph.vertices",
                  "31 elements");
}

TEST_F(BadInput, KeysOfALookup) {
  v1::GetPlanRequest request;
  v1::GetPlanResponse response;
  request.mutable_budget()->set_bytes(1);
  EXPECT_EQ(GetFieldViolation(fixture_.Get(request, &response))->field, "keys");
  for (int i = 0; i < 17; ++i) {
    request.add_keys()->set_digest(std::string(32, 'k'));
    request.mutable_keys(i)->set_encoding_version(kEncodingVersion);
  }
  EXPECT_EQ(GetFieldViolation(fixture_.Get(request, &response))->value, "17 elements");
  request.mutable_keys()->RemoveLast();
  EXPECT_TRUE(absl::IsNotFound(fixture_.Get(request, &response)));
  request.mutable_keys(2)->set_digest("short");
  EXPECT_EQ(GetFieldViolation(fixture_.Get(request, &response))->field, "keys[2].digest");
}

TEST_F(BadInput, AMessageOverTheLimitNamesTheLimit) {
  v1::ComputePlanRequest request = Good();
  request.mutable_profile()->set_name(std::string(70000, 'n'));
  v1::ComputePlanResponse response;
  const absl::Status status = fixture_.Compute(request, &response);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(std::string(status.message()).find("65536"), std::string::npos) << status;
  EXPECT_TRUE(fixture_.Compute(Good(), &response).ok());
}

TEST_F(BadInput, TheDetailsAreGoogleRpcStatus) {
  v1::ComputePlanRequest request = Good();
  request.mutable_profile()->mutable_chain()->set_input_bytes(-7);
  grpc::ClientContext context;
  v1::ComputePlanResponse response;
  const grpc::Status status = fixture_.stub->ComputePlan(&context, request, &response);
  google::rpc::Status rich;
  ASSERT_TRUE(rich.ParseFromString(status.error_details()));
  EXPECT_EQ(rich.code(), grpc::INVALID_ARGUMENT);
  bool has_request = false;
  bool has_info = false;
  for (const auto& detail : rich.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&bad_request)) {
      has_request = true;
      EXPECT_EQ(bad_request.field_violations(0).field(), "profile.chain.input_bytes");
      EXPECT_NE(bad_request.field_violations(0).description().find("-7"), std::string::npos);
    }
    if (detail.UnpackTo(&info)) {
      has_info = true;
      EXPECT_EQ(info.domain(), "stowage");
      EXPECT_EQ(info.reason(), "INVALID_ARGUMENT");
    }
  }
  EXPECT_TRUE(has_request);
  EXPECT_TRUE(has_info);
}

TEST_F(BadInput, BytesThatAreNoMessageAreTheCallersFaultWhateverTheRpc) {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto* service :
       {v1::PlanKey::descriptor()->file()->FindServiceByName("PlanService"),
        v1::PinPlanRequest::descriptor()->file()->FindServiceByName("PlanAdminService")}) {
    for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
  }
  ASSERT_EQ(methods.size(), kRpcCount);
  for (size_t i = 0; i < methods.size(); ++i) {
    const auto* const method = methods[i];
    SCOPED_TRACE(method->full_name());
    grpc::ByteBuffer response;
    const absl::Status status = FromGrpcStatus(
        RawCall(fixture_.channel, "/" + method->service()->full_name() + "/" + method->name(),
                "\xff\xff\xff not protobuf", &response));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const auto violation = GetFieldViolation(status);
    ASSERT_TRUE(violation.has_value()) << status;
    EXPECT_EQ(violation->field, "request");
    EXPECT_EQ(violation->value, "16 bytes");
    EXPECT_EQ(violation->rule, "must be the bytes of a " + method->input_type()->full_name());
    const auto called = static_cast<int64_t>(i) + 1;
    EXPECT_EQ(fixture_.metrics.rpcs_started, called);
    EXPECT_EQ(fixture_.metrics.rpcs_handled[grpc::INVALID_ARGUMENT], called);
  }
  v1::ComputePlanResponse good;
  EXPECT_TRUE(fixture_.Compute(Good(), &good).ok());
}

// Half a message of more than a thread of gRPC's parses itself.
TEST_F(BadInput, ALargeMessageThatIsCutIsTheCallersFault) {
  RequestLimits limits;
  limits.max_message_bytes = 1 << 20;
  RpcFixture fixture(false, limits);
  v1::ComputePlanRequest request = Good();
  request.mutable_profile()->set_name(std::string(200000, 'n'));
  const std::string bytes = request.SerializeAsString().substr(0, 150000);
  for (const char* method : {"ComputePlan", "WatchPlan", "GetFrontier", "FitBatch"}) {
    grpc::ByteBuffer response;
    const absl::Status status = FromGrpcStatus(RawCall(
        fixture.channel, std::string("/stowage.v1.PlanService/") + method, bytes, &response));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << method << status;
    ASSERT_TRUE(GetFieldViolation(status).has_value()) << status;
    EXPECT_EQ(GetFieldViolation(status)->value, "150000 bytes");
  }
}

}  // namespace
}  // namespace stowage::testing
