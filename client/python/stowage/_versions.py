"""The differences between PyTorch 1.13 and later, in one place."""

from __future__ import annotations

from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Tuple

import torch
from torch.utils import _pytree as pytree

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
