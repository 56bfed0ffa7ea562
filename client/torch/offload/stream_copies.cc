#include "client/torch/offload/stream_copies.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace stowage {
namespace {

c10::Stream ComputeOf(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream NewStreamOf(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

class StreamCopy final : public DeviceCopy {
 public:
  explicit StreamCopy(c10::Device device) : device_(device), done_(device.type()) {}
  ~StreamCopy() override {
    if (waited_) return;
    try {
      done_.block(ComputeOf(device_));
    } catch (...) {
      // Nobody is told of a copy that was given up.
    }
  }

  // What was put on the stream so far.
  void EndsOn(c10::Stream stream) { done_.record(stream); }
  void Wait() override {
    done_.block(ComputeOf(device_));
    waited_ = true;
  }

 private:
  const c10::Device device_;
  c10::Event done_;
  bool waited_ = false;
};

}  // namespace

StreamCopies::StreamCopies(c10::Device device, CopyPieceOn copy)
    : device_(device),
      copy_(std::move(copy)),
      to_host_(NewStreamOf(device)),
      to_device_(NewStreamOf(device)) {}

StreamCopies::~StreamCopies() {
  try {
    const c10::impl::VirtualGuardImpl device(device_.type());
    device.synchronizeStream(to_host_);
    device.synchronizeStream(to_device_);
  } catch (...) {
    // The process ends, or the device is lost.
  }
}

std::unique_ptr<DeviceCopy> StreamCopies::Start(Stream direction,
                                                const std::vector<CopyPiece>& pieces) {
  const c10::Stream stream = direction == Stream::kToHost ? to_host_ : to_device_;
  c10::Event ready(device_.type());
  ready.record(ComputeOf(device_));
  ready.block(stream);
  auto copy = std::make_unique<StreamCopy>(device_);
  try {
    for (const CopyPiece& piece : pieces) copy_(piece, direction, stream);
  } catch (...) {
    // Some pieces may be on their way: compute waits for them, where the copy is given up.
    copy->EndsOn(stream);
    throw;
  }
  copy->EndsOn(stream);
  return copy;
}

}  // namespace stowage
