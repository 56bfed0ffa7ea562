#include "tests/client/torch/same_structure.h"

#include <gtest/gtest.h>

#include <variant>

#include "solvers/model/canonical.h"

namespace stowage {
namespace {

template <class Part>
void ExpectNoMoreThanMeasured(const Part& told, const Part& measured) {
  EXPECT_EQ(told.forward_time, Nanos(0));
  EXPECT_EQ(told.backward_time, Nanos(0));
  EXPECT_LE(told.forward_saving_overhead, measured.forward_saving_overhead);
  EXPECT_LE(told.forward_overhead, measured.forward_overhead);
  EXPECT_LE(told.backward_overhead, measured.backward_overhead);
}

template <class Part>
void ExpectSameLabels(const Part& told, const Part& measured) {
  EXPECT_EQ(told.name, measured.name);
  EXPECT_EQ(told.op_kind, measured.op_kind);
  EXPECT_EQ(told.random, measured.random);
  EXPECT_EQ(told.stateful, measured.stateful);
  EXPECT_EQ(told.must_keep, measured.must_keep);
}

void ExpectSame(const Stage& told, const Stage& measured) {
  SCOPED_TRACE(measured.name);
  ExpectSameLabels(told, measured);
  EXPECT_EQ(told.output.value(), measured.output.value());
  EXPECT_EQ(told.saved.value(), measured.saved.value());
  EXPECT_EQ(told.saved_tensors, measured.saved_tensors);
  EXPECT_EQ(told.output_gradient.value(), measured.output_gradient.value());
  ExpectNoMoreThanMeasured(told, measured);
}

void ExpectSame(const Vertex& told, const Vertex& measured) {
  SCOPED_TRACE(measured.name);
  ExpectSameLabels(told, measured);
  EXPECT_EQ(told.alias, measured.alias);
  EXPECT_EQ(told.output.value(), measured.output.value());
  EXPECT_EQ(told.output_gradient.value(), measured.output_gradient.value());
  EXPECT_EQ(told.extra_saved.value(), measured.extra_saved.value());
  EXPECT_EQ(told.backward_needs_output, measured.backward_needs_output);
  ASSERT_EQ(told.inputs.size(), measured.inputs.size());
  for (size_t i = 0; i < told.inputs.size(); ++i) {
    EXPECT_EQ(told.inputs[i].vertex, measured.inputs[i].vertex);
    EXPECT_EQ(told.inputs[i].backward_needs, measured.inputs[i].backward_needs) << i;
  }
  ExpectNoMoreThanMeasured(told, measured);
}

void ExpectSame(const Chain& told, const Chain& measured) {
  EXPECT_EQ(told.activation(0).value(), measured.activation(0).value());
  EXPECT_EQ(told.gradient(0).value(), measured.gradient(0).value());
  ASSERT_EQ(told.length(), measured.length());
  for (int l = 1; l <= told.length() + 1; ++l) ExpectSame(told.stage(l), measured.stage(l));
}

void ExpectSame(const Graph& told, const Graph& measured) {
  ASSERT_EQ(told.size(), measured.size());
  for (int v = 0; v < told.size(); ++v) ExpectSame(told.vertex(v), measured.vertex(v));
}

}  // namespace

void ExpectSameStructure(const Profile& from_shapes, const Profile& measured) {
  EXPECT_EQ(from_shapes.cost_source, CostSource::kBytesOnly);
  EXPECT_EQ(from_shapes.name, measured.name);
  ASSERT_EQ(from_shapes.problem.index(), measured.problem.index());
  if (const Chain* chain = std::get_if<Chain>(&measured.problem)) {
    ExpectSame(std::get<Chain>(from_shapes.problem), *chain);
  } else {
    ExpectSame(std::get<Graph>(from_shapes.problem), std::get<Graph>(measured.problem));
  }
  EXPECT_EQ(CanonicalBytes(from_shapes, {}), CanonicalBytes(measured, {}));
}

}  // namespace stowage
