#include "client/torch/shapes/shape_tracer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/function_schema.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "client/torch/shapes/cuda_shape_rules.h"
#include "client/torch/shapes/meta_tensors.h"

namespace stowage {
namespace {

using Arguments = std::vector<c10::IValue>;

// Below autograd and autocast, and not in a scope.
c10::impl::LocalDispatchKeySet BelowAutograd() {
  c10::impl::PODLocalDispatchKeySet keys{};
  keys.set_included(c10::default_included_set);
  keys.set_excluded(c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                    c10::autocast_dispatch_keyset);
  return keys;
}

std::string NameOf(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

std::vector<at::Tensor> TensorsIn(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    tensors = value.toTensorVector();
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector()) {
      if (tensor) tensors.push_back(*tensor);
    }
  }
  const auto undefined = [](const at::Tensor& tensor) { return !tensor.defined(); };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), undefined), tensors.end());
  return tensors;
}

bool Writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Such as relu_ and copy_: its first argument comes back as it was, but for its values.
bool IsInPlace(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  return schema.name().back() == '_' && schema.returns().size() == 1 &&
         !schema.arguments().empty() && Writes(schema.arguments()[0]) &&
         schema.returns()[0].alias_info() != nullptr && !op.hasTag(at::Tag::inplace_view);
}

bool ReplacesMemory(const std::string& name) {
  return name == "aten::set_" || name == "aten::resize_" || name == "aten::resize_as_";
}

// Draws whenever there is an element to draw for.
bool Draws(const std::string& name, const Arguments& arguments) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::_fused_dropout", "aten::bernoulli", "aten::bernoulli_", "aten::exponential_",
      "aten::normal_",        "aten::random_",   "aten::rand_like",  "aten::randint_like",
      "aten::randn_like",     "aten::uniform_"};
  if (name != "aten::native_dropout") return names->count(name) > 0;
  const double share = arguments[1].toDouble();
  return share > 0 && share < 1;  // of none, of all: some kernels do, some do not
}

bool MayDraw(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  const auto is_generator = [](const c10::Argument& argument) {
    return argument.name() == "generator";
  };
  return op.hasTag(at::Tag::nondeterministic_seeded) ||
         std::any_of(arguments.begin(), arguments.end(), is_generator);
}

// It draws for its dropout alone, and is asked for none.
bool DropsNothing(const c10::OperatorHandle& op, const Arguments& arguments) {
  if (op.schema().name() == "aten::native_dropout") {
    return arguments[2].isBool() && !arguments[2].toBool();  // not in training
  }
  const auto dropout = op.schema().argumentIndexWithName("dropout_p");
  return dropout && arguments[static_cast<size_t>(*dropout)].toDouble() == 0;
}

// Whether the generator that everybody uses is asked.
bool AsksForNumbers(const c10::OperatorHandle& op, const Arguments& arguments, c10::Device device) {
  const std::string& name = op.schema().name();
  const bool draws = Draws(name, arguments);
  if (DropsNothing(op, arguments) || (!draws && !MayDraw(op))) return false;
  TORCH_CHECK(draws, NameOf(op), " may draw random numbers or not");
  for (const c10::IValue& argument : arguments) {
    if (!argument.isGenerator()) continue;
    TORCH_CHECK(device.is_cpu(), NameOf(op), " is given a generator");
    if (argument.toGenerator() != at::detail::getDefaultCPUGenerator()) return false;
  }
  return arguments[0].toTensor().numel() > 0;
}

void DrawOnHost() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  auto* const impl = at::check_generator<at::CPUGeneratorImpl>(generator);
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  impl->random();
}

[[noreturn]] void RefuseUnknown(const std::string& name) {
  C10_THROW_ERROR(Error, name + " has no known shape without data");
}

[[noreturn]] void RefuseAllButCpu(const std::string& name, c10::Device device) {
  C10_THROW_ERROR(Error, name + " makes what shapes tell of the CPU alone, not of " +
                             c10::DeviceTypeName(device.type(), /*lower_case=*/true));
}

// Asking beforehand whether it has a kernel would not do: from 2.x on each has one, which throws, and what
// an operation is composed of may have none.
void CallOnMeta(const c10::OperatorHandle& op, const std::string& name, const TracedDevice& on,
                torch::jit::Stack* stack) {
  if (!on.has_cpu_kernels && IsComposedOnMeta(name)) RefuseAllButCpu(name, on.device);
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    if (on.has_cpu_kernels || FindShapeRule(name) == nullptr) RefuseUnknown(name);
    RefuseAllButCpu(name, on.device);
  }
}

// Told by the rules for the device's kernels, or else by the meta device. The arguments at the stack are all of it, and give
// way to the results.
void MakeOnMeta(const c10::OperatorHandle& op, const std::string& name, const TracedDevice& on,
                Arguments* stack) {
  if (on.has_cpu_kernels) {
    if (const ShapeRule rule = FindShapeRule(name)) {
      const std::vector<at::Tensor> made = rule(*stack);
      stack->assign(made.begin(), made.end());
      return;
    }
  } else if (on.cuda_kernels) {
    if (auto made = MakeAsCuda(name, *stack, *on.cuda_kernels)) {
      *stack = *std::move(made);
      return;
    }
  }
  CallOnMeta(op, name, on, stack);
}

