// A ResNet-50 within 60% of what plain training takes, planned with the installed library.
#include <iostream>

#include "solvers/planner.h"
#include "solvers/schedule/text.h"
#include "solvers/zoo/networks.h"

int main() {
  const auto chain = stowage::NetworkChain({"resnet50", 224, 8}, stowage::ModelledV100());
  if (!chain.ok()) return 1;
  const stowage::Problem problem = *chain;
  const stowage::PlanOptions options;
  const auto budget = stowage::ResolveBudget(problem, *stowage::ParseBudget("60%"), options);
  if (!budget.ok()) return 1;
  const auto plan = stowage::MakePlan(problem, *budget, options);
  if (!plan.ok()) {
    std::cerr << plan.status() << "\n";
    return 1;
  }
  std::cout << stowage::PlanText(*plan);
  return plan->prediction.peak <= *budget && plan->prediction.recomputed_forwards > 0 ? 0 : 1;
}
