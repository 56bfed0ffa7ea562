#include "tests/client/device/device_ops.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/torch/base/tensor_storage.h"
#include "tests/client/device/test_device.h"

namespace stowage {
namespace {

using Arguments = std::vector<c10::IValue>;

bool OnDevice(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kTestDeviceType;
}

template <class Map>
c10::IValue MapTensors(const c10::IValue& value, const Map& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(map(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? c10::optional<at::Tensor>(map(*tensor)) : c10::nullopt);
    }
    return list;
  }
  if (value.isDevice()) return c10::Device(c10::kCPU);
  return value;
}

void CopyShape(const at::Tensor& from, const at::Tensor& to) {
  c10::TensorImpl* const impl = to.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(from.sizes(), from.strides());
  impl->set_storage_offset(from.storage_offset());
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
}

bool SameShape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

// CPU tensors for those of the device, which share memory as those do.
class Doubles {
 public:
  virtual ~Doubles() = default;

  at::Tensor For(const at::Tensor& tensor) {
    if (!OnDevice(tensor)) return ForHost(tensor);
    c10::intrusive_ptr<c10::StorageImpl> storage;
    for (const Pair& pair : pairs_) {
      if (pair.tensor.is_same(tensor)) return pair.with;
      if (StorageOf(pair.tensor) == StorageOf(tensor)) {
        storage = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(StorageOf(pair.with));
      }
    }
    if (!storage) storage = NewStorageFor(*StorageOf(tensor));
    at::Tensor with = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU),
        tensor.dtype());
    CopyShape(tensor, with);
    pairs_.push_back({tensor, with});
    return with;
  }

 protected:
  struct Pair {
    at::Tensor tensor;
    at::Tensor with;
  };

  virtual c10::intrusive_ptr<c10::StorageImpl> NewStorageFor(const c10::StorageImpl& of) = 0;
  virtual at::Tensor ForHost(const at::Tensor& tensor) { return tensor; }

  std::vector<Pair> pairs_;
};

// Their memory as the CPU sees it, for work that runs later. Holds none of it: an allocator of a device hands memory out
// again in the order of what is queued.
class Views final : public Doubles {
 private:
  c10::intrusive_ptr<c10::StorageImpl> NewStorageFor(const c10::StorageImpl& of) override {
    return NewStorage(of.nbytes(), c10::DataPtr(of.data_ptr().get(), c10::Device(c10::kCPU)));
  }
  // Its owner may write over it meanwhile.
  at::Tensor ForHost(const at::Tensor& tensor) override {
    return tensor.defined() ? tensor.clone() : tensor;
  }
};

// Zeros of the same shapes: what an operation makes of them has the shapes of what it will make.
class Shapes final : public Doubles {
 public:
  // What an operation made of them: on the device, `*made` tells whether in memory that is new.
  at::Tensor Back(const at::Tensor& result, bool* made) {
    *made = false;
    if (!result.defined()) return result;
    const Pair* shares = nullptr;
    for (const Pair& pair : pairs_) {
      if (pair.with.is_same(result)) {
        if (!SameShape(pair.tensor, result)) CopyShape(result, pair.tensor);
        return pair.tensor;
      }
      if (StorageOf(pair.with) == StorageOf(result)) shares = &pair;
    }
    at::Tensor tensor;
    if (shares != nullptr) {
      tensor = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW,
                                                        c10::Storage(shares->tensor.storage()),
                                                        shares->tensor.key_set(), result.dtype());
    } else {
      *made = true;
      tensor = OnDevice(result);
    }
    CopyShape(result, tensor);
    pairs_.push_back({tensor, result});
    return tensor;
  }

  // Arguments that the operation gave more memory.
  void Grow() {
    for (const Pair& pair : pairs_) {
      const size_t bytes = StorageOf(pair.with)->nbytes();
      c10::StorageImpl* const storage = StorageOf(pair.tensor);
      if (bytes > storage->nbytes()) {
        storage->set_data_ptr_noswap(AllocateOnTestDevice(bytes));
        storage->set_nbytes(bytes);
      }
      if (!SameShape(pair.tensor, pair.with)) CopyShape(pair.with, pair.tensor);
    }
  }

  static at::Tensor OnDevice(const at::Tensor& shape) {
    const size_t bytes = shape.storage().nbytes();
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(NewStorage(bytes, AllocateOnTestDevice(bytes))),
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), shape.dtype());
    CopyShape(shape, tensor);
    return tensor;
  }

 private:
  // Pages that nobody touches cost nothing.
  c10::intrusive_ptr<c10::StorageImpl> NewStorageFor(const c10::StorageImpl& of) override {
    void* const zeros = std::calloc(std::max<size_t>(of.nbytes(), 1), 1);
    return c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), of.nbytes(),
        c10::DataPtr(zeros, zeros, &std::free, c10::Device(c10::kCPU)),
        c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  }
};

