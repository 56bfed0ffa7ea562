#include "client/rpc/plan_connection.h"

namespace stowage {

const char* ToString(PlanSource source) {
  switch (source) {
    case PlanSource::kCache:
      return "cache";
    case PlanSource::kSolved:
      return "solved";
    case PlanSource::kShared:
      return "shared";
    case PlanSource::kLocal:
      return "local";
  }
  return "unknown";
}

}  // namespace stowage
