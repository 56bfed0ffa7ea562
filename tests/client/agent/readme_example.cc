// The example of the README, as a program: readme_shows_example holds the block between the marks against it.
// README begins
#include <torch/torch.h>

#include "client/agent/agent.h"
#include "client/torch/memory/tracking_allocator.h"

int main() {
  stowage::TrackingAllocator::Install();  // first: memory is measured, not guessed
  torch::nn::Sequential head(torch::nn::Flatten(), torch::nn::Linear(64 * 32 * 32, 10));
  stowage::ChainModel model("my_network");
  model.AddStage("conv", "conv2d",
                 torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 3).padding(1)));
  model.AddFunction("relu", "relu", [](const at::Tensor& x) { return torch::relu(x); });
  model.AddStage("pool", "pool", torch::nn::AvgPool2d(1));
  model.AddStage({"head", "linear",
                  [head](const at::Tensor& x) mutable { return head->forward(x); },
                  head->parameters()});
  model.SetLoss("cross_entropy", [](const at::Tensor& y, const at::Tensor& target) {
    return torch::nn::functional::cross_entropy(y, target);
  });

  stowage::AgentOptions options;
  options.server.address = "";  // "host:7070" asks a stowaged; empty plans in this process
  stowage::Agent agent(&model, options);
  const at::Tensor input = torch::randn({8, 3, 32, 32}), target = torch::zeros({8}, torch::kLong);
  auto plan = agent.Plan(input, target, *stowage::ParseBudget("90%"));
  if (!plan.ok()) return 1;  // plan.status() says why
  // Loss, time and peak of the step; the gradients are in the parameters.
  auto step = agent.Step(input, target);
  return step.ok() && step->peak <= plan->plan.budget ? 0 : 1;
}
// README ends
