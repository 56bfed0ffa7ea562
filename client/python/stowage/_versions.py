"""The differences between PyTorch 1.13 and later, in one place."""

from __future__ import annotations

import sys
from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Tuple, TypeVar

import torch
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

Function = TypeVar("Function", bound=Callable[..., Any])
Task = Any  # what tells one backward of the engine from another

_task_id: Any = getattr(torch._C, "_current_graph_task_id", None)
queue_callback: Any = torch.autograd.Variable._execution_engine.queue_callback
_by_device = hasattr(torch, "get_autocast_dtype")


def enter_task(before: Task, at_end: Callable[[], None]) -> Task:
    """The backward that runs, None outside of one; ``at_end`` is called at its end unless it is ``before``.

    1.13 numbers none: there ``before`` counts as still running until its end was called.
    """
    if _task_id is not None:
        task = _task_id()
        if task == -1:
            return None
        if task != before:
            queue_callback(at_end)
        return task
    if before is not None:
        return before
    try:
        queue_callback(at_end)
    except RuntimeError:
        return None
    return True


def storage_id(tensor: torch.Tensor) -> int:
    """Of the memory that the tensor is of, alone or with others."""
    return id(tensor) if tensor.layout != torch.strided else int(_storage_of(tensor)._cdata)


def storage_bytes(tensor: torch.Tensor) -> int:
    """Of all of that memory; of a sparse tensor, of what it is made of."""
    if tensor.layout == torch.strided:
        return int(_storage_of(tensor).nbytes())
    return sum(storage_bytes(part) for part in _made_of(tensor))


def _storage_of(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage() if _has_untyped else tensor.storage()


_has_untyped = hasattr(torch.Tensor, "untyped_storage")


def _made_of(tensor: Any) -> List[torch.Tensor]:
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    names = ("values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
    found = []
    for name in names:
        try:
            found.append(getattr(tensor.detach(), name)())
        except (AttributeError, RuntimeError):  # of another layout
            continue
    return found


def tensors_left_in(module: torch.nn.Module) -> List[torch.Tensor]:
    """What a module holds beside parameters and buffers, in lists and dictionaries, too: spectral_norm, say, its weight,
    others a table of angles."""
    found: List[torch.Tensor] = []
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif name not in _OF_MODULES and isinstance(value, (dict, list, tuple)) and len(value) <= _MOST_HELD:
                for entry in value.values() if isinstance(value, dict) else value:
                    entries = entry if isinstance(entry, (list, tuple)) and len(entry) <= _MOST_HELD else (entry,)
                    found += [tensor for tensor in entries if isinstance(tensor, torch.Tensor)]
    return found


_MOST_HELD = 256  # a list of more is one of something else, such as words
_OF_MODULES = {"_buffers", "_modules", "_parameters"}


_OUT_OF_MEMORY = tuple({getattr(module, "OutOfMemoryError", MemoryError) for module in (torch, torch.cuda)})


def is_out_of_memory(error: BaseException) -> bool:
    """Of a device or of the CPU, whose allocator raises plain RuntimeErrors, as 1.13 makes them of all that backwards raise."""
    words = ("OutOfMemoryError", "out of memory", "can't allocate memory")
    return isinstance(error, _OUT_OF_MEMORY) or (isinstance(error, RuntimeError) and any(w in str(error) for w in words))


class Autocast(NamedTuple):
    """What autocast on one kind of device is set to."""

    kind: str
    enabled: bool
    dtype: torch.dtype
    cache: bool

    @staticmethod
    def now(kind: str) -> Autocast:
        cache = torch.is_autocast_cache_enabled()
        if _by_device:
            return Autocast(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind), cache)
        if kind == "cpu":
            return Autocast(kind, torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype(), cache)
        if kind == "cuda":
            return Autocast(kind, torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype(), cache)
        return Autocast(kind, False, torch.float32, cache)  # others have none

    def scope(self) -> Optional[ContextManager[Any]]:
        """This setting, without the cache of weights: what that holds belongs to another graph. None: autocast is off."""
        if not self.enabled and not Autocast.now(self.kind).enabled:
            return None
        scope: ContextManager[Any] = torch.autocast(self.kind, dtype=self.dtype, enabled=self.enabled, cache_enabled=False)
        return scope


try:
    from torch.utils._device import DeviceContext as _DeviceContext
except ImportError:  # before PyTorch 2.0
    _DeviceContext = None


def default_device() -> Optional[torch.device]:
    """Where this thread's new tensors go, as torch.set_default_device or a device as a context says; None: nothing does."""
    if _DeviceContext is None:
        return None
    for place in reversed(range(torch._C._len_torch_function_stack())):
        mode = torch._C._get_function_stack_at(place)
        if isinstance(mode, _DeviceContext):
            device: torch.device = mode.device
            return device
    return None


class placed:
    """This thread's new tensors go where default_device() said; afterwards as now."""

    __slots__ = ("_device", "_pushed", "_modes")

    def __init__(self, device: Optional[torch.device]) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._pushed: Optional[torch.device] = None
        self._modes: List[Any] = []
        if self._device == default_device():
            return
        if self._device is not None:
            self._pushed = self._device
            self._device.__enter__()
            return
        # The CPU would not do: what is made of tensors that are elsewhere would go there.
        self._modes = _take_modes()
        _put_modes([mode for mode in self._modes if not isinstance(mode, _DeviceContext)])

    def __exit__(self, *error: Any) -> None:
        if self._pushed is not None:
            self._pushed.__exit__(*error)
        elif self._modes:
            _take_modes()
            _put_modes(self._modes)


def _take_modes() -> List[Any]:
    """All of this thread's, the last one first."""
    return [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]


def _put_modes(modes: List[Any]) -> None:
    for mode in reversed(modes):
        torch._C._push_on_torch_function_stack(mode)


_interpreter: Any = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)


