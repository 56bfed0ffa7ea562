#include <gtest/gtest.h>

#include <cstring>

#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/cli/training_comparison.h"
#include "client/models/models.h"
#include "client/torch/plain_step.h"

namespace stowage {
namespace {

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(PlanStatus::kProvenInfeasible), 3);
  EXPECT_EQ(ExitCodeOf(PlanStatus::kNotFound), 3);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
}

TEST(Table, AlignsItsColumns) {
  Table table({{"a", ""}, {"long", "head"}});
  table.AddRow({"row", "1"});
  EXPECT_EQ(table.ToString(),
            "a    long\n"
            "     head\n"
            "---------\n"
            "row     1\n");
}

class TrainingComparisonTest : public ::testing::Test {
 protected:
  absl::StatusOr<StepReport> Plain(const at::Tensor& input, const at::Tensor& target) {
    return PlainStep(model_, input, target);
  }

  ChainModel model_ = *MakeModel("resnet18", ModelOptions{10, 1});
  Sample sample_ = *MakeImageSample(2, 32, 10, 1);
  TrainingComparison training_{&model_, &sample_, 7};
};

TEST_F(TrainingComparisonTest, EqualRunsCompareEqual) {
  const StepFunction step = [this](const at::Tensor& x, const at::Tensor& y) {
    return Plain(x, y);
  };
  const absl::StatusOr<Trajectory> a = training_.Train(3, step);
  const absl::StatusOr<Trajectory> b = training_.Train(3, step);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(Compare(*a, *b).all());
  EXPECT_NE(a->steps[0].loss, a->steps[2].loss) << "nothing was learnt, so nothing was compared";
  EXPECT_FALSE(Compare(*a, *training_.Train(2, step)).all());
}

// One flipped bit in one gradient at one step must show.
TEST_F(TrainingComparisonTest, TheSmallestDifferenceShows) {
  const StepFunction step = [this](const at::Tensor& x, const at::Tensor& y) {
    return Plain(x, y);
  };
  const StepFunction disturbed = [this](const at::Tensor& x, const at::Tensor& y) {
    absl::StatusOr<StepReport> report = Plain(x, y);
    float* gradient = model_.parameters()[0].grad().data_ptr<float>();
    uint32_t bits;
    std::memcpy(&bits, gradient, sizeof bits);
    bits ^= 1;
    std::memcpy(gradient, &bits, sizeof bits);
    return report;
  };
  const Equality equality = Compare(*training_.Train(1, step), *training_.Train(1, disturbed));
  EXPECT_TRUE(equality.loss);
  EXPECT_FALSE(equality.gradients);
  EXPECT_FALSE(equality.all());
}

TEST_F(TrainingComparisonTest, TheLimitCheckNoticesStepsThatDoNotRunOut) {
  const StepFunction step = [this](const at::Tensor& x, const at::Tensor& y) {
    return Plain(x, y);
  };
  const Bytes peak = training_.Train(1, step)->peak();
  EXPECT_TRUE(training_.CheckLimit(peak, step).ok());
  EXPECT_FALSE(training_.CheckLimit(peak + peak, step).ok());
}

}  // namespace
}  // namespace stowage
