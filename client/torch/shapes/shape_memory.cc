#include "client/torch/shapes/shape_memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace stowage {
namespace {

constexpr size_t kLeastRegion = size_t{1} << 30;

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t WholePages(size_t bytes) { return (bytes + PageSize() - 1) / PageSize() * PageSize(); }

}  // namespace

struct ShapeMemory::Block {
  std::shared_ptr<ShapeMemory> memory;
  int64_t bytes;
  int64_t rounded;
};

ShapeMemory::~ShapeMemory() {
  for (const Region& region : regions_) munmap(region.start, region.size);
}

// No two tensors share a page, and no address is used again: a page stays as it is until somebody
// touches it.
void* ShapeMemory::Place(size_t bytes) {
  const size_t size = WholePages(bytes);
  if (regions_.empty() || regions_.back().size - regions_.back().used < size) {
    const size_t whole = std::max(size, kLeastRegion);
    void* const start = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(start != MAP_FAILED, "the system has no address space for ", whole, " bytes");
    // Otherwise one touch would make many pages resident, which takes memory.
    madvise(start, whole, MADV_NOHUGEPAGE);
    regions_.push_back({static_cast<std::byte*>(start), whole, 0});
  }
  Region& region = regions_.back();
  void* const place = region.start + region.used;
  region.used += size;
  return place;
}

c10::DataPtr ShapeMemory::Allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, device_};
  void* const place = Place(bytes);
  const auto asked = static_cast<int64_t>(bytes);
  const int64_t unit = granularity_.value();
  auto* const block = new Block{shared_from_this(), asked, (asked + unit - 1) / unit * unit};
  bytes_ += block->bytes;
  block_bytes_ += block->rounded;
  ++blocks_;
  peak_ = std::max(peak_.load(), current().value());
  block_peak_ = std::max(block_peak_.load(), block_bytes().value());
  return {place, block, &Free, device_};
}

void ShapeMemory::Free(void* data) {
  const std::unique_ptr<Block> block(static_cast<Block*>(data));
  block->memory->bytes_ -= block->bytes;
  block->memory->block_bytes_ -= block->rounded;
  --block->memory->blocks_;
}

Bytes ShapeMemory::current() const { return real_->current() + Bytes(bytes_.load()); }

Bytes ShapeMemory::peak() const { return std::max(Bytes(peak_.load()), current()); }

void ShapeMemory::ResetPeak() {
  peak_ = current().value();
  block_peak_ = block_bytes().value();
}

Bytes ShapeMemory::block_bytes() const { return real_->block_bytes() + Bytes(block_bytes_.load()); }

Bytes ShapeMemory::peak_block_bytes() const {
  return std::max(Bytes(block_peak_.load()), block_bytes());
}

bool ShapeMemory::touched() const {
  std::vector<unsigned char> resident;
  for (const Region& region : regions_) {
    resident.assign(region.used / PageSize(), 0);
    if (mincore(region.start, region.used, resident.data()) != 0) return true;
    const auto is_resident = [](unsigned char page) { return (page & 1) != 0; };
    if (std::any_of(resident.begin(), resident.end(), is_resident)) return true;
  }
  return false;
}

}  // namespace stowage
