// When something runs that does not run on the compute stream. Internal to the referees.
#ifndef STOWAGE_SOLVERS_PLAN_STREAM_SPAN_H_
#define STOWAGE_SOLVERS_PLAN_STREAM_SPAN_H_

#include "solvers/model/units.h"

namespace stowage {

struct StreamSpan {
  Nanos start;
  Nanos end;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_STREAM_SPAN_H_
