// What an operation makes, told from what its arguments look like: for operations of LibTorch that
// have no kernel for tensors without data ("meta"), the heavy ones among them.
//
// A rule gives the shapes, types and layouts that LibTorch's CPU kernel gives, which the tests hold it
// to. Autograd checks the shapes of gradients besides.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_RULES_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_RULES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace stowage {

// `arguments` are all of the schema's, their tensors on the meta device; so are the results, in the
// schema's order, undefined where it gives none. Throws what LibTorch throws.
using ShapeRule = std::vector<at::Tensor> (*)(const std::vector<c10::IValue>& arguments);

// `name` as "aten::convolution" or "aten::where.self". Null if there is no rule.
ShapeRule FindShapeRule(const std::string& name);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_RULES_H_