void Call(const c10::OperatorHandle& op, Arguments* stack) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  // A boxed operation that returns a reference to an argument lets go of that first.
  const Arguments held = *stack;
  op.callBoxed(stack);
}

bool Writes(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

bool IsMask(const c10::IValue& argument) {
  if (!argument.isOptionalTensorList()) return false;
  for (const c10::optional<at::Tensor>& tensor : argument.toOptionalTensorVector()) {
    if (tensor && tensor->defined() &&
        (tensor->scalar_type() == at::kBool || tensor->scalar_type() == at::kByte)) {
      return true;
    }
  }
  return false;
}

// Its result is a number, or its shape a matter of values.
bool NeedsValues(const c10::OperatorHandle& op, const Arguments& arguments) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::nonzero",    "aten::masked_select",     "aten::_unique2",
      "aten::unique_dim", "aten::repeat_interleave", "aten::multinomial"};
  if (names->count(op.schema().name()) > 0) return true;
  for (const c10::Argument& result : op.schema().returns()) {
    const c10::TypeKind kind = result.type()->kind();
    if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return true;
  }
  return std::any_of(arguments.begin(), arguments.end(), IsMask);
}

// Once for each thread, as a library's handles are made.
class Workspace {
 public:
  explicit Workspace(int64_t bytes) : bytes_(bytes) {}

  void Take() {
    if (taken_) return;
    taken_ = true;
    static auto* const mutex = new std::mutex();
    static auto* const workspaces = new std::vector<c10::DataPtr>();
    const std::lock_guard<std::mutex> lock(*mutex);
    workspaces->push_back(AllocateOnTestDevice(static_cast<size_t>(bytes_)));
  }

 private:
  const int64_t bytes_;
  bool taken_ = false;
};

// As on a GPU, where products with a bias are another library's than those without, which backwards are full of.
void TakeWorkspace(const std::string& name) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::mm",      "aten::mm.out",  "aten::addmm",       "aten::addmm.out",  "aten::bmm",
      "aten::bmm.out", "aten::baddbmm", "aten::baddbmm.out", "aten::convolution"};
  thread_local Workspace of_products(TestDevice::kWorkspaceBytes);
  thread_local Workspace of_bias(TestDevice::kBiasWorkspaceBytes);
  if (names->count(name) > 0) of_products.Take();
  if (name == "aten::addmm" || name == "aten::addmm.out") of_bias.Take();
}

std::string NameOf(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// Puts a generator of the CPU where one of the device is asked for, or none: what it draws is of this call alone.
void SetGenerator(const c10::OperatorHandle& op, Arguments* arguments, const at::Generator& to) {
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].name() == "generator") (*arguments)[i] = to;
  }
}

// That it would draw from; undefined where it draws nothing.
at::Generator GeneratorOf(const c10::OperatorHandle& op, const Arguments& arguments) {
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].name() != "generator") continue;
    return arguments[i].isNone() ? TestDevice::generator() : arguments[i].toGenerator();
  }
  TORCH_CHECK(!op.hasTag(at::Tag::nondeterministic_seeded), NameOf(op),
              " would draw from the CPU's generator");
  return at::Generator();
}

Arguments Doubled(const Arguments& arguments, Doubles* doubles) {
  Arguments with;
  for (const c10::IValue& argument : arguments) {
    with.push_back(
        MapTensors(argument, [doubles](const at::Tensor& tensor) { return doubles->For(tensor); }));
  }
  return with;
}

