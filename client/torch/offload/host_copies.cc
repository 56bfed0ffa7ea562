#include "client/torch/offload/host_copies.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "client/torch/base/torch_status.h"

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

void HostCopies::StartOffload(const Instruction& i, std::vector<StoragePtr> storages, bool lent) {
  HostCopy entry;
  entry.lent = lent;
  entry.storages = std::move(storages);
  const size_t bytes = BytesOf(entry.storages);
  entry.host = device_->host()->Allocate(bytes);
  std::vector<CopyPiece> pieces;
  size_t begin = 0;
  for (const StoragePtr& storage : entry.storages) {
    const auto* const from = static_cast<const std::byte*>(storage->data());
    entry.host.ForEachPiece(begin, storage->nbytes(),
                            [&](std::byte* to, size_t offset, size_t size) {
                              pieces.push_back({to, from + offset, size});
                            });
    begin += storage->nbytes();
  }
  entry.copy = device_->StartCopy(Stream::kToHost, pieces);
  offloaded_ += ToBytes(bytes);
  copies_[KeyOf(i)] = std::move(entry);
}

void HostCopies::WaitOffload(HostCopy* entry) {
  entry->copy->Wait();
  entry->copy.reset();
  for (const StoragePtr& storage : entry->storages) {
    storage->set_data_ptr(c10::DataPtr(nullptr, storage->device()));
  }
}

void HostCopies::StartPrefetch(HostCopy* entry) {
  std::vector<c10::DataPtr> arriving;
  std::vector<CopyPiece> pieces;
  size_t begin = 0;
  const c10::DeviceGuard guard(device_->device());
  c10::Allocator* const allocator = c10::GetAllocator(device_->device().type());
  for (const StoragePtr& storage : entry->storages) {
    arriving.push_back(allocator->allocate(storage->nbytes()));
    auto* const to = static_cast<std::byte*>(arriving.back().get());
    entry->host.ForEachPiece(begin, storage->nbytes(),
                             [&](std::byte* from, size_t offset, size_t size) {
                               pieces.push_back({to + offset, from, size});
                             });
    begin += storage->nbytes();
  }
  entry->copy = device_->StartCopy(Stream::kToDevice, pieces);
  entry->arriving = std::move(arriving);
  entry->coming = true;
  prefetched_ += ToBytes(BytesOf(entry->storages));
}

void HostCopies::WaitPrefetch(HostCopy* entry) {
  entry->copy->Wait();
  for (size_t k = 0; k < entry->storages.size(); ++k) {
    entry->storages[k]->set_data_ptr(std::move(entry->arriving[k]));
  }
}

void HostCopies::Continue(const Instruction& i) {
  const auto entry = copies_.find(KeyOf(i));
  switch (i.op) {
    case Op::kOffloadWait:
      return WaitOffload(&entry->second);
    case Op::kPrefetchStart:
      return StartPrefetch(&entry->second);
    case Op::kPrefetchWait:
      WaitPrefetch(&entry->second);
      copies_.erase(entry);
      return;
    default:
      throw std::logic_error("no instruction that continues a entry");
  }
}

bool HostCopies::IsAway(TensorKind tensor, int stage, int part) const {
  const auto entry = copies_.find({tensor, stage, part});
  return entry != copies_.end() && entry->second.away();
}

void HostCopies::Discard(TensorKind tensor, int stage) {
  auto entry = copies_.lower_bound({tensor, stage, 0});
  while (entry != copies_.end() && entry->first < Key(tensor, stage + 1, 0)) {
    entry = entry->second.lent ? std::next(entry) : copies_.erase(entry);
  }
}

void HostCopies::BringBack(HostCopy* entry) {
  // Also one whose way back failed begins again.
  entry->copy.reset();
  entry->arriving.clear();
  StartPrefetch(entry);
  WaitPrefetch(entry);
}

absl::Status HostCopies::ReturnLent() {
  // What was not lent may be the memory that is needed.
  for (auto entry = copies_.begin(); entry != copies_.end();) {
    entry = entry->second.lent ? std::next(entry) : copies_.erase(entry);
  }
  absl::Status status;
  for (auto& [key, entry] : copies_) {
    const bool wanted = std::any_of(entry.storages.begin(), entry.storages.end(),
                                    [](const StoragePtr& s) { return s.use_count() > 1; });
    if (!entry.away() || !wanted) continue;
    try {
      BringBack(&entry);
    } catch (...) {
      status = CurrentExceptionToStatus("an input that is on the host cannot come back and is lost",
                                        absl::StatusCode::kInternal);
    }
  }
  copies_.clear();
  return status;
}

}  // namespace stowage
