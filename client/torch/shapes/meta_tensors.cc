#include "client/torch/shapes/meta_tensors.h"

#include <c10/core/Storage.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "client/torch/base/real_operations.h"
#include "client/torch/base/tensor_storage.h"

namespace stowage {
namespace {

void CheckOrdinary(const at::Tensor& tensor, c10::DeviceType device) {
  const bool number = tensor.is_cpu() && tensor.dim() == 0;
  TORCH_CHECK(tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_quantized() &&
                  !tensor.is_nested() && !tensor.is_complex(),
              "a tensor that is sparse, quantized, nested or complex");
  TORCH_CHECK(tensor.device().type() == device || number, "a tensor on ", tensor.device().str());
}

void CopyShape(const at::Tensor& from, c10::TensorImpl* to) {
  to->set_sizes_and_strides(from.sizes(), from.strides());
  to->set_storage_offset(from.storage_offset());
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) to->set_wrapped_number(true);
}

bool SameShape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

}  // namespace

const MetaTensors::Known* MetaTensors::OwnerOf(const at::Tensor& meta) const {
  for (const Known& known : known_) {
    if (StorageOf(known.meta) == StorageOf(meta)) return &known;
  }
  return nullptr;
}

at::Tensor MetaTensors::ToMeta(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  CheckOrdinary(tensor, device_.type());
  c10::Storage storage;
  for (const Known& known : known_) {
    if (known.tensor.is_same(tensor)) return known.meta;
    if (StorageOf(known.tensor) == StorageOf(tensor)) storage = known.meta.storage();
  }
  if (!storage) {
    storage = NewStorage(tensor.storage().nbytes(), c10::DataPtr(nullptr, c10::Device(c10::kMeta)));
  }
  at::Tensor meta = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta), tensor.dtype());
  CopyShape(tensor, meta.unsafeGetTensorImpl());
  known_.push_back({tensor, meta});
  return meta;
}

at::Tensor MetaTensors::FromMeta(const at::Tensor& meta) {
  // Numbers that an operation leaves on the host are real.
  if (!meta.defined() || meta.is_cpu()) return meta;
  CheckOrdinary(meta, c10::kMeta);
  const auto same = std::find_if(known_.begin(), known_.end(),
                                 [&](const Known& known) { return known.meta.is_same(meta); });
  if (same != known_.end()) {
    // An operation that changes its argument's shape in place.
    if (!SameShape(same->tensor, meta)) {
      CopyShape(meta, same->tensor.unsafeGetTensorImpl());
    }
    return same->tensor;
  }
  at::Tensor tensor;
  if (const Known* owner = OwnerOf(meta)) {
    tensor = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW,
                                                      c10::Storage(owner->tensor.storage()),
                                                      owner->tensor.key_set(), meta.dtype());
  } else {
    const size_t bytes = meta.storage().nbytes();
    tensor = at::detail::make_tensor<c10::TensorImpl>(
        NewStorage(bytes, memory_->Allocate(bytes)),
        c10::DispatchKeySet({c10::computeDispatchKey({}, {}, device_), kShapesKey}), meta.dtype());
  }
  CopyShape(meta, tensor.unsafeGetTensorImpl());
  known_.push_back({tensor, meta});
  return tensor;
}

c10::IValue MetaTensors::ToMeta(const c10::IValue& argument) {
  if (argument.isTensor()) return ToMeta(argument.toTensor());
  if (argument.isDevice()) {
    const c10::Device device = argument.toDevice();
    TORCH_CHECK(device.type() == device_.type(), "a tensor is sent to ", device.str());
    return c10::Device(c10::kMeta);
  }
  if (argument.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : argument.toTensorVector()) list.push_back(ToMeta(tensor));
    return list;
  }
  if (argument.isOptionalTensorList()) {
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& tensor : argument.toOptionalTensorVector()) {
      list.push_back(tensor ? c10::optional<at::Tensor>(ToMeta(*tensor)) : c10::nullopt);
    }
    return list;
  }
  return argument;
}

c10::IValue MetaTensors::FromMeta(const c10::IValue& result) {
  if (result.isTensor()) return FromMeta(result.toTensor());
  if (!result.isTensorList()) return result;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : result.toTensorVector()) list.push_back(FromMeta(tensor));
  return list;
}

}  // namespace stowage