// With the device's values, which have to be there.
Arguments RunNow(const c10::OperatorHandle& op, const Arguments& arguments) {
  WaitForTestDevice();
  Views views;
  Arguments results = Doubled(arguments, &views);
  Call(op, &results);
  for (c10::IValue& result : results) {
    if (!result.isTensor() && !result.isTensorList()) continue;
    result = MapTensors(result, [](const at::Tensor& value) {
      if (!value.defined()) return value;
      const at::Tensor tensor = Shapes::OnDevice(value);
      Views to;
      to.For(tensor).copy_(value);
      return tensor;
    });
  }
  return results;
}

struct Made {
  size_t result;
  size_t item;  // of a list
  at::Tensor view;
};

at::Tensor TensorAt(const c10::IValue& value, size_t item) {
  return value.isTensor() ? value.toTensor() : value.toTensorVector()[item];
}

Arguments RunLater(const c10::OperatorHandle& op, const Arguments& arguments) {
  Shapes shapes;
  const at::Generator generator = GeneratorOf(op, arguments);
  Arguments results = Doubled(arguments, &shapes);
  if (generator.defined()) SetGenerator(op, &results, at::detail::createCPUGenerator());
  Call(op, &results);
  shapes.Grow();

  Views views;
  std::vector<Made> made;
  for (size_t i = 0; i < results.size(); ++i) {
    size_t item = 0;
    results[i] = MapTensors(results[i], [&](const at::Tensor& result) {
      bool is_new = false;
      const at::Tensor tensor = shapes.Back(result, &is_new);
      if (is_new) made.push_back({i, item, views.For(tensor)});
      ++item;
      return tensor;
    });
  }
  static const auto* const empty =
      new std::unordered_set<std::string>{"aten::empty", "aten::empty_strided"};
  if ((made.empty() && !Writes(op)) || empty->count(op.schema().name()) > 0) return results;
  Arguments with = Doubled(arguments, &views);
  if (generator.defined()) SetGenerator(op, &with, NextNumbers(generator));
  TestDevice::compute().Add([op, with = std::move(with), made = std::move(made)]() mutable {
    Call(op, &with);
    const at::NoGradGuard no_grad;
    for (const Made& of : made) of.view.copy_(TensorAt(with[of.result], of.item));
  });
  return results;
}

Arguments Run(const c10::OperatorHandle& op, const Arguments& arguments) {
  TakeWorkspace(NameOf(op));
  return NeedsValues(op, arguments) ? RunNow(op, arguments) : RunLater(op, arguments);
}

Arguments TakeArguments(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Arguments arguments(std::make_move_iterator(stack->end() - count),
                      std::make_move_iterator(stack->end()));
  stack->resize(stack->size() - arguments.size());
  return arguments;
}

void RunBoxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  for (c10::IValue& result : Run(op, TakeArguments(op, stack))) stack->push_back(std::move(result));
}

c10::OperatorHandle Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// A backend that is not LibTorch's own is asked for convolutions by these names.
void Convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  for (c10::IValue& result : Run(Find("aten::convolution"), TakeArguments(op, stack))) {
    stack->push_back(std::move(result));
  }
}

void ConvolutionBackward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments arguments = TakeArguments(op, stack);
  const c10::List<int64_t> bias({arguments[0].toTensor().size(1)});
  arguments.insert(arguments.begin() + 3, c10::IValue(bias));
  for (c10::IValue& result : Run(Find("aten::convolution_backward"), arguments)) {
    stack->push_back(std::move(result));
  }
}

at::Tensor& Copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const auto copy = [non_blocking](const at::Tensor& target, const at::Tensor& source) {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    target.copy_(source, non_blocking);
  };
  const bool on_device = OnDevice(to) == OnDevice(from);
  WorkQueue& queue = on_device ? TestDevice::compute() : TestDevice::copy_queue();
  if (!on_device && &queue == &TestDevice::compute()) CountHostCopy();
  Views views;
  if (!OnDevice(to)) {
    queue.Add([copy, to, source = views.For(from)] { copy(to, source); });
    if (!non_blocking) WaitForTestDevice();
    return to;
  }
  queue.Add([copy, target = views.For(to), source = OnDevice(from) ? views.For(from) : from] {
    copy(target, source);
  });
  // From page-locked memory, which nobody writes to meanwhile, it could go on.
  if (!OnDevice(from) && !non_blocking) WaitForTestDevice();
  return to;
}

