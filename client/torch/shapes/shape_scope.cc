#include "client/torch/shapes/shape_scope.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <utility>

#include "client/torch/base/real_operations.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/shapes/shape_tracer.h"

namespace stowage {
namespace {

// LibTorch hands this kind of note on to the threads that autograd has for devices, as it does with dispatch keys.
c10::DebugInfoKind NoteKind() { return c10::DebugInfoKind::INFERENCE_CONTEXT; }

struct ScopeNote final : c10::DebugInfoBase {
  explicit ScopeNote(ShapeTracer* of) : tracer(of) {}
  ShapeTracer* tracer;
};

// Null outside of scopes.
ShapeTracer* Current() {
  const auto* const note =
      dynamic_cast<const ScopeNote*>(c10::ThreadLocalDebugInfo::get(NoteKind()));
  return note == nullptr ? nullptr : note->tracer;
}

void RunInScope(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ShapeTracer* const current = Current();
  TORCH_CHECK(current != nullptr, op.schema().name(),
              " is given a tensor that was made when only shapes were looked at: a stage or node "
              "keeps tensors between calls, which it must not (planning by shapes can be switched "
              "off)");
  current->Run(op, stack);
}

// Never taken back: a tensor of a scope may outlive it.
absl::Status EnsureRegistered() {
  static const auto* const status = [] {
    try {
      auto* const library = new torch::Library(torch::Library::IMPL, "_", kShapesKey, __FILE__,
                                               static_cast<uint32_t>(__LINE__));
      library->fallback(torch::CppFunction::makeFromBoxedFunction<&RunInScope>());
      return new absl::Status();
    } catch (...) {
      return new absl::Status(CurrentExceptionToStatus("looking at shapes alone",
                                                       absl::StatusCode::kFailedPrecondition));
    }
  }();
  return *status;
}

}  // namespace

ShapeScope::ShapeScope(std::unique_ptr<ShapeTracer> tracer)
    : tracer_(std::move(tracer)),
      info_(NoteKind(), std::make_shared<ScopeNote>(tracer_.get())),
      include_(kShapesKey) {}

ShapeScope::~ShapeScope() = default;

absl::StatusOr<std::unique_ptr<ShapeScope>> ShapeScope::Begin(
    const MemoryMeter* real, const std::vector<at::Tensor>& buffers, const TracedDevice& on) {
  const absl::Status status = EnsureRegistered();
  if (!status.ok()) return status;
  if (Current() != nullptr)
    return absl::FailedPreconditionError("a scope of shapes within another");
  return std::unique_ptr<ShapeScope>(
      new ShapeScope(std::make_unique<ShapeTracer>(real, buffers, on)));
}

MemoryMeter* ShapeScope::meter() const { return tracer_->memory(); }

absl::Status ShapeScope::Check() const {
  if (tracer_->memory()->touched()) {
    return absl::FailedPreconditionError("a stage or node reads tensors by their pointers");
  }
  if (tracer_->memory()->blocks() > 0) {
    return absl::FailedPreconditionError("a stage or node keeps tensors between calls");
  }
  return absl::OkStatus();
}

}  // namespace stowage
