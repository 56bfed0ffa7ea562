// A CUDA event, by which streams wait for one another. Only where LibTorch has CUDA.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_EVENT_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_EVENT_H_

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace stowage {

// Of the device that is current.
class CudaEvent {
 public:
  CudaEvent() { C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~CudaEvent() { C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void Record(cudaStream_t stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // What comes on the stream waits for it.
  cudaError_t Block(cudaStream_t stream) { return cudaStreamWaitEvent(stream, event_, 0); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_EVENT_H_
