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


if hasattr(torch.Tensor, "untyped_storage"):

    def storage_id(tensor: torch.Tensor) -> int:
        return int(tensor.untyped_storage()._cdata)

    def storage_bytes(tensor: torch.Tensor) -> int:
        return int(tensor.untyped_storage().nbytes())

else:

    def storage_id(tensor: torch.Tensor) -> int:
        return int(tensor.storage()._cdata)

    def storage_bytes(tensor: torch.Tensor) -> int:
        return int(tensor.storage().nbytes())


def tensors_left_in(module: torch.nn.Module) -> List[torch.Tensor]:
    """What forwards leave in a module beside its buffers: spectral_norm, say, its weight."""
    return [value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]


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
