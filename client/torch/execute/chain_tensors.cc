#include "client/torch/execute/chain_tensors.h"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/execute/movable_parts.h"

namespace stowage {
namespace {

// The homes of an activation's bytes.
constexpr int kPlain = 0;
constexpr int kSaved = 1;

// A smaller batch saves less.
void CheckParts(const std::vector<StoragePtr>& parts, const std::vector<Bytes>& listed) {
  if (parts.size() != listed.size()) {
    throw ImmovableError(absl::StrCat("its graph saves ", parts.size(),
                                      " tensors of its own, the profile lists ", listed.size()));
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    const Bytes bytes(static_cast<int64_t>(parts[k]->nbytes()));
    if (bytes <= listed[k]) continue;
    throw ImmovableError(absl::StrCat("saved tensor ", k + 1, " has ", bytes.value(),
                                      " bytes, in the profile ", listed[k].value()));
  }
}

}  // namespace

ChainTensors::ChainTensors(const Chain* chain, const std::vector<bool>* moves_parts,
                           ExecutionDevice* device)
    : chain_(*chain),
      moves_parts_(*moves_parts),
      copies_(device),
      stages_(static_cast<size_t>(chain->length()) + 2) {}

void ChainTensors::PutSource(int l, const std::vector<at::Tensor>& tensors) {
  stage(l).made.Borrow(tensors, 1);
}

void ChainTensors::PutOutputs(int l, const std::vector<at::Tensor>& outputs, bool saves) {
  stage(l).made.Own(outputs, saves ? kSaved : kPlain);
}

void ChainTensors::PutExtras(int l, std::vector<StoragePtr> extras) {
  if (moves_parts_[static_cast<size_t>(l)]) CheckParts(extras, chain_.stage(l).saved_tensors);
  stage(l).extras = std::move(extras);
}

// No-op if it is not held plain, or on the host.
void ChainTensors::DropPlain(int l) {
  if (copies_.IsAway(TensorKind::kActivation, l)) return;
  stage(l).made.Free(kPlain);
}

void ChainTensors::DropSaved(int l) {
  stage(l).extras.clear();
  stage(l).made.Free(kSaved);
}

void ChainTensors::FinishBackward(int l) {
  DropSaved(l);
  DropPlain(l - 1);
}

void ChainTensors::Discard(TensorKind tensor, int l) {
  copies_.Discard(tensor, l);
  if (tensor == TensorKind::kSaved) return DropSaved(l);
  stage(l).made.Free(kPlain);
}

void ChainTensors::StartOffload(const Instruction& i) {
  const StageState& moved = stage(i.stage);
  if (i.tensor == TensorKind::kActivation) {
    return copies_.StartOffload(i, moved.made.Homes(kPlain), /*lent=*/i.stage == 0);
  }
  const std::vector<StoragePtr> rest = moved.made.Homes(kSaved);  // after the last saved tensor
  if (i.part > moved.extras.size()) return copies_.StartOffload(i, rest);
  if (i.part > 0) return copies_.StartOffload(i, {moved.extras[static_cast<size_t>(i.part) - 1]});
  std::vector<StoragePtr> all = moved.extras;
  all.insert(all.end(), rest.begin(), rest.end());
  copies_.StartOffload(i, std::move(all));
}

void ChainTensors::Run(const Instruction& i) {
  const int l = i.stage;
  switch (i.op) {
    case Op::kDiscard:
      return Discard(i.tensor, l);
    case Op::kDropSavedKeepOutput:
      copies_.Discard(TensorKind::kSaved, l);
      stage(l).extras.clear();
      return stage(l).made.Rename(kSaved, kPlain);
    case Op::kOffloadStart:
      return StartOffload(i);
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      copies_.Continue(i);
      return stage(l).made.Follow();
    default:
      throw std::logic_error("forwards and backwards are not for those who hold tensors");
  }
}

// Storages stay known: they are those of a graph that the caller may go through again.
absl::Status ChainTensors::Release() {
  for (StageState& held : stages_) {
    held.extras.clear();
    held.made.Release();
  }
  return copies_.ReturnLent();
}

}  // namespace stowage
