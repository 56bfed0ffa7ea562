#include "client/torch/offload/simulated_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "client/torch/base/torch_status.h"
#include "client/torch/memory/tracking_allocator.h"

namespace stowage {
namespace {

// More comes as it is needed.
constexpr Bytes kAtOnce(int64_t{16} << 20);

HostPool::Source SystemMemory() {
  return {[](size_t bytes) { return std::aligned_alloc(64, bytes); },
          [](void* data) { std::free(data); }};
}

class SimulatedCopy final : public DeviceCopy {
 public:
  explicit SimulatedCopy(std::unique_ptr<CopyChannel::Ticket> ticket)
      : ticket_(std::move(ticket)) {}

  void Wait() override { ticket_->Wait(); }

 private:
  std::unique_ptr<CopyChannel::Ticket> ticket_;
};

}  // namespace

SimulatedDevice::SimulatedDevice(const TransferModel& link, MemoryMeter* meter)
    : link_(link),
      meter_(meter),
      host_(link.host_memory, std::min(link.host_memory, kAtOnce), SystemMemory()) {
  if (link.full_duplex) to_device_ = std::make_unique<CopyChannel>();
}

absl::StatusOr<std::unique_ptr<SimulatedDevice>> SimulatedDevice::Create(
    const TransferModel& link) {
  absl::Status status = ValidateTransferModel(link);
  if (!status.ok()) return status;
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(nullptr);
  if (!meter.ok()) return meter.status();
  try {
    return std::unique_ptr<SimulatedDevice>(new SimulatedDevice(link, *meter));
  } catch (const HostMemoryError& error) {
    return absl::ResourceExhaustedError(error.what());
  }
}

std::unique_ptr<DeviceCopy> SimulatedDevice::StartCopy(Stream direction,
                                                       const std::vector<CopyPiece>& pieces) {
  const bool to_host = direction == Stream::kToHost;
  Bytes bytes;
  for (const CopyPiece& piece : pieces) bytes += Bytes(static_cast<int64_t>(piece.bytes));
  const Nanos time = CopyTime(to_host ? link_.to_host : link_.to_device, bytes);
  const bool fails = copies_until_failure_ == 0;
  if (copies_until_failure_ >= 0) --copies_until_failure_;
  CopyChannel* const channel = to_host || !to_device_ ? &channel_ : to_device_.get();
  return std::make_unique<SimulatedCopy>(channel->Start(time, [pieces, fails] {
    if (fails) throw std::runtime_error("the simulated copy failed");
    for (const CopyPiece& piece : pieces) {
      std::memcpy(piece.destination, piece.source, piece.bytes);
    }
  }));
}

int SimulatedDevice::running() const {
  return channel_.running() + (to_device_ ? to_device_->running() : 0);
}

}  // namespace stowage
