// What one node of a plan made: its tensors, and who owns which of their bytes.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_HELD_OUTPUTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_HELD_OUTPUTS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/torch/offload/host_copies.h"
#include "client/torch/offload/shared_data.h"

namespace stowage {

// Tensors that share a storage are of one part. Homes are those of SharedData, for all parts alike. Throws StageRuleError
// where tensors that are made again lie otherwise in their storages, or others of them are undefined. Not thread-safe.
class HeldOutputs {
 public:
  // Takes the bytes of all parts, of tensors without graphs that are nobody else's.
  void Own(const std::vector<at::Tensor>& made, int home = 0);
  // The same where the bytes are held already.
  void Join(const std::vector<at::Tensor>& made);
  // Holds on to tensors of somebody else's. Those behind the first `parts` stay until Release.
  void Borrow(const std::vector<at::Tensor>& lent, size_t parts);
  // Tensors whose bytes `owner` has, all where it has those of its tensor number `at`.
  void LiveIn(const HeldOutputs& owner, int at, const std::vector<at::Tensor>& made);

  // Metadata, and the storage at which the bytes are; undefined where the node makes none.
  const at::Tensor& value(int index) const;
  // Which bytes of its owner's they are; -1 if there are none.
  int part(int index) const { return parts_[static_cast<size_t>(index)]; }
  // `of`, which lives in bytes that this object owns, for somebody who may hold it longer.
  at::Tensor Share(const at::Tensor& of, int part);

  bool IsHeld(int home = 0) const;
  void Free(int home = 0);
  void Rename(int from, int to);
  void Follow();
  // Of all parts.
  std::vector<StoragePtr> Homes(int home = 0) const;
  // Holds no bytes any more. Storages stay known.
  void Release();

 private:
  // Most nodes make one tensor.
  template <class T>
  using Few = absl::InlinedVector<T, 1>;

  void Put(const std::vector<at::Tensor>& made);
  static Few<int> PartsOf(const std::vector<at::Tensor>& made);
  // The first tensor of each part.
  Few<size_t> Firsts() const;

  Few<at::Tensor> values_;
  Few<int> parts_;  // by tensor
  Few<SharedData> data_;
  std::vector<SharedData> beside_;  // what was lent to stay
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_HELD_OUTPUTS_H_
