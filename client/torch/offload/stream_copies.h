// Copies of a device with streams, each direction on a stream of its own: they wait for an event of compute, and compute for
// theirs, the host for neither.
//
// Compute is the current stream of the calling thread. Both ends of a copy are allocated and freed in the order of compute,
// so that no stream has to be noted with the allocator. Thread-safety as ExecutionDevice.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_STREAM_COPIES_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_STREAM_COPIES_H_

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <vector>

#include "client/torch/offload/execution_device.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class StreamCopies {
 public:
  // Puts the copy of a piece on the stream. Throws what LibTorch throws.
  using CopyPieceOn =
      std::function<void(const CopyPiece& piece, Stream direction, c10::Stream stream)>;

  StreamCopies(c10::Device device, CopyPieceOn copy);
  // Waits for what is on its streams: copies that were given up may still write.
  ~StreamCopies();
  StreamCopies(const StreamCopies&) = delete;
  StreamCopies& operator=(const StreamCopies&) = delete;

  // Both directions are on one stream from now on, where the link is half duplex.
  void ShareOneStream() { to_device_ = to_host_; }

  // As ExecutionDevice::StartCopy.
  std::unique_ptr<DeviceCopy> Start(Stream direction, const std::vector<CopyPiece>& pieces);

 private:
  const c10::Device device_;
  const CopyPieceOn copy_;
  const c10::Stream to_host_;
  c10::Stream to_device_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_STREAM_COPIES_H_
