#include "tests/client/torch/training_outcome.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"

namespace stowage {

Outcome Outcome::Of(const ModelTensors& model, double loss, c10::Device device) {
  return {loss, GradientDigest(model), BufferDigest(model), ParameterDigest(model),
          RandomState::Capture(device)};
}

void ExpectEqual(const Outcome& plain, const Outcome& planned) {
  EXPECT_EQ(plain.loss, planned.loss);
  EXPECT_EQ(plain.gradients.ToHex(), planned.gradients.ToHex());
  EXPECT_EQ(plain.buffers.ToHex(), planned.buffers.ToHex());
  EXPECT_EQ(plain.parameters.ToHex(), planned.parameters.ToHex());
  EXPECT_TRUE(plain.random == planned.random);
}

void ExpectGradients(const ModelTensors& model) {
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const at::Tensor& parameter = model.parameters()[i];
    if (!parameter.requires_grad()) continue;
    ASSERT_TRUE(parameter.grad().defined()) << "parameter " << i;
    EXPECT_TRUE(parameter.grad().ne(0).any().item<bool>()) << "parameter " << i;
  }
}

Rewinder::Rewinder(const ModelTensors& model, c10::Device device)
    : model_(model),
      buffers_(BufferState::Capture(model.buffers())),
      random_(RandomState::Capture(device)) {}

void Rewinder::Rewind() const {
  buffers_.Restore();
  random_.Restore();
  model_.ZeroGradients();
}

Chain ChainWithTimes(const ChainModel& model, const at::Tensor& input, const at::Tensor& target,
                     ExecutionDevice* device) {
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device;
  auto profile = ProfileChain(model, input, target, options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  ChainSpec spec = std::get<Chain>(profile.value().problem).spec();
  int64_t i = 0;
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(1000 + 370 * (++i % 4));
    stage.backward_time = Nanos(2000 + 510 * (i % 3));
    if (stage.stops()) stage.recompute_saving_time = Nanos(stage.forward_time.value() / 2);
  }
  return Chain::Create(std::move(spec)).value();
}

}  // namespace stowage
