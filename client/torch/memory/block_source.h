// Who may serve a thread's allocations in place of the system, and sees what it does not serve:
// what TrackingAllocator and StepArena have to do with each other.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCE_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCE_H_

#include <cstddef>
#include <optional>

namespace stowage {

// Allocate and Allocated are called on the thread that entered the source, Free and done on any.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // A block of that many bytes, aligned for tensors; null if the thread shall get an ordinary one.
  virtual void* Allocate(size_t size) = 0;
  // The thread got an ordinary block.
  virtual void Allocated(const void* block, size_t size) = 0;
  // A block goes, whosever it is. Its size, if it was served here.
  virtual std::optional<size_t> Free(const void* block) = 0;
  // Whether it serves nothing any more and nothing of it is in use.
  virtual bool done() const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_BLOCK_SOURCE_H_
