#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "proto/codec/codec.h"
#include "tests/proto/samples.h"
#include "tests/proto/violations.h"

namespace stowage {
namespace {

using google::protobuf::Message;

absl::Status ChangedPlan(const std::function<void(v1::Plan*)>& change) {
  return Changed<v1::Plan>(SamplePlan(), change);
}

TEST(PlanValidation, NothingOfAPlanIsNegative) {
  using Locate = std::function<Message*(v1::Plan*)>;
  const Locate plan = [](v1::Plan* p) { return p; };
  const Locate prediction = [](v1::Plan* p) { return p->mutable_prediction(); };
  const Locate bounds = [](v1::Plan* p) { return p->mutable_bounds(); };
  const Locate provenance = [](v1::Plan* p) { return p->mutable_provenance(); };
  const Locate instruction = [](v1::Plan* p) {
    return p->mutable_schedule()->mutable_instructions(3);
  };
  EXPECT_EQ(ExpectNoNegative(SamplePlan(), plan, "plan."), 2);
  EXPECT_EQ(ExpectNoNegative(SamplePlan(), prediction, "plan.prediction."), 9);
  EXPECT_EQ(ExpectNoNegative(SamplePlan(), bounds, "plan.bounds."), 4);
  EXPECT_EQ(ExpectNoNegative(SamplePlan(), provenance, "plan.provenance."), 2);
  EXPECT_EQ(ExpectNoNegative(SamplePlan(), instruction, "plan.schedule.instructions[3]."), 2);
}

absl::Status WithShare(double share) {
  v1::Budget budget;
  budget.set_share_of_store_all(share);
  return FromProto(budget).status();
}

TEST(PlanValidation, Budget) {
  v1::Budget budget;
  ExpectViolation(FromProto(budget).status(), "budget", "unset",
                  "exactly one of bytes, share_of_store_all and least must be set");
  budget.set_bytes(-5);
  ExpectViolation(FromProto(budget).status(), "budget.bytes", "-5", "must be >= 0");
  budget.set_least(false);
  ExpectViolation(FromProto(budget).status(), "budget.least", "false",
                  "must be true when it is set");
  const std::string field = "budget.share_of_store_all";
  EXPECT_TRUE(WithShare(1.0).ok());
  ExpectViolation(WithShare(0.0), field, "0", "must be in (0, 1]");
  ExpectViolation(WithShare(-0.5), field, "-0.5", "must be in (0, 1]");
  ExpectViolation(WithShare(1.5), field, "1.5", "must be in (0, 1]");
  ExpectViolation(WithShare(HUGE_VAL), field, "inf", "must be in (0, 1]");
  ExpectViolation(WithShare(std::nan("")), field, "nan", "must be in (0, 1]");
}

TEST(PlanValidation, Key) {
  v1::PlanKey key;
  key.set_encoding_version(1);
  key.set_digest(std::string(32, 'd'));
  EXPECT_TRUE(FromProto(key).ok());
  key.set_digest(std::string(31, 'd'));
  ExpectViolation(FromProto(key).status(), "key.digest", "31 bytes", "must have 32 bytes");
  key.set_encoding_version(0);
  ExpectViolation(FromProto(key).status(), "key.encoding_version", "0", "must be >= 1");
}

TEST(PlanValidation, Options) {
  v1::PlanOptions options;
  options.set_slots(-1);
  ExpectViolation(FromProto(options, "").status(), "options.slots", "-1",
                  "must be in [0, 1000000]");
  options.set_slots(1000001);
  ExpectViolation(FromProto(options, "").status(), "options.slots", "1000001",
                  "must be in [0, 1000000]");
  options.set_solver(std::string(257, 's'));
  ExpectViolation(FromProto(options, "").status(), "options.solver", std::string(32, 's') + "...",
                  "must have at most 256 bytes, has 257");
  options.set_objective(static_cast<v1::Objective>(5));
  ExpectViolation(FromProto(options, "").status(), "options.objective", "5",
                  "must be a value of stowage.v1.Objective that this version knows");
}

absl::Status ChangedInstruction(int index, const std::function<void(v1::Instruction*)>& change) {
  return ChangedPlan(
      [&](v1::Plan* p) { change(p->mutable_schedule()->mutable_instructions(index)); });
}

TEST(PlanValidation, Instructions) {
  const std::string first = "plan.schedule.instructions[0].";
  const std::string last = "plan.schedule.instructions[9].";
  ExpectViolation(ChangedInstruction(0, [](auto* i) { i->clear_op(); }), first + "op",
                  "OP_UNSPECIFIED", "must be set");
  ExpectViolation(ChangedInstruction(0, [](auto* i) { i->set_op(static_cast<v1::Op>(11)); }),
                  first + "op", "11", "must be a value of stowage.v1.Op that this version knows");
  ExpectViolation(ChangedInstruction(0, [](auto* i) { i->clear_stream(); }), first + "stream",
                  "STREAM_UNSPECIFIED", "must be set");
  ExpectViolation(ChangedInstruction(0, [](auto* i) { i->set_stream(static_cast<v1::Stream>(5)); }),
                  first + "stream", "5",
                  "must be a value of stowage.v1.Stream that this version knows");
  ExpectViolation(ChangedInstruction(9, [](auto* i) { i->clear_tensor(); }), last + "tensor",
                  "TENSOR_KIND_UNSPECIFIED", "must be set");
  ExpectViolation(
      ChangedInstruction(9, [](auto* i) { i->set_tensor(static_cast<v1::TensorKind>(3)); }),
      last + "tensor", "3", "must be a value of stowage.v1.TensorKind that this version knows");
}

TEST(PlanValidation, PartsOfInstructions) {
  EXPECT_TRUE(ChangedInstruction(3, [](auto* i) { i->set_part(0); }).ok());
  ExpectViolation(ChangedInstruction(3, [](auto* i) { i->set_part(65536); }),
                  "plan.schedule.instructions[3].part", "65536", "must be <= 65535");
}

TEST(PlanValidation, Plan) {
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->clear_status(); }), "plan.status",
                  "PLAN_STATUS_UNSPECIFIED", "must be set");
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->set_status(static_cast<v1::PlanStatus>(8)); }),
                  "plan.status", "8",
                  "must be a value of stowage.v1.PlanStatus that this version knows");
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->clear_schedule(); }),
                  "plan.schedule.instructions", "[]", "must not be empty in a plan that was found");
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->set_status(v1::PLAN_STATUS_NOT_FOUND); }),
                  "plan.schedule.instructions", "10 instructions",
                  "must be empty unless the plan was found");
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->set_digest("short"); }), "plan.digest",
                  "5 bytes", "must have 32 bytes");
  std::string hex;
  for (int i = 0; i < 32; ++i) hex += "01";
  ExpectViolation(ChangedPlan([](v1::Plan* p) { p->set_digest(std::string(32, '\x01')); }),
                  "plan.digest", hex, "must be the SHA-256 of the schedule");
}

}  // namespace
}  // namespace stowage
