// Small TorchScript modules, traced and scripted, that together have what makes cutting them hard.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_MODULES_H_
#define STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_MODULES_H_

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace stowage {

struct ScriptSample {
  torch::jit::Module module;
  std::vector<at::Tensor> inputs;
  at::Tensor target;
};

// Traced in training mode:
// "residual": norms, ReLU and additions in place, a shortcut with ops of its own, two outputs.
// "branches": convolutions side by side that are concatenated, a tensor with four readers.
// "attention": tokens, weights tied three times, a projection that is split, dropout.
// Scripted:
// "scripted": an if by a constant, a check of shapes that raises, a loop, sizes read early and used
//   late, a mask, writes over slices, a list that grows.
// The same parameters and data at each call.
ScriptSample MakeScriptSample(const std::string& name);
const std::vector<std::string>& ScriptSampleNames();

// A module with parameter "w" [4, 4], buffer "seen" [4], a list of one tensor to train "some", and the
// forward of the source.
torch::jit::Module MakeScripted(const std::string& source);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_MODULES_H_
