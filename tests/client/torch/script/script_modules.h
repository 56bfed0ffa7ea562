// Small TorchScript modules, traced and scripted, that together have what makes cutting them hard.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPT_MODULES_H_
#define STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPT_MODULES_H_

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
// Scripted: ScriptedNames() of scripted_modules.h.
// The same parameters and data at each call.
ScriptSample MakeScriptSample(const std::string& name);
const std::vector<std::string>& ScriptSampleNames();

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPT_MODULES_H_
