// What every RPC answers.
#include <gmock/gmock.h>

#include "solvers/model/transfer_model.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace stowage::testing {
namespace {

TEST(PlanRpc, ComputeThenGet) {
  RpcFixture fixture;
  v1::ComputePlanResponse computed;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &computed).ok());
  EXPECT_EQ(computed.source(), v1::PLAN_SOURCE_SOLVED);
  EXPECT_EQ(computed.plan().status(), v1::PLAN_STATUS_FOUND);
  EXPECT_EQ(computed.plan().budget_bytes(), kTightBytes);
  EXPECT_LE(computed.plan().prediction().peak_bytes(), kTightBytes);
  EXPECT_GT(computed.plan().schedule().instructions_size(), 12);
  EXPECT_EQ(computed.key().digest(), MakePlanKey(ChainProfile({}), KeyOptions()).digest.ToBinary());

  v1::GetPlanRequest request;
  v1::PlanKey* unknown = request.add_keys();
  unknown->set_encoding_version(kEncodingVersion);
  unknown->set_digest(std::string(32, 'u'));
  *request.add_keys() = computed.key();
  request.mutable_budget()->set_bytes(kTightBytes);
  v1::GetPlanResponse got;
  ASSERT_TRUE(fixture.Get(request, &got).ok());
  EXPECT_EQ(got.key().digest(), computed.key().digest());
  EXPECT_EQ(got.plan().digest(), computed.plan().digest());
  EXPECT_EQ(got.plan().schedule().SerializeAsString(),
            computed.plan().schedule().SerializeAsString());

  // A budget between the plan's peak and its own is answered as asked.
  request.mutable_budget()->set_bytes(computed.plan().prediction().peak_bytes());
  ASSERT_TRUE(fixture.Get(request, &got).ok());
  EXPECT_EQ(got.plan().budget_bytes(), computed.plan().prediction().peak_bytes());

  v1::ComputePlanResponse again;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &again).ok());
  EXPECT_EQ(again.source(), v1::PLAN_SOURCE_CACHE);
  EXPECT_EQ(fixture.metrics.rpcs_started, 4);
  EXPECT_EQ(fixture.metrics.rpcs_handled[grpc::OK], 4);
}

// Of a profile whose device has no link: an answer, with what is missing.
TEST(PlanRpc, AnOffloadSolverWithoutALinkIsProvenInfeasible) {
  RpcFixture fixture;
  const Profile profile = ChainProfile({});
  ASSERT_FALSE(TransfersOf(profile.device).has_value());
  v1::ComputePlanRequest request = ComputeRequestFor(profile, kTightBytes);
  for (const char* solver :
       {"offload_dynprog", "offload_greedy", "offload_vdnn", "offload_tflms", "offload_autoswap"}) {
    request.mutable_options()->set_solver(solver);
    v1::ComputePlanResponse answer;
    const absl::Status status = fixture.Compute(request, &answer);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer.plan().status(), v1::PLAN_STATUS_PROVEN_INFEASIBLE) << solver;
    EXPECT_THAT(answer.plan().explanation(), ::testing::HasSubstr("without a link to host memory"));
    // Plain training, and what it takes.
    v1::ComputePlanRequest all = request;
    all.mutable_budget()->set_bytes(answer.plan().bounds().least_budget_bytes());
    ASSERT_TRUE(fixture.Compute(all, &answer).ok());
    EXPECT_EQ(answer.plan().status(), v1::PLAN_STATUS_FOUND) << solver;
    EXPECT_EQ(answer.plan().prediction().offloaded_bytes(), 0) << solver;
  }
}

TEST(PlanRpc, GraphPlansNameTheSendersVertices) {
  RpcFixture fixture;
  v1::ComputePlanResponse computed;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(GraphProfile(8, 70, 10), 100000), &computed).ok());
  ASSERT_GT(computed.plan().stage_vertices_size(), 0);
  for (const auto& stage : computed.plan().stage_vertices()) {
    for (const int64_t id : stage.vertex_ids()) {
      EXPECT_GE(id, 70);
      EXPECT_EQ(id % 10, 0);
    }
  }
}

TEST(PlanRpc, AnUnknownKeyIsNotFoundWithItsReason) {
  RpcFixture fixture;
  v1::GetPlanRequest request;
  request.add_keys()->set_digest(std::string(32, 'u'));
  request.mutable_keys(0)->set_encoding_version(kEncodingVersion);
  request.mutable_budget()->set_bytes(kTightBytes);
  v1::GetPlanResponse response;
  const absl::Status status = fixture.Get(request, &response);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(GetReason(status), kReasonPlanNotCached);
  EXPECT_EQ(fixture.metrics.rpcs_handled[grpc::NOT_FOUND], 1);
}

TEST(PlanRpc, AnInfeasibleBudgetIsAnAnswerWithTheLeastOne) {
  RpcFixture fixture;
  v1::ComputePlanResponse response;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), 5), &response).ok());
  EXPECT_EQ(response.plan().status(), v1::PLAN_STATUS_PROVEN_INFEASIBLE);
  EXPECT_EQ(response.plan().bounds().least_budget_bytes(), LeastPeak(ChainProfile({})).value());
  EXPECT_EQ(response.plan().schedule().instructions_size(), 0);
}

