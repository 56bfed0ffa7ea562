#include "server/rpc/request_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

void AddStage(int64_t saved_tensors, v1::Chain* chain) {
  v1::Stage* stage = chain->add_stages();
  for (int64_t i = 0; i < saved_tensors; ++i) stage->add_saved_tensor_bytes(0);
}

TEST(RequestLimits, SavedTensorsAreCountedOverAllStages) {
  v1::ComputePlanRequest request;
  v1::Chain* chain = request.mutable_profile()->mutable_chain();
  for (int i = 0; i < 4; ++i) AddStage(kMaxSavedTensors / 4, chain);
  EXPECT_TRUE(CheckLimits(request.profile(), RequestLimits()).ok());
  chain->mutable_loss()->add_saved_tensor_bytes(0);
  const absl::Status status = CheckLimits(request.profile(), RequestLimits());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("saved_tensor_bytes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("200000"));
}

TEST(RequestLimits, StagesAreCountedFirst) {
  v1::ComputePlanRequest request;
  for (int i = 0; i < 3; ++i) AddStage(0, request.mutable_profile()->mutable_chain());
  RequestLimits limits;
  limits.max_stages = 2;
  EXPECT_THAT(std::string(CheckLimits(request.profile(), limits).message()),
              HasSubstr("profile.chain.stages"));
}

}  // namespace
}  // namespace stowage::testing
