// Hooks for what autograd saves for the backward while a scope lives, of what this thread saves.
//
// No other thread sees a difference, whatever engine is installed, also that of an embedded Python. Hooks
// that Python has in force around a scope do not see what is saved in it unless it yields, as those around an inner
// pair of Python's own hooks do not; all else that this thread asks an engine for, the installed one does.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PACKING_SCOPE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PACKING_SCOPE_H_

#include <c10/core/Device.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

namespace stowage {

// Gives autograd the hooks of what this thread saves while an object of this class lives. Scopes nest: the innermost
// counts.
class PackingScope {
 public:
  PackingScope(const PackingScope&) = delete;
  PackingScope& operator=(const PackingScope&) = delete;

  // Called for every tensor that is saved. Null: autograd itself keeps it.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() = 0;
  // Whether hooks that Python has in force around the scope come before those.
  virtual bool Yields() const { return false; }

 protected:
  PackingScope();
  virtual ~PackingScope();

 private:
  PackingScope* outer_;
};

// While an object of this class lives, autograd keeps nothing of what this thread's forwards save. LibTorch chooses
// kernels by whether a graph is made: those of LSTM, attention and others round differently without one. So a
// forward that is not to save makes its graph, too, and saves into the void. A backward through what was saved
// meanwhile is a StageRuleError. Scopes nest: the innermost counts.
class DropSavedScope : private PackingScope {
 private:
  std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override;
};

// While an object of this class lives, autograd itself keeps what this thread's forwards save, whatever scopes are around.
// Hooks that Python has in force come before where it `yields`.
class OwnSavingScope : private PackingScope {
 public:
  explicit OwnSavingScope(bool yields) : yields_(yields) {}

 private:
  std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override { return nullptr; }
  bool Yields() const override { return yields_; }

  const bool yields_;
};

// While an object of this class lives, a backward that this thread runs ends when autograd's thread for the device has let go
// of it (WaitForBackwards). Else that thread holds gradients for moments, which a forward with a backward inside would find
// in its peak in one run and not in the next.
class InnerBackwards {
 public:
  explicit InnerBackwards(c10::Device device);
  ~InnerBackwards();
  InnerBackwards(const InnerBackwards&) = delete;
  InnerBackwards& operator=(const InnerBackwards&) = delete;

 private:
  const c10::Device device_;
  const c10::Device* outer_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PACKING_SCOPE_H_