TEST(PlanRpc, AFrontierHasAsManyPointsAsAskedFor) {
  RpcFixture fixture;
  ProfileShape shape;
  shape.stages = 12;
  v1::GetFrontierRequest request;
  *request.mutable_profile() = ToProto(ChainProfile(shape));
  const auto get = [&](v1::GetFrontierResponse* response) {
    grpc::ClientContext context;
    return FromGrpcStatus(fixture.stub->GetFrontier(&context, request, response));
  };
  v1::GetFrontierResponse all, few;
  ASSERT_TRUE(get(&all).ok());
  ASSERT_GT(all.points_size(), 3);
  EXPECT_EQ(all.points(0).budget_bytes(), LeastPeak(ChainProfile(shape)).value());
  EXPECT_EQ(all.points(all.points_size() - 1).peak_bytes(),
            StoreAllPeak(ChainProfile(shape)).value());
  for (int i = 1; i < all.points_size(); ++i) {
    EXPECT_GT(all.points(i).budget_bytes(), all.points(i - 1).budget_bytes());
    EXPECT_LT(all.points(i).makespan_ns(), all.points(i - 1).makespan_ns());
  }
  EXPECT_EQ(all.key().digest().size(), 32u);
  EXPECT_NE(all.solver(), "");
  request.set_max_points(3);
  ASSERT_TRUE(get(&few).ok());
  EXPECT_LE(few.points_size(), 3);
  EXPECT_EQ(few.points(0).budget_bytes(), all.points(0).budget_bytes());
  EXPECT_FALSE(few.exact());
  request.set_max_points(601);
  EXPECT_TRUE(absl::IsInvalidArgument(get(&few)));
}

TEST(PlanRpc, FitBatchLeavesWhatIsReserved) {
  RpcFixture fixture;
  v1::FitBatchRequest request = TwoBatches();
  const auto fit = [&](v1::FitBatchResponse* response) {
    grpc::ClientContext context;
    return FromGrpcStatus(fixture.stub->FitBatch(&context, request, response));
  };
  v1::FitBatchResponse all, less;
  ASSERT_TRUE(fit(&all).ok());
  EXPECT_EQ(all.largest_batch_size(), 20);
  EXPECT_GT(all.samples_per_second(), 0);
  EXPECT_GT(all.points_size(), 5);
  request.set_reserved_bytes(request.device_budget_bytes() / 2);
  ASSERT_TRUE(fit(&less).ok());
  EXPECT_EQ(less.largest_batch_size(), 10);
  request.set_max_batch_size(3);
  ASSERT_TRUE(fit(&less).ok());
  EXPECT_EQ(less.largest_batch_size(), 3);
  request.mutable_profiles(1)->set_batch_size(1);
  const absl::Status refused = fit(&less);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("profiles[1].batch_size"));
}

// Before anything has run there are no times, yet the largest batch is known.
TEST(PlanRpc, FitBatchFromTheStructureAlone) {
  RpcFixture fixture;
  v1::FitBatchRequest request;
  for (const int batch : {1, 4}) {
    ProfileShape shape;
    shape.output = 100 * batch;
    shape.timed = false;
    Profile profile = ChainProfile(shape);
    profile.cost_source = CostSource::kBytesOnly;
    v1::BatchProfile* measured = request.add_profiles();
    measured->set_batch_size(batch);
    *measured->mutable_profile() = ToProto(profile);
  }
  request.set_device_budget_bytes(20 * LeastPeak(ChainProfile({})).value());
  grpc::ClientContext context;
  v1::FitBatchResponse fit;
  const grpc::Status status = fixture.stub->FitBatch(&context, request, &fit);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(fit.largest_batch_size(), 20);
  EXPECT_EQ(fit.fastest_batch_size(), 0);
}

