#include "client/torch/host_trips.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "client/torch/torch_status.h"

namespace stowage {
namespace {

size_t BytesOf(const std::vector<StoragePtr>& storages) {
  size_t bytes = 0;
  for (const StoragePtr& storage : storages) bytes += storage->nbytes();
  return bytes;
}

Bytes ToBytes(size_t bytes) { return Bytes(static_cast<int64_t>(bytes)); }

}  // namespace

StoragePtr StoragePtrOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return {};
  return StoragePtr::reclaim_copy(tensor.storage().unsafeGetStorageImpl());
}

bool CanLend(const at::Tensor& tensor, const ExecutionDevice& device) {
  const StoragePtr storage = StoragePtrOf(tensor);
  if (!storage || tensor.device() != device.device()) return false;
  const c10::DeleterFnPtr freed_by = storage->data_ptr().get_deleter();
  return storage->nbytes() == tensor.nbytes() &&
         freed_by == c10::GetAllocator(tensor.device().type())->raw_deleter();
}

bool IsSoleHolder(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1;
}

void HostTrips::StartOffload(const Instruction& i, std::vector<StoragePtr> storages, bool lent) {
  Trip trip;
  trip.lent = lent;
  trip.storages = std::move(storages);
  const size_t bytes = BytesOf(trip.storages);
  trip.host = device_->host()->Allocate(bytes);
  std::vector<CopyPiece> pieces;
  std::byte* to = trip.host.data();
  for (const StoragePtr& storage : trip.storages) {
    if (storage->nbytes() == 0) continue;
    pieces.push_back({to, storage->data(), storage->nbytes()});
    to += storage->nbytes();
  }
  trip.copy = device_->StartCopy(Stream::kToHost, pieces);
  sent_ += ToBytes(bytes);
  trips_[KeyOf(i)] = std::move(trip);
}

void HostTrips::WaitOffload(Trip* trip) {
  trip->copy->Wait();
  trip->copy.reset();
  for (const StoragePtr& storage : trip->storages) {
    storage->set_data_ptr(c10::DataPtr(nullptr, storage->device()));
  }
}

void HostTrips::StartPrefetch(Trip* trip) {
  std::vector<c10::DataPtr> arriving;
  std::vector<CopyPiece> pieces;
  const std::byte* from = trip->host.data();
  const c10::DeviceGuard guard(device_->device());
  c10::Allocator* const allocator = c10::GetAllocator(device_->device().type());
  for (const StoragePtr& storage : trip->storages) {
    arriving.push_back(allocator->allocate(storage->nbytes()));
    if (storage->nbytes() == 0) continue;
    pieces.push_back({arriving.back().get(), from, storage->nbytes()});
    from += storage->nbytes();
  }
  trip->copy = device_->StartCopy(Stream::kToDevice, pieces);
  trip->arriving = std::move(arriving);
  trip->coming = true;
  fetched_ += ToBytes(BytesOf(trip->storages));
}

void HostTrips::WaitPrefetch(Trip* trip) {
  trip->copy->Wait();
  for (size_t k = 0; k < trip->storages.size(); ++k) {
    trip->storages[k]->set_data_ptr(std::move(trip->arriving[k]));
  }
}

void HostTrips::Continue(const Instruction& i) {
  const auto trip = trips_.find(KeyOf(i));
  switch (i.op) {
    case Op::kOffloadWait:
      return WaitOffload(&trip->second);
    case Op::kPrefetchStart:
      return StartPrefetch(&trip->second);
    case Op::kPrefetchWait:
      WaitPrefetch(&trip->second);
      trips_.erase(trip);
      return;
    default:
      throw std::logic_error("no instruction that continues a trip");
  }
}

bool HostTrips::IsAway(TensorKind tensor, int stage, int part) const {
  const auto trip = trips_.find({tensor, stage, part});
  return trip != trips_.end() && trip->second.away();
}

void HostTrips::Discard(TensorKind tensor, int stage) {
  auto trip = trips_.lower_bound({tensor, stage, 0});
  while (trip != trips_.end() && trip->first < Key(tensor, stage + 1, 0)) {
    trip = trip->second.lent ? std::next(trip) : trips_.erase(trip);
  }
}

void HostTrips::BringBack(Trip* trip) {
  // Also one whose way back failed begins again.
  trip->copy.reset();
  trip->arriving.clear();
  StartPrefetch(trip);
  WaitPrefetch(trip);
}

absl::Status HostTrips::ReturnLent() {
  // What was not lent may be the memory that is needed.
  for (auto trip = trips_.begin(); trip != trips_.end();) {
    trip = trip->second.lent ? std::next(trip) : trips_.erase(trip);
  }
  absl::Status status;
  for (auto& [key, trip] : trips_) {
    const bool wanted = std::any_of(trip.storages.begin(), trip.storages.end(),
                                    [](const StoragePtr& s) { return s.use_count() > 1; });
    if (!trip.away() || !wanted) continue;
    try {
      BringBack(&trip);
    } catch (...) {
      status = CurrentExceptionToStatus("an input that is on the host cannot come back and is lost",
                                        absl::StatusCode::kInternal);
    }
  }
  trips_.clear();
  return status;
}

}  // namespace stowage
