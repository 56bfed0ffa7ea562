#include "client/torch/base/rethrow_as_thrown.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <mutex>

namespace stowage {
namespace {

std::mutex rethrow_mutex;
int guards = 0;
bool flag_before = false;

}  // namespace

RethrowAsThrown::RethrowAsThrown() {
  const std::lock_guard<std::mutex> lock(rethrow_mutex);
  if (guards++ > 0) return;
  flag_before = FLAGS_torch_jit_enable_rethrow_caught_exception;
  FLAGS_torch_jit_enable_rethrow_caught_exception = true;
}

RethrowAsThrown::~RethrowAsThrown() {
  const std::lock_guard<std::mutex> lock(rethrow_mutex);
  if (--guards == 0) FLAGS_torch_jit_enable_rethrow_caught_exception = flag_before;
}

}  // namespace stowage