def is_transformed() -> bool:
    """Whether a transform of torch.func or forward-mode AD is at work, for which saved tensors are not all that there is."""
    if forward_ad._current_level >= 0:
        return True
    return _interpreter() is not None if _interpreter is not None else _is_transformed_by_functorch()


def _is_transformed_by_functorch() -> bool:
    """Of PyTorch 1.13, which has it beside."""
    if "functorch" not in sys.modules:
        return False
    try:
        torch._C._functorch.current_level()
    except (AttributeError, RuntimeError):
        return False
    return True


swaps_by_class = not hasattr(torch, "func")  # what functional_call puts in is then no entry of a module


def is_functional_call() -> bool:
    """Whether this is called within torch.func.functional_call, which puts other tensors into modules meanwhile."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.nn.utils.stateless":
            return True
        frame = frame.f_back
    return False


def hidden_from_dynamo(words: str) -> Callable[[Function], Function]:
    """Has torch.compile and compiled autograd run a function as it is, and all that it calls. What that calls may be compiled
    by itself. Costs a call nothing, and imports nothing. ``words``: why, for a compilation that wants a whole graph."""

    def hide(function: Function) -> Function:
        if not hasattr(torch, "compile"):
            return function
        frames = torch._C._dynamo.eval_frame
        if not hasattr(frames, "set_code_exec_strategy"):  # before 2.7
            disabled: Function = torch._disable_dynamo(function)
            return disabled
        skips = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skips, skips))
        function._torchdynamo_disable = True  # type: ignore[attr-defined]
        function._torchdynamo_disable_msg = words  # type: ignore[attr-defined]
        return function

    return hide


def is_in_compiled() -> bool:
    """Whether this is called, through what is hidden, by something that torch.compile has compiled."""
    frame: Any = sys._getframe() if "torch._dynamo" in sys.modules else None
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch._dynamo.eval_frame":
            context = frame.f_locals.get("self")
            if hasattr(context, "callback"):
                return callable(context.callback)
        frame = frame.f_back
    return False


def compiler_of(compiled: Callable[..., Any]) -> Any:
    """What torch.compile has compiled this with, which takes another function, too; None where that cannot be told."""
    names = getattr(getattr(compiled, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(compiled, "__closure__", None) or ()))
    context = cells["self"].cell_contents if "self" in cells else None
    return context if callable(context) and callable(getattr(context, "callback", None)) else None


_top_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


class unhooked:
    """None of the caller's hooks for saved tensors, such as those of torch.utils.checkpoint, see what is saved meanwhile."""

    __slots__ = ("_taken", "_own")

    def __enter__(self) -> None:
        self._taken: List[Any] = []
        self._own: Optional[ContextManager[Any]] = None
        if _top_hooks is None:  # nor does it say whether there are any
            self._own = torch.autograd.graph.saved_tensors_hooks(_without_graph, _itself)
            self._own.__enter__()
            return
        hooks = _top_hooks(False)
        while hooks is not None:
            self._taken.append(hooks)
            torch._C._autograd._pop_saved_tensors_default_hooks()
            hooks = _top_hooks(False)

    def __exit__(self, *error: Any) -> None:
        if self._own is not None:
            self._own.__exit__(*error)
        for hooks in reversed(self._taken):
            torch._C._autograd._push_saved_tensors_default_hooks(*hooks)


def _without_graph(tensor: torch.Tensor) -> torch.Tensor:
    # A number of Python is none to what listens to operations.
    return tensor if tensor.dim() == 0 and not tensor.requires_grad else tensor.detach()


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


_LEAVES = (torch.Tensor, int, float, bool, str, type(None))


def leaves_of(value: Any) -> List[Any]:
    if isinstance(value, _LEAVES):
        return [value]
    return list(pytree.tree_flatten(value)[0])


def flatten(args: Tuple[Any, ...], kwargs: Any) -> Tuple[List[Any], Callable[[List[Any]], Tuple[Any, Any]]]:
    """The leaves of a call's arguments, and what makes (args, kwargs) of as many leaves."""
    if all(isinstance(a, _LEAVES) for a in args) and all(isinstance(a, _LEAVES) for a in kwargs.values()):
        count, names = len(args), tuple(kwargs)
        return [*args, *kwargs.values()], lambda leaves: (leaves[:count], dict(zip(names, leaves[count:])))
    leaves, spec = pytree.tree_flatten((args, kwargs))
    return leaves, lambda new: pytree.tree_unflatten(new, spec)
