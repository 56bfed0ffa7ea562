#include "solvers/networks/network.h"

namespace stowage {

int64_t Elements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  return elements;
}

int64_t NetworkOp::elements() const { return Elements(shape); }

Bytes NetworkOp::parameter_bytes() const {
  int64_t elements = 0;
  for (const int64_t parameter : parameters) elements += parameter;
  return Bytes(elements * kFloatBytes);
}

}  // namespace stowage
