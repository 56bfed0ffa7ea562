// Holds the bytes that solvers/zoo derives from shapes to those that the profiler measures.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/models/models.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/zoo/networks.h"
#include "tests/client/models/hollow_model.h"
#include "tests/client/models/written_resnet.h"

namespace stowage {
namespace {

Chain Measure(const ChainModel& model, const at::Tensor& input, const at::Tensor& target) {
  ProfileOptions options;
  options.bytes_only = true;
  options.warmup = 0;
  auto profile = ProfileChain(model, input, target, options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return std::get<Chain>(std::move(profile).value().problem);
}

Chain Describe(const Network& network) { return ChainOf(network, ModelledV100()).value(); }

NetworkOptions Images(const std::string& name, int64_t side, int64_t batch) {
  NetworkOptions options;
  options.name = name;
  options.image = side;
  options.batch = batch;
  options.classes = 10;
  return options;
}

Network Described(const std::string& name, int64_t side, int64_t batch) {
  return MakeNetwork(Images(name, side, batch)).value();
}

Network SmallDecoder(int64_t length) {
  DecoderOptions options;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.length = length;
  options.vocabulary = 50;
  options.batch = 3;
  return MakeDecoder(options).value();
}

void CopyTensors(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

bool HasOp(const Network& network, int l, const std::function<bool(const NetworkOp&)>& is) {
  const NetworkStage& stage = network.stages[static_cast<size_t>(l) - 1];
  const auto first = network.ops.begin();
  return std::any_of(first + static_cast<std::ptrdiff_t>(stage.first_op),
                     first + static_cast<std::ptrdiff_t>(stage.end_op), is);
}

bool Convolves(const Network& network, int l) {
  return HasOp(network, l, [](const NetworkOp& op) { return op.kind == OpKind::kConv2d; });
}

// Temporaries of kernels are described as 1.13 has them. From 2.x on a norm of images of one pixel has a
// workspace, and the backward of a block that pools beside its convolutions takes less.
bool HasOtherTemporaries([[maybe_unused]] const Network& network, [[maybe_unused]] int l) {
#if STOWAGE_TORCH_AT_LEAST(2, 0)
  const bool norms_pixels = HasOp(network, l, [](const NetworkOp& op) {
    return op.kind == OpKind::kBatchNorm && op.elements() == op.shape[0] * op.shape[1];
  });
  const bool pools =
      HasOp(network, l, [](const NetworkOp& op) { return op.kind == OpKind::kMaxPool; });
  return norms_pixels || (pools && Convolves(network, l));
#else
  return false;
#endif
}

void ExpectSameTensors(const Chain& measured, const Chain& described) {
  EXPECT_EQ(measured.activation(0), described.activation(0));
  EXPECT_EQ(measured.gradient(0), described.gradient(0));
  ASSERT_EQ(measured.length(), described.length());
  for (int l = 1; l <= measured.length() + 1; ++l) {
    const Stage& a = measured.stage(l);
    const Stage& b = described.stage(l);
    SCOPED_TRACE(b.name);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.op_kind, b.op_kind);
    EXPECT_EQ(a.output.value(), b.output.value());
    EXPECT_EQ(a.saved.value(), b.saved.value());
    EXPECT_TRUE(a.saved_tensors == b.saved_tensors);
    EXPECT_EQ(a.output_gradient.value(), b.output_gradient.value());
    EXPECT_EQ(a.random, b.random);
    EXPECT_EQ(a.stateful, b.stateful);
    EXPECT_EQ(a.must_keep, b.must_keep);
  }
}

void ExpectSameOverheads(const Stage& a, const Stage& b) {
  SCOPED_TRACE(b.name);
  EXPECT_EQ(a.forward_saving_overhead.value(), b.forward_saving_overhead.value());
  EXPECT_EQ(a.forward_overhead.value(), b.forward_overhead.value());
  EXPECT_EQ(a.backward_overhead.value(), b.backward_overhead.value());
}

// A convolution's workspace comes on top of what the shapes say.
void ExpectOverheadsOf(const Network& network, const Chain& measured, const Chain& described) {
  for (int l = 1; l <= measured.length() + 1; ++l) {
    const Stage& a = measured.stage(l);
    const Stage& b = described.stage(l);
    if (!Convolves(network, l)) {
      ExpectSameOverheads(a, b);
      continue;
    }
    SCOPED_TRACE(b.name);
    EXPECT_GE(a.forward_saving_overhead, b.forward_saving_overhead);
    EXPECT_GE(a.forward_overhead, b.forward_overhead);
    EXPECT_GE(a.backward_overhead, b.backward_overhead);
  }
}

// Without a convolution's workspace every byte of every stage follows from the shapes.
TEST(NetworkBytesTest, EveryByteButWorkspaceFollowsFromShapes) {
  const std::vector<Network> networks = {
      Described("resnet18", 40, 2),
      Described("resnet50", 64, 3),
      Described("resnet200", 33, 2),
      Described("densenet121", 40, 2),
      Described("densenet161", 64, 1),
      Described("vgg11", 64, 2),
      Described("densenet121_full_cat", 40, 2),
      Described("nasnet_a", 16, 2),
      Described("amoebanet_a", 16, 2),
      Described("darts_v2", 16, 2),
      Described("inception_v3", 80, 2),
      Described("inception_v3", 107, 1),
      SmallDecoder(16),
      SmallDecoder(5),
  };
  for (const Network& network : networks) {
    SCOPED_TRACE(network.name);
    const Chain measured = Measure(HollowModelOf(network), InputOf(network), TargetOf(network));
    const Chain described = Describe(network);
    ExpectSameTensors(measured, described);
    for (int l = 1; l <= measured.length() + 1; ++l) {
      if (HasOtherTemporaries(network, l)) continue;
      ExpectSameOverheads(measured.stage(l), described.stage(l));
    }
  }
}

TEST(NetworkBytesTest, RealConvolutionsSaveTheSame) {
  for (const char* name : {"resnet34", "densenet121", "inception_v3"}) {
    SCOPED_TRACE(name);
    const Network network = Described(name, /*side=*/80, /*batch=*/1);
    const Chain measured = Measure(ChainModelOf(network), InputOf(network), TargetOf(network));
    const Chain described = Describe(network);
    ExpectSameTensors(measured, described);
    ExpectOverheadsOf(network, measured, described);
  }
}

// So that the descriptions are tested and not only the rules.
TEST(NetworkBytesTest, ResNetsWrittenByHandSaveTheSame) {
  for (const char* name : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    const ChainModel model = WrittenResNet(name, /*classes=*/10);
    const Sample sample = MakeImageSample(/*batch=*/2, /*side=*/64, /*classes=*/10, 7).value();
    const Network network = Described(name, 64, 2);
    const Chain measured = Measure(model, sample.input, sample.target);
    const Chain described = Describe(network);
    ExpectSameTensors(measured, described);
    ExpectOverheadsOf(network, measured, described);
  }
}

TEST(NetworkModelTest, ResNetsWrittenByHandComputeTheSame) {
  for (const char* name : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    const ChainModel written = WrittenResNet(name, /*classes=*/10);
    const ChainModel described = ChainModelOf(Described(name, 64, 2));
    ASSERT_EQ(written.length(), described.length());
    const Sample sample = MakeImageSample(/*batch=*/2, /*side=*/64, /*classes=*/10, 7).value();
    const torch::NoGradGuard no_grad;
    at::Tensor x = sample.input;
    for (int l = 1; l <= written.length(); ++l) {
      CopyTensors(written.stage(l).parameters, described.stage(l).parameters);
      const at::Tensor y = written.stage(l).forward(x);
      EXPECT_TRUE(y.equal(described.stage(l).forward(x))) << described.Describe(l);
      x = y;
    }
    EXPECT_TRUE(written.loss()(x, sample.target).equal(described.loss()(x, sample.target)));
  }
}

}  // namespace
}  // namespace stowage
