// Small networks that together have what makes exact accounting and exact recompute hard.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_TEST_NETWORKS_H_
#define STOWAGE_TESTS_CLIENT_TORCH_TEST_NETWORKS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "client/torch/model/chain_model.h"
#include "solvers/model/units.h"
#include "tests/client/device/training_devices.h"

namespace stowage {

struct TestNetwork {
  ChainModel model;
  at::Tensor input;
  at::Tensor target;
};

// "plain_cnn": convolutions, pooling, a flatten stage that is a view of its input.
// "norm_cnn": batch norm, dropout, in-place ReLU, a residual stage.
// "mlp": integer input, embedding, batch norm, dropout, a frozen stage between trained ones.
// "frozen_prefix": the first stages have nothing to train.
// "own_tensors": stages that return views of a buffer and of a parameter.
// "moving_scale": a stage whose output depends on a buffer that it updates.
// "grad_kernels": stages that compute in another way without a graph, as kernels of LibTorch do: an LSTM, attention, one that
// says so itself.
// "transformer": encoder layers as LibTorch has them, and between blocks functions of autograd that hand on what they get.
// "early_ends": stages that go on after their last saved tensor: with matrix products, sums, in place, by views, random
// numbers and a buffer that they update.
// "tied": a convolution of several stages, twice in one of them.
// "resnet18": the reference network on 32x32 images.
// "norm_mlp": norm_cnn with fully connected layers for convolutions, whose workspaces differ between processors.
// What its stages take follows from shapes alone: for tests that plan within a share of what plain training
// takes. TestNetworkNames does not have it.
// The same parameters and data at each call; LibTorch's generator is seeded by it.
TestNetwork MakeTestNetwork(const std::string& name);
// The same there.
TestNetwork MakeTestNetwork(const std::string& name, const TrainingDevice& device);
const std::vector<std::string>& TestNetworkNames();

// Whether what steps of a test network, or test graph, allocate is the same on every processor: it has no convolutions.
// Not so under autocast.
bool AllocatesAlikeEverywhere(const std::string& name);

// What a step holds beside activations to sum up the gradients of tied parameters.
Bytes TiedSums(const ModelTensors& model);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_TEST_NETWORKS_H_
