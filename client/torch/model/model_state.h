// What a forward changes besides making its output: random state and buffers (running statistics).
// Saved outside of the memory that a device's meter counts, so that saving it never shows in a measured peak; what a GPU
// holds is copied to page-locked memory, and nobody waits for that.
//
// Functions throw what LibTorch throws. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_MODEL_STATE_H_
#define STOWAGE_CLIENT_TORCH_MODEL_MODEL_STATE_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stowage {

// The state of LibTorch's default generators: the CPU's and that of one other device.
class RandomState {
 public:
  RandomState() = default;
  static RandomState Capture(c10::Device device = c10::kCPU);
  // Before 2.1, LibTorch does not know the generators of devices that are not its own. For the life of the process.
  static void UseGenerator(at::Generator generator);
  void Restore() const;

  friend bool operator==(const RandomState& a, const RandomState& b);
  friend bool operator!=(const RandomState& a, const RandomState& b) { return !(a == b); }

 private:
  using Generator = at::CPUGeneratorImpl;

  // One made without a state would draw it from a seed.
  explicit RandomState(const at::mt19937& engine) : engine_(engine) {}

  at::mt19937 engine_;
  decltype(std::declval<Generator&>().next_float_normal_sample()) float_sample_;
  decltype(std::declval<Generator&>().next_double_normal_sample()) double_sample_;

  // Of the other device.
  at::Generator other_;
  std::array<uint64_t, 2> numbers_{};
};

// The contents of a list of buffers, kept on the host. Copied by compute where it can (ComputeCopiesOf), and else by copy_.
class BufferState {
 public:
  static BufferState Capture(const std::vector<at::Tensor>& buffers);
  // Writes the contents back, past autograd's version counters: the values that a graph saved are
  // the same again.
  void Restore() const;

  // Waits for devices that buffers are on.
  friend bool operator==(const BufferState& a, const BufferState& b);
  friend bool operator!=(const BufferState& a, const BufferState& b) { return !(a == b); }

 private:
  struct Kept {
    at::Tensor buffer;
    at::Tensor copy;  // on the host, contiguous; undefined where the bytes are below
    size_t begin = 0;
    size_t bytes = 0;
    bool in_host_block = false;
  };

  const void* DataOf(const Kept& kept) const;
  // Between that block and the buffers that are kept there.
  void CopyHostBlock(bool to_buffers) const;

  std::vector<Kept> kept_;
  std::vector<char> bytes_;  // of buffers that are contiguous on the host
  at::Tensor host_block_;    // of those that compute copies, which all are on one device
};

// Puts random state and buffers back to where they were at its construction, unless Dismiss is
// called first.
class StateGuard {
 public:
  explicit StateGuard(const std::vector<at::Tensor>& buffers, c10::Device device = c10::kCPU)
      : random_(RandomState::Capture(device)), buffers_(BufferState::Capture(buffers)) {}
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

#endif  // STOWAGE_CLIENT_TORCH_MODEL_MODEL_STATE_H_
