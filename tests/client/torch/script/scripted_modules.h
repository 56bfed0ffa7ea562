// Modules of TorchScript source, compiled when the tests run: what torch.jit.script makes of Python.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPTED_MODULES_H_
#define STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPTED_MODULES_H_

#include <string>
#include <vector>

#include "tests/client/torch/script/script_modules.h"

namespace stowage {

// "scripted": an if by a constant, a check of shapes that raises, a loop, sizes read early and used
//   late, a mask, writes over slices, a list that grows.
// "scripted_residual": blocks as modules with methods and a mode, a shortcut with ops of its own,
//   additions in place.
// "scripted_branches": branches in a list that a size makes longer, a gate of comparisons, an output
//   of which the loss takes the mean.
// "scripted_attention": heads by sizes of activations, masks made of sizes, a split, weights tied.
// The same parameters and data at each call.
ScriptSample MakeScriptedSample(const std::string& name);
const std::vector<std::string>& ScriptedNames();

// A module with parameter "w" [4, 4], buffer "seen" [4], a list of one tensor to train "some", and the
// forward of the source.
torch::jit::Module MakeScripted(const std::string& source);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_SCRIPT_SCRIPTED_MODULES_H_
