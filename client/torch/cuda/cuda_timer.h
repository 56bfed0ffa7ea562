// The clock of a CUDA GPU's compute. Only where LibTorch has CUDA (STOWAGE_TORCH_CUDA).
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_TIMER_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_TIMER_H_

#include <c10/core/Device.h>

#include <memory>

#include "client/torch/offload/stage_timer.h"

namespace stowage {

// Marks are events on the current stream of the calling thread, so the host runs ahead as in training;
// only Collect waits for the GPU. Resolution about half a microsecond.
std::unique_ptr<StageTimer> MakeCudaTimer(c10::Device device);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_TIMER_H_
