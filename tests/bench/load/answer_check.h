// Whether an answer of ComputePlan is right, by the evaluator and the request alone.
#ifndef STOWAGE_TESTS_BENCH_LOAD_ANSWER_CHECK_H_
#define STOWAGE_TESTS_BENCH_LOAD_ANSWER_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// OK, or what is wrong with it: a plan that the evaluator refuses under the request's costs, or whose
// peak, budget or digest is not what it says.
absl::Status CheckAnswer(const v1::ComputePlanRequest& request, const std::string& reply);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_ANSWER_CHECK_H_
