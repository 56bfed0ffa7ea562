#include "client/torch/execute/backward_end.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "client/torch/base/autograd_node.h"
#include "client/torch/memory/memory_refusal.h"

namespace stowage {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

// Held by the graph task of a backward, which drops it uncalled where the backward fails.
class EndCall {
 public:
  explicit EndCall(std::function<void(bool)> ended) : ended_(std::move(ended)) {}
  ~EndCall() {
    if (!ended_) return;
    try {
      ended_(false);
    } catch (...) {
      // The caller gets the exception that made the backward fail.
    }
  }
  EndCall(const EndCall&) = delete;
  EndCall& operator=(const EndCall&) = delete;

  void Call() { std::exchange(ended_, {})(true); }

 private:
  std::function<void(bool)> ended_;
};

// Of a plain step; the graph holds it.
class PlainStepEnd {
 public:
  PlainStepEnd(const StepMeters& meters, Bytes input)
      : memory_(meters.memory), refusals_(memory_), meter_(meters, memory_, input) {}
  ~PlainStepEnd() {
    try {
      Tell(WhyNotEnded(absl::CancelledError("the graph went without a backward")));
    } catch (...) {
      // Whoever drops a graph wants to know nothing of it.
    }
  }
  PlainStepEnd(const PlainStepEnd&) = delete;
  PlainStepEnd& operator=(const PlainStepEnd&) = delete;

  void TellOf(OnStepEnd ended) { ended_ = std::move(ended); }

  void BackwardEnds(bool well) {
    watched_ = false;
    Tell(well ? absl::OkStatus() : WhyNotEnded(absl::AbortedError("the backward failed")));
  }

  // Of a backward that comes to the graph: whether nobody else has said so.
  bool BeginsWatch() { return !std::exchange(watched_, true); }

 private:
  absl::Status WhyNotEnded(absl::Status otherwise) const {
    const std::optional<MemoryRefusal> refusal = refusals_.Last();
    return refusal ? absl::ResourceExhaustedError(WordsOfRefusal(*refusal)) : otherwise;
  }

  void Tell(const absl::Status& status) {
    if (!ended_) return;
    const OnStepEnd ended = std::exchange(ended_, {});
    if (!status.ok()) return ended({status, {}});
    StepReport report;
    meter_.Stop();
    meter_.Finish(LossValue(), &report);
    ended({report, {}});
  }

  MemoryMeter* memory_;
  const RefusalWatch refusals_;
  StepMeter meter_;
  OnStepEnd ended_;
  bool watched_ = false;
};

// Before what a plain forward returned.
class EndWatch : public Node {
 public:
  EndWatch(std::shared_ptr<PlainStepEnd> end, const at::Tensor& output) : end_(std::move(end)) {
    add_next_edge(torch::autograd::impl::gradient_edge(output));
    add_input_metadata(output);
  }

  variable_list apply(variable_list&& gradients) override {
    if (end_->BeginsWatch()) {
      WhenBackwardEnds([end = end_](bool well) { end->BackwardEnds(well); });
    }
    return std::move(gradients);
  }

  std::string name() const override { return "StowagePlainStep"; }

 private:
  std::shared_ptr<PlainStepEnd> end_;
};

}  // namespace

void WhenBackwardEnds(std::function<void(bool)> ended) {
  torch::autograd::Engine::get_default_engine().queue_callback(
      [call = std::make_shared<EndCall>(std::move(ended))] { call->Call(); });
}

absl::StatusOr<std::vector<at::Tensor>> ForwardOfPlainStep(
    const StepMeters& meters, Bytes input,
    const std::function<absl::StatusOr<std::vector<at::Tensor>>()>& forward, OnStepEnd ended) {
  const auto end = std::make_shared<PlainStepEnd>(meters, input);
  absl::StatusOr<std::vector<at::Tensor>> outputs = forward();
  if (!outputs.ok()) return outputs;
  for (at::Tensor& output : *outputs) {
    if (!output.requires_grad()) continue;
    // Another tensor on the same memory: its graph is longer by one node.
    const at::Tensor own = output.variable_data();
    torch::autograd::impl::set_version_counter(own, torch::autograd::impl::version_counter(output));
    torch::autograd::impl::set_gradient_edge(
        own, torch::autograd::Edge(MakeNode<EndWatch>(end, output), 0));
    output = own;
  }
  end->TellOf(std::move(ended));
  return outputs;
}

}  // namespace stowage
