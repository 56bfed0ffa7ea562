// Where the axis of a figure has its numbers.
#ifndef STOWAGE_SOLVERS_DRAWING_AXIS_TICKS_H_
#define STOWAGE_SOLVERS_DRAWING_AXIS_TICKS_H_

#include <vector>

namespace stowage {

// Round numbers from 0 to the first that is not below `top` (> 0): about `count` of them, each 1, 2
// or 5 times a power of ten apart.
std::vector<double> Ticks(double top, int count);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_AXIS_TICKS_H_
