#include "solvers/model/problem.h"

namespace stowage {

Nanos IdealTime(const Problem& problem) {
  return std::visit([](const auto& kind) { return kind.ideal_time(); }, problem);
}

}  // namespace stowage
