#include "solvers/plan/block_book.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {

void BlockBook::See(size_t tensor, bool taken, Bytes size, const BlockName& name) {
  size_t& block = block_[tensor];
  if (taken == (block != kNone) || size == Bytes(0)) return;
  if (!taken) {
    dropped_.push_back(block);
    block = kNone;
    return;
  }
  block = blocks_.lives.size();
  blocks_.lives.push_back({size, moment_, -1});
  blocks_.names.push_back(name);
  made_.push_back(block);
}

void BlockBook::Rename(size_t from, size_t to) {
  block_[to] = block_[from];
  block_[from] = kNone;
}

void BlockBook::EndStart() {
  for (const size_t block : made_) Open(block, 0);
  made_.clear();
}

absl::Status BlockBook::EndInstruction(Bytes running, Bytes held, int32_t stage) {
  Bytes made;
  for (const size_t block : made_) made += blocks_.lives[block].size;
  // What the op makes is there while it runs, unless the profile says that it takes less.
  const bool early = live_ + made <= running;
  for (const size_t block : made_) {
    if (early) Open(block, moment_);
  }
  const Bytes workspace = running - live_;
  if (workspace > Bytes(0)) {
    blocks_.lives.push_back({workspace, moment_, moment_ + 1});
    blocks_.names.push_back({BlockUse::kWorkspace, stage});
  }
  for (const size_t block : dropped_) Close(block, moment_ + 1);
  for (const size_t block : made_) {
    if (!early) Open(block, moment_ + 1);
  }
  made_.clear();
  dropped_.clear();
  moment_ += 2;
  if (workspace >= Bytes(0) && live_ == held) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("moment ", moment_ - 1, ": the blocks take ",
                                          live_.value(), " bytes, the referee says ",
                                          held.value()));
}

ScheduleBlocks BlockBook::Finish() {
  for (BlockLife& life : blocks_.lives) {
    if (life.end < 0) life.end = moment_;
  }
  return std::move(blocks_);
}

void BlockBook::Open(size_t block, int64_t moment) {
  blocks_.lives[block].begin = moment;
  live_ += blocks_.lives[block].size;
}

void BlockBook::Close(size_t block, int64_t moment) {
  blocks_.lives[block].end = moment;
  live_ -= blocks_.lives[block].size;
}

}  // namespace stowage