at::Scalar Item(const at::Tensor& tensor) {
  WaitForTestDevice();
  Views views;
  return views.For(tensor).item();
}

std::vector<int64_t> Numbers(c10::SymIntArrayRef symbols) {
  std::vector<int64_t> numbers;
  for (const c10::SymInt& symbol : symbols) numbers.push_back(symbol.expect_int());
  return numbers;
}

at::Tensor& SetStorage(at::Tensor& tensor, at::Storage storage, c10::SymInt offset,
                       c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_sizes_and_strides(Numbers(sizes), Numbers(strides));
  impl->set_storage_offset(offset.expect_int());
  return tensor;
}

// Of backends other than LibTorch's own, later versions ask for this one.
std::tuple<at::Tensor, at::Tensor> Dropout(const at::Tensor& input, double probability,
                                           c10::optional<bool> /*train*/) {
  const at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(1 - probability);
  return {input.mul(mask).mul_(1 / (1 - probability)), mask};
}

// And for these, of which recurrent networks are made.
std::tuple<at::Tensor, at::Tensor, at::Tensor> LstmCell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cell,
    const c10::optional<at::Tensor>& input_bias, const c10::optional<at::Tensor>& hidden_bias) {
  at::Tensor sums = input_gates + hidden_gates;
  if (input_bias && input_bias->defined()) sums = sums + *input_bias + *hidden_bias;
  const std::vector<at::Tensor> of = sums.chunk(4, 1);
  const at::Tensor gates =
      at::cat({of[0].sigmoid(), of[1].sigmoid(), of[2].tanh(), of[3].sigmoid()}, 1);
  const std::vector<at::Tensor> gate = gates.chunk(4, 1);
  const at::Tensor next_cell = gate[1] * cell + gate[0] * gate[2];
  return {gate[3] * next_cell.tanh(), next_cell, gates};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LstmCellBackward(
    const c10::optional<at::Tensor>& hidden_gradient,
    const c10::optional<at::Tensor>& cell_gradient, const at::Tensor& cell,
    const at::Tensor& next_cell, const at::Tensor& gates, bool has_bias) {
  const auto or_zeros = [&cell](const c10::optional<at::Tensor>& gradient) {
    return gradient && gradient->defined() ? *gradient : at::zeros_like(cell);
  };
  const std::vector<at::Tensor> gate = gates.chunk(4, 1);
  const at::Tensor hidden = or_zeros(hidden_gradient);
  const at::Tensor tanh = next_cell.tanh();
  const at::Tensor sum = or_zeros(cell_gradient) + hidden * gate[3] * (1 - tanh * tanh);
  const at::Tensor gradient =
      at::cat({sum * gate[2] * gate[0] * (1 - gate[0]), sum * cell * gate[1] * (1 - gate[1]),
               sum * gate[0] * (1 - gate[2] * gate[2]), hidden * tanh * gate[3] * (1 - gate[3])},
              1);
  return {gradient, sum * gate[1], has_bias ? gradient.sum(0) : at::Tensor()};
}

void Register() {
  static auto* const fallback =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__,
                         static_cast<uint32_t>(__LINE__));
  fallback->fallback(torch::CppFunction::makeFromBoxedFunction<&RunBoxed>());
  static auto* const ops =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                         static_cast<uint32_t>(__LINE__));
  ops->impl("copy_", &Copy);
  ops->impl("_local_scalar_dense", &Item);
  ops->impl("set_.source_Storage_storage_offset", &SetStorage);
  ops->impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&Convolution>());
  ops->impl("convolution_backward_overrideable",
            torch::CppFunction::makeFromBoxedFunction<&ConvolutionBackward>());
  ops->impl("native_dropout", &Dropout);
  ops->impl("_thnn_fused_lstm_cell", &LstmCell);
  ops->impl("_thnn_fused_lstm_cell_backward_impl", &LstmCellBackward);
}

}  // namespace

void RegisterTestDeviceOps() { Register(); }

}  // namespace stowage
