// What a forward changes besides making its output: random state and buffers (running statistics).
// Saved here outside of LibTorch's allocator, so that saving it never shows in a measured peak.
//
// Functions throw what LibTorch throws. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_STATE_H_
#define STOWAGE_CLIENT_TORCH_MODEL_STATE_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace stowage {

// The state of LibTorch's default generators: the CPU's, and those of the CUDA GPUs that this process uses
// (LibTorch 2.1 on).
class RandomState {
 public:
  static RandomState Capture();
  void Restore() const;

  friend bool operator==(const RandomState& a, const RandomState& b);
  friend bool operator!=(const RandomState& a, const RandomState& b) { return !(a == b); }

 private:
  using Generator = at::CPUGeneratorImpl;

  at::mt19937 engine_;
  decltype(std::declval<Generator&>().next_float_normal_sample()) float_sample_;
  decltype(std::declval<Generator&>().next_double_normal_sample()) double_sample_;

  struct Gpu {
    c10::DeviceIndex index;
    uint64_t seed;
    uint64_t offset;
  };
  std::vector<Gpu> gpus_;
};

// The contents of a list of buffers.
class BufferState {
 public:
  static BufferState Capture(const std::vector<at::Tensor>& buffers);
  // Writes the contents back, past autograd's version counters: the values that a graph saved are
  // the same again.
  void Restore() const;

  friend bool operator==(const BufferState& a, const BufferState& b) {
    return a.bytes_ == b.bytes_;
  }
  friend bool operator!=(const BufferState& a, const BufferState& b) { return !(a == b); }

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<std::vector<char>> bytes_;
};

// Puts random state and buffers back to where they were at its construction, unless Dismiss is
// called first.
class StateGuard {
 public:
  explicit StateGuard(const std::vector<at::Tensor>& buffers)
      : random_(RandomState::Capture()), buffers_(BufferState::Capture(buffers)) {}
  ~StateGuard() {
    if (!armed_) return;
    random_.Restore();
    buffers_.Restore();
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

  void Dismiss() { armed_ = false; }

 private:
  RandomState random_;
  BufferState buffers_;
  bool armed_ = true;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_STATE_H_