TEST(PlanRpc, AScheduleThatTheCallerHoldsIsNotSentAgain) {
  RpcFixture fixture;
  ProfileShape shape;
  shape.stages = 60;
  const Profile profile = ChainProfile(shape);
  v1::ComputePlanResponse made;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(profile, LeastPeak(profile).value()), &made).ok());
  v1::GetPlanRequest request;
  *request.add_keys() = made.key();
  request.mutable_budget()->set_bytes(LeastPeak(profile).value());
  v1::GetPlanResponse full;
  ASSERT_TRUE(fixture.Get(request, &full).ok());
  EXPECT_FALSE(full.unchanged());
  EXPECT_GT(full.plan().schedule().instructions_size(), 100);

  v1::GetPlanResponse basic;
  request.set_view(v1::PLAN_VIEW_BASIC);
  ASSERT_TRUE(fixture.Get(request, &basic).ok());
  EXPECT_FALSE(basic.unchanged());
  v1::GetPlanResponse expected = full;
  expected.mutable_plan()->clear_schedule();
  expected.mutable_plan()->clear_explanation();
  EXPECT_EQ(basic.SerializeAsString(), expected.SerializeAsString());

  request.set_view(v1::PLAN_VIEW_FULL);
  request.set_held_digest(full.plan().digest());
  v1::GetPlanResponse same;
  ASSERT_TRUE(fixture.Get(request, &same).ok());
  expected.set_unchanged(true);
  EXPECT_EQ(same.SerializeAsString(), expected.SerializeAsString());
  EXPECT_LT(same.ByteSizeLong(), 400u);

  request.set_held_digest(std::string(32, 'd'));
  v1::GetPlanResponse other;
  ASSERT_TRUE(fixture.Get(request, &other).ok());
  EXPECT_EQ(other.SerializeAsString(), full.SerializeAsString());
  request.set_held_digest("short");
  EXPECT_EQ(GetFieldViolation(fixture.Get(request, &other))->field, "held_digest");
  request.clear_held_digest();
  request.set_view(static_cast<v1::PlanView>(9));
  EXPECT_EQ(GetFieldViolation(fixture.Get(request, &other))->field, "view");
}

TEST(PlanRpc, CapabilitiesSayWhatThereIs) {
  RequestLimits limits;
  limits.max_stages = 77;
  RpcFixture fixture(false, limits);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(
      fixture.stub->GetCapabilities(&context, v1::GetCapabilitiesRequest(), &response).ok());
  EXPECT_EQ(response.server_version(), "9.8.7");
  EXPECT_EQ(response.key_encoding_version(), kEncodingVersion);
  EXPECT_EQ(response.max_stages(), 77);
  EXPECT_EQ(response.max_message_bytes(), limits.max_message_bytes);
  EXPECT_EQ(response.max_vertices(), limits.max_vertices);
  EXPECT_THAT(response.implemented_rpcs(),
              ::testing::UnorderedElementsAre(
                  "GetPlan", "ComputePlan", "WatchPlan", "GetFrontier", "FitBatch", "ExplainPlan",
                  "ReportExecution", "ListPlans", "GetCapabilities", "PinPlan", "UnpinPlan",
                  "RollBackPlan", "PromotePlan", "FreezePlan", "UnfreezePlan", "DeletePlan",
                  "ExportDecisions", "ImportDecisions"));
  std::vector<std::string> names;
  for (const auto& solver : response.solvers()) {
    names.push_back(solver.name());
    EXPECT_NE(solver.description(), "");
    EXPECT_NE(solver.schedule_class(), "");
  }
  EXPECT_THAT(names, ::testing::Contains("optimal_persistent"));
}

TEST(PlanRpc, AnAnswerOverTheLimitNamesTheLimit) {
  ProfileShape shape;
  shape.stages = 60;
  const Profile profile = ChainProfile(shape);
  const v1::ComputePlanRequest request = ComputeRequestFor(profile, LeastPeak(profile).value());
  v1::ComputePlanResponse response;
  ASSERT_TRUE(RpcFixture().Compute(request, &response).ok());
  RequestLimits limits;
  limits.max_message_bytes = static_cast<int64_t>(request.ByteSizeLong());
  ASSERT_GT(response.ByteSizeLong(), request.ByteSizeLong());
  RpcFixture fixture(false, limits);
  const absl::Status status = fixture.Compute(request, &response);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(GetReason(status), "RESPONSE_TOO_LARGE");
  EXPECT_FALSE(GetRetryDelay(status).has_value());
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(std::to_string(limits.max_message_bytes)));
}

TEST(PlanRpc, AFullQueueSaysWhenToRetry) {
  PlanningOptions planning;
  planning.solver_threads = 1;
  planning.limits.queue_limit = 1;
  RpcFixture fixture(true, RequestLimits(), planning);
  std::vector<v1::ComputePlanResponse> responses(2);
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ComputePlanResponse>>> calls;
  std::vector<grpc::Status> statuses(2);
  for (int i = 0; i < 2; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    calls.push_back(fixture.stub->AsyncComputePlan(
        contexts.back().get(), ComputeRequestFor(ChainProfile({}), kTightBytes - i), &queue));
    calls.back()->Finish(&responses[i], &statuses[i], nullptr);
    // One on the thread, then one in the queue.
    while (i == 0 ? fixture.solver.started() < 1 : fixture.metrics.queue_depth < 1) usleep(1000);
  }
  v1::ComputePlanResponse response;
  const absl::Status refused =
      fixture.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes - 50), &response);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(GetReason(refused), "QUEUE_FULL");
  const std::map<std::string, std::string> figures = {{"limit", "1"}, {"position", "1"}};
  EXPECT_EQ(GetErrorMetadata(refused), figures);
  ASSERT_TRUE(GetRetryDelay(refused).has_value());
  EXPECT_GE(*GetRetryDelay(refused), std::chrono::milliseconds(100));
  fixture.solver.Release();
  void* tag = nullptr;
  bool ok = false;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
}

}  // namespace
}  // namespace stowage::testing
