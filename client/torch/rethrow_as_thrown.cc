#include "client/torch/rethrow_as_thrown.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <mutex>

namespace stowage {
namespace {

std::mutex mutex;
int count = 0;
bool before = false;

}  // namespace

RethrowAsThrown::RethrowAsThrown() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (count++ > 0) return;
  before = FLAGS_torch_jit_enable_rethrow_caught_exception;
  FLAGS_torch_jit_enable_rethrow_caught_exception = true;
}

RethrowAsThrown::~RethrowAsThrown() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (--count == 0) FLAGS_torch_jit_enable_rethrow_caught_exception = before;
}

}  // namespace stowage
