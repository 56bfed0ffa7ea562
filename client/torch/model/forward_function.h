// What parts of a model compute: functions from tensors to tensors, made of whatever can be called so.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_FORWARD_FUNCTION_H_
#define STOWAGE_CLIENT_TORCH_MODEL_FORWARD_FUNCTION_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/torch/base/tensors.h"

namespace stowage {

// Whether its parameters are of any type: what it can be called with is known only by compiling it.
template <class Function, class = void>
struct IsGeneric : std::is_class<Function> {};
template <class Function>
struct IsGeneric<Function, std::void_t<decltype(&Function::operator())>> : std::false_type {};

// Whether it takes lists, and not tensors; a tensor converts to a list. A generic function takes tensors.
template <class Result, class Function, class... Lists>
using TakesLists = std::conjunction<std::negation<IsGeneric<Function>>,
                                    std::is_invocable_r<Result, Function&, const Lists&...>>;

// Empty, or made of a function of a list of tensors that returns one or several.
class NodeFunction {
 public:
  NodeFunction() = default;
  template <class Function, class = std::enable_if_t<std::conjunction_v<
                                std::negation<std::is_base_of<NodeFunction, Function>>,
                                std::is_invocable_r<Tensors, Function&, const Tensors&>>>>
  NodeFunction(Function function)  // NOLINT: implicit
      : run_(std::move(function)) {}

  Tensors operator()(const Tensors& inputs) const { return run_(inputs); }
  explicit operator bool() const { return run_ != nullptr; }

 private:
  std::function<Tensors(const Tensors&)> run_;
};

// The same, or made of a function of one tensor.
class StageFunction : public NodeFunction {
  template <class Function>
  using OfLists = TakesLists<Tensors, Function, Tensors>;

 public:
  StageFunction() = default;
  template <class Function,
            class = std::enable_if_t<std::conjunction_v<
                std::negation<std::is_base_of<NodeFunction, Function>>,
                std::disjunction<OfLists<Function>, std::is_invocable_r<Tensors, Function&,
                                                                        const at::Tensor&>>>>>
  StageFunction(Function function)  // NOLINT: implicit
      : NodeFunction(OfList(std::move(function))) {}

  using NodeFunction::operator();
  // Of a stage that makes one tensor of one.
  at::Tensor operator()(const at::Tensor& input) const { return (*this)(Tensors{input}).front(); }

 private:
  template <class Function>
  static NodeFunction OfList(Function function) {
    if constexpr (OfLists<Function>::value) {
      return function;
    } else {
      return [function = std::move(function)](const Tensors& inputs) mutable -> Tensors {
        return function(inputs.front());
      };
    }
  }
};

// From what the last stage makes and the targets to a scalar; made of a function of two lists, or of two tensors.
class LossFunction {
  template <class Function>
  using OfLists = TakesLists<at::Tensor, Function, Tensors, Tensors>;

 public:
  LossFunction() = default;
  template <class Function,
            class = std::enable_if_t<std::conjunction_v<
                std::negation<std::is_same<Function, LossFunction>>,
                std::disjunction<OfLists<Function>,
                                 std::is_invocable_r<at::Tensor, Function&, const at::Tensor&,
                                                     const at::Tensor&>>>>>
  LossFunction(Function function)  // NOLINT: implicit
      : run_(OfTensors(std::move(function))) {}

  at::Tensor operator()(const Tensors& outputs, const Tensors& targets) const {
    return run_(outputs, targets);
  }
  explicit operator bool() const { return run_ != nullptr; }

 private:
  using Run = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;

  template <class Function>
  static Run OfTensors(Function function) {
    if constexpr (OfLists<Function>::value) {
      return function;
    } else {
      return
          [function = std::move(function)](const Tensors& outputs, const Tensors& targets) mutable {
            return function(outputs.front(), targets.empty() ? at::Tensor() : targets.front());
          };
    }
  }

  Run run_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_FORWARD_FUNCTION_H_
