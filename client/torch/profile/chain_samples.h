// What passes over a model measured, as a chain.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_SAMPLES_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_SAMPLES_H_

#include "absl/status/statusor.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/profile/profile_pass.h"
#include "client/torch/profile/profile_times.h"
#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

// At least one pass, with samples as RunProfilePass gives them. Bytes are those of every pass, overheads the
// largest, times, if wanted, the medians; flags and names are the model's, too.
// FAILED_PRECONDITION, naming the stage: bytes change from pass to pass; INVALID_ARGUMENT: the chain
// breaks a rule of Chain::Create. O(stages passes).
//
// `beside`: held for the whole step, and none of what a plan may move or drop, as side inputs. A chain has no such bytes of
// its own, but from a step's start to the backward of stage 1 it holds one stage's output gradient, or the loss's: so they
// are part of all of these, and count whatever an instruction does. With gradients of side inputs, which are counted from
// the beginning, predicted peaks are an upper bound.
absl::StatusOr<Chain> MakeChain(const ChainModel& model, Bytes input,
                                const Passes<StageSample>& passes, bool with_times,
                                Bytes beside = Bytes(0));

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_SAMPLES_H_
