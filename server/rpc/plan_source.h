// Where an answer came from, on the wire.
#ifndef STOWAGE_SERVER_RPC_PLAN_SOURCE_H_
#define STOWAGE_SERVER_RPC_PLAN_SOURCE_H_

#include "server/service/compute_plan.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

inline v1::PlanSource SourceToProto(AnswerSource source) {
  switch (source) {
    case AnswerSource::kCache:
      return v1::PLAN_SOURCE_CACHE;
    case AnswerSource::kSolved:
      return v1::PLAN_SOURCE_SOLVED;
    case AnswerSource::kShared:
      return v1::PLAN_SOURCE_SHARED;
  }
  return v1::PLAN_SOURCE_UNSPECIFIED;
}

// For the log.
inline const char* NameOf(AnswerSource source) {
  switch (source) {
    case AnswerSource::kCache:
      return "cache";
    case AnswerSource::kSolved:
      return "solved";
    case AnswerSource::kShared:
      return "shared";
  }
  return "unknown";
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_SOURCE_H_