// Another number than the first element is now.
void ChangeOnHost(const at::Tensor& buffer) {
  if (buffer.numel() == 0) return;
  auto* const bytes = static_cast<unsigned char*>(buffer.data_ptr());
  for (size_t i = 0; i < buffer.itemsize() && ++bytes[i] == 0; ++i) {
  }
}

}  // namespace

ShapeTracer::ShapeTracer(const MemoryMeter* real, const std::vector<at::Tensor>& buffers,
                         const TracedDevice& on)
    : on_(on), memory_(std::make_shared<ShapeMemory>(real, on)) {
  for (const at::Tensor& buffer : buffers) {
    buffers_.insert(buffer.storage().unsafeGetStorageImpl());
  }
}

bool ShapeTracer::IsConstant(const at::Tensor& tensor) const {
  if (!tensor.has_storage()) return false;
  const auto known = constants_.find(tensor.storage().unsafeGetStorageImpl());
  return known != constants_.end() && !known->second.expired();
}

bool ShapeTracer::AreConstant(const Arguments& arguments) const {
  for (const c10::IValue& argument : arguments) {
    for (const at::Tensor& tensor : TensorsIn(argument)) {
      if (!IsConstant(tensor)) return false;
    }
  }
  return true;
}

void ShapeTracer::NoteWrite(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return;
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  // It should hold what depends on data now.
  constants_.erase(storage);
  if (buffers_.count(storage) == 0) return;
  on_.device.is_cpu() ? ChangeOnHost(tensor) : ChangeOnDevice(tensor);
}

void ShapeTracer::DrawOnDevice() const {
  const c10::impl::ForceDispatchKeyGuard keys(BelowAutograd());
  at::empty({1}, at::TensorOptions(on_.device)).uniform_();
}

void ShapeTracer::ChangeOnDevice(const at::Tensor& buffer) const {
  if (buffer.numel() == 0) return;
  const c10::impl::ForceDispatchKeyGuard keys(BelowAutograd());
  at::Tensor first = at::empty({0}, at::TensorOptions(on_.device).dtype(at::kByte));
  first.set_(buffer.storage(), buffer.storage_offset() * static_cast<int64_t>(buffer.itemsize()),
             {1}, {1});
  first.add_(1);
}

void ShapeTracer::NoteWrites(const c10::OperatorHandle& op, const Arguments& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!Writes(schema.arguments()[i])) continue;
    for (const at::Tensor& tensor : TensorsIn(arguments[i])) NoteWrite(tensor);
  }
  // Its schema keeps this secret: statistics (3 and 4) in training (5), with a momentum (6).
  if (schema.name() != "aten::native_batch_norm" && schema.name() != "aten::cudnn_batch_norm") {
    return;
  }
  if (!arguments[5].toBool() || arguments[6].toDouble() == 0) return;
  for (const size_t statistics : {3, 4}) {
    for (const at::Tensor& tensor : TensorsIn(arguments[statistics])) NoteWrite(tensor);
  }
}

ShapeTracer::Results ShapeTracer::RunForReal(const c10::OperatorHandle& op, Arguments arguments) {
  const c10::impl::ForceDispatchKeyGuard keys(BelowAutograd());
  op.callBoxed(&arguments);
  for (const c10::IValue& result : arguments) {
    for (const at::Tensor& tensor : TensorsIn(result)) {
      if (!tensor.has_storage()) continue;
      c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
      constants_.erase(storage);
      constants_.emplace(storage, tensor.storage().getWeakStorageImpl());
    }
  }
  return arguments;
}

ShapeTracer::Results ShapeTracer::RunForShapes(const c10::OperatorHandle& op,
                                               const Arguments& arguments) {
  const std::string name = NameOf(op);
  if (ReplacesMemory(op.schema().name())) RefuseUnknown(name);
  const c10::impl::ForceDispatchKeyGuard keys(BelowAutograd());
  MetaTensors meta_tensors(memory_.get(), on_.device);
  Arguments stack;
  for (const c10::IValue& argument : arguments) stack.push_back(meta_tensors.ToMeta(argument));
  MakeOnMeta(op, name, on_, &stack);
  for (c10::IValue& result : stack) result = meta_tensors.FromMeta(result);
  return stack;
}

void ShapeTracer::Run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Arguments arguments(std::make_move_iterator(stack->end() - static_cast<std::ptrdiff_t>(
                                                                 op.schema().arguments().size())),
                      std::make_move_iterator(stack->end()));
  stack->resize(stack->size() - arguments.size());
  Results results;
  if (AreConstant(arguments)) {
    results = RunForReal(op, std::move(arguments));
  } else {
    if (AsksForNumbers(op, arguments, on_.device)) {
      on_.device.is_cpu() ? DrawOnHost() : DrawOnDevice();
    }
    NoteWrites(op, arguments);
    results = IsInPlace(op) ? Results{arguments[0]} : RunForShapes(op, arguments);
  }
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

}  // namespace stowage
