#include "solvers/offload/strategies.h"

namespace stowage {

const std::vector<const OffloadStrategy*>& AllOffloadStrategies() {
  static const auto* const kAll = new std::vector<const OffloadStrategy*>{
      &DynProgOffload(), &GreedyOffload(), &VdnnOffload(), &TflmsOffload(), &AutoSwapOffload()};
  return *kAll;
}

}  // namespace stowage
