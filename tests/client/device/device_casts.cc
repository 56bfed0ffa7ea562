#include "tests/client/device/device_casts.h"

#include <torch/csrc/autograd/function.h>  // PyTorch 2.15: before whatever has an edge of a graph

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <cstdint>

namespace stowage {

#ifdef AT_FORALL_LOWER_PRECISION_FP
// LibTorch's macros add to a library `m`.
#define STOWAGE_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define STOWAGE_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define STOWAGE_FLOAT_UNLESS_ASKED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define STOWAGE_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

bool RegisterTestDeviceCasts() {
  static auto* const fallback =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__,
                         static_cast<uint32_t>(__LINE__));
  fallback->fallback(torch::CppFunction::makeFallthrough());
  static auto* const casts =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1,
                         __FILE__, static_cast<uint32_t>(__LINE__));
  using namespace at;  // the macros are for code within it
  torch::Library& m = *casts;
  AT_FORALL_LOWER_PRECISION_FP(STOWAGE_LOWER)
  AT_FORALL_FP32(STOWAGE_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(STOWAGE_FLOAT_UNLESS_ASKED)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(STOWAGE_WIDEST)
  return true;
}
#else
bool RegisterTestDeviceCasts() { return false; }
#endif

}  // namespace stowage
