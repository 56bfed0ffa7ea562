#include "solvers/model/chain.h"

#include <gtest/gtest.h>

#include <functional>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

ChainSpec TwoStages() {
  ChainSpec spec;
  spec.input = Bytes(5);
  spec.stages.resize(2);
  for (Stage& s : spec.stages) {
    s.output = s.saved = Bytes(3);
    s.forward_time = Nanos(1);
    s.backward_time = Nanos(2);
  }
  return spec;
}

TEST(Chain, NumbersStagesFromOneAndTheLossLast) {
  ChainSpec spec = TwoStages();
  spec.stages[1].name = "second";
  spec.loss.forward_time = Nanos(100);
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(chain.length(), 2);
  EXPECT_EQ(chain.stage(2).name, "second");
  EXPECT_EQ(chain.stage(3).forward_time, Nanos(100));
  EXPECT_EQ(chain.activation(0), Bytes(5));
  EXPECT_EQ(chain.activation(2), Bytes(3));
  EXPECT_EQ(chain.ideal_time(), Nanos(106));
}

TEST(Chain, SavedTensorsArePartsAndTheRestIsOne) {
  ChainSpec spec = TwoStages();
  spec.stages[0].saved = Bytes(10);
  spec.stages[0].saved_tensors = {Bytes(4), Bytes(0), Bytes(3)};
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(chain.stage(1).parts(), 4);
  EXPECT_EQ(chain.stage(1).part(1), Bytes(4));
  EXPECT_EQ(chain.stage(1).part(2), Bytes(0));
  EXPECT_EQ(chain.stage(1).part(3), Bytes(3));
  EXPECT_EQ(chain.stage(1).part(4), Bytes(3));
  EXPECT_EQ(chain.stage(2).parts(), 0);
}

struct BadChain {
  std::function<void(ChainSpec*)> breaks;
  const char* field;
  const char* value;
};

TEST(Chain, NamesFieldValueAndRule) {
  const BadChain cases[] = {
      {[](ChainSpec* c) { c->stages.clear(); }, "chain.stages", "[]"},
      {[](ChainSpec* c) { c->stages.resize(Chain::kMaxStages + 1); }, "chain.stages", "100001"},
      {[](ChainSpec* c) { c->input = Bytes(-1); }, "chain.input_bytes", "-1"},
      {[](ChainSpec* c) { c->input_gradient = Bytes(-2); }, "chain.input_gradient_bytes", "-2"},
      {[](ChainSpec* c) { c->stages[1].output = Bytes(-3); }, "chain.stages[1].output_bytes", "-3"},
      {[](ChainSpec* c) { c->stages[1].saved = Bytes(2); }, "chain.stages[1].saved_bytes", "2"},
      {[](ChainSpec* c) {
         c->stages[1].saved_tensors = {Bytes(0), Bytes(-1)};
       },
       "chain.stages[1].saved_tensor_bytes[1]", "-1"},
      {[](ChainSpec* c) {
         c->stages[1].saved = Bytes(6);
         c->stages[1].saved_tensors = {Bytes(3), Bytes(0), Bytes(1)};
       },
       "chain.stages[1].saved_tensor_bytes[2]", "1"},
      {[](ChainSpec* c) { c->loss.saved_tensors.assign(1, Bytes(1)); },
       "chain.loss.saved_tensor_bytes[0]", "1"},
      {[](ChainSpec* c) { c->loss.saved_tensors.resize(Stage::kMaxSavedTensors + 1); },
       "chain.loss.saved_tensor_bytes", "65535"},
      {[](ChainSpec* c) { c->stages[0].forward_time = Nanos(-1); },
       "chain.stages[0].forward_time_ns", "-1"},
      {[](ChainSpec* c) { c->stages[0].backward_time = Nanos(-1); },
       "chain.stages[0].backward_time_ns", "-1"},
      {[](ChainSpec* c) { c->stages[0].output_gradient = Bytes(-1); },
       "chain.stages[0].output_gradient_bytes", "-1"},
      {[](ChainSpec* c) { c->stages[0].forward_saving_overhead = Bytes(-1); },
       "chain.stages[0].forward_saving_overhead_bytes", "-1"},
      {[](ChainSpec* c) { c->stages[0].forward_overhead = Bytes(-1); },
       "chain.stages[0].forward_overhead_bytes", "-1"},
      {[](ChainSpec* c) { c->stages[0].backward_overhead = Bytes(-1); },
       "chain.stages[0].backward_overhead_bytes", "-1"},
      {[](ChainSpec* c) { c->stages[0].transient_parameters = Bytes(-1); },
       "chain.stages[0].transient_parameter_bytes", "-1"},
      {[](ChainSpec* c) { c->loss.output = Bytes(-7); }, "chain.loss.output_bytes", "-7"},
      {[](ChainSpec* c) { c->loss.saved = Bytes(kMaxTotal); }, "chain.loss.saved_bytes",
       "4611686018427387904"},
      {[](ChainSpec* c) { c->input = c->stages[0].saved = Bytes(kMaxTotal / 2); },
       "chain.stages[0].saved_bytes", "2305843009213693952"},
      {[](ChainSpec* c) { c->stages[1].backward_time = Nanos(INT64_MAX); },
       "chain.stages[1].backward_time_ns", "9223372036854775807"},
  };
  for (const BadChain& c : cases) {
    ChainSpec spec = TwoStages();
    c.breaks(&spec);
    const absl::Status status = Chain::Create(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const auto violation = GetFieldViolation(status);
    ASSERT_TRUE(violation.has_value()) << c.field;
    EXPECT_EQ(violation->field, c.field);
    EXPECT_EQ(violation->value, c.value);
    EXPECT_FALSE(violation->rule.empty());
  }
  ChainSpec long_name = TwoStages();
  long_name.stages[1].op_kind = std::string(300, 'n');
  EXPECT_EQ(GetFieldViolation(Chain::Create(long_name).status())->field, "chain.stages[1].op_kind");
}

}  // namespace
}  // namespace stowage
