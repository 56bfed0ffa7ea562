"""Blocks whose parameters are parts of what ranks share (fully_shard), and whole only while a block runs."""

from __future__ import annotations

import sys
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sequence

import torch

from stowage._device import Device
from stowage.errors import FailedPrecondition

IN_FLIGHT = 5


def _kind() -> Any:
    """FSDPModule; whoever shards has imported it."""
    return getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)


def is_flattened(module: torch.nn.Module) -> bool:
    """Whether ranks share its parameters by FullyShardedDataParallel, whose recomputes would gather them by other hooks."""
    kind = getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", None)
    return kind is not None and any(isinstance(part, kind) for part in module.modules())


def _groups(module: torch.nn.Module) -> List[Any]:
    """Of the parameters that are gathered together before the module's forward."""
    state: Any = module._get_fsdp_state()
    several = getattr(state, "_fsdp_param_groups", None)
    if several is None:
        several = [state._fsdp_param_group]
    return [group for group in several if group is not None]


def _sharded_within(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    kind = _kind()
    return (part for part in module.modules() if isinstance(part, kind)) if kind is not None else iter(())


def is_sharded(block: torch.nn.Module) -> bool:
    """The block itself, or parts of it."""
    return next(_sharded_within(block), None) is not None


def parts_of_parameters(block: torch.nn.Module) -> List[torch.Tensor]:
    """This rank's, whose gradients the optimizer sees. Of a block that is sharded."""
    return [p.sharded_param for part in _sharded_within(block) for group in _groups(part) for p in group.fsdp_params]


def in_flight_bytes(blocks: Iterable[torch.nn.Module]) -> int:
    """Of a step beyond what its first block has gathered when it is called: at most two blocks are whole at a time, one of them
    still as it was sent, and the gradients of two are being reduced."""
    # What a DTensor counts is the whole.
    sizes = [sum(p.numel() * p.element_size() for p in parts_of_parameters(block)) for block in blocks]
    return IN_FLIGHT * max(sizes, default=0)


def group_of(model: torch.nn.Module) -> Any:
    """The process group that shares parameters of the model; None where nobody does."""
    for part in _sharded_within(model):
        for group in _groups(part):
            return group.mesh_info.shard_process_group
    return None


def group_of_tensors(model: torch.nn.Module) -> Any:
    """That of parameters which are DTensors (tensor parallel); None where there are none. Raises FailedPrecondition where they
    lie on a mesh of several dimensions, whose ranks the caller has to name."""
    kind = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    for parameter in model.parameters():
        if kind is not None and isinstance(parameter, kind):
            if parameter.device_mesh.ndim > 1:
                raise FailedPrecondition("parameters lie on a mesh of several dimensions: name its ranks (process_group=...)")
            return parameter.device_mesh.get_group()
    return None


def has_shared_tensors(model: torch.nn.Module) -> bool:
    """Whether parameters are DTensors."""
    kind = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    return kind is not None and any(isinstance(parameter, kind) for parameter in model.parameters())


def gather_times_ns(blocks: Sequence[torch.nn.Module], device: Device) -> Optional[List[int]]:
    """What it takes to have each block's parameters whole, as a run of it begins; 0 of those that stay whole. All ranks ask at
    once. A part that is whole now counts by its size; None where all are, so that nothing can be measured yet."""
    parts = [[_Gather.of(part, device) for part in _sharded_within(block)] for block in blocks]
    measured = [part for of_block in parts for part in of_block if part.time_ns]
    if not measured and any(part.time_ns is None for of_block in parts for part in of_block):
        return None
    rate = sum(part.time_ns or 0 for part in measured) / max(1, sum(part.elements for part in measured))
    return [sum(round(rate * p.elements) if p.time_ns is None else p.time_ns for p in of_block) for of_block in parts]


class _Gather(NamedTuple):
    """Of the parameters that are gathered together; ``time_ns``: 0 where they stay whole, None where they are whole now."""

    elements: int
    time_ns: Optional[int]

    @staticmethod
    def of(part: Any, device: Device) -> _Gather:
        groups = _groups(part)
        elements = sum(p.sharded_param.numel() for group in groups for p in group.fsdp_params)
        if all(group.post_forward_mesh_info is None for group in groups):
            return _Gather(elements, 0)
        if any(group.is_unsharded for group in groups):
            return _Gather(elements, None)
        _time_of_gather_ns(part, device)  # which may have been begun by then
        return _Gather(elements, min(_time_of_gather_ns(part, device) for _ in range(3)))


def _time_of_gather_ns(part: Any, device: Device) -> int:
    device.settle()
    begun = device.now_ns()
    part.unshard()
    device.settle()
    time_ns = device.now_ns() - begun
    part.reshard()
    return time_ns


class gathered:
    """The block's own parameters whole, for a recompute; afterwards as they were. Parts of it that are sharded by themselves
    gather their own when they are called."""

    __slots__ = ("_block",)

    def __init__(self, block: torch.nn.Module) -> None:
        kind = _kind()
        here = kind is not None and isinstance(block, kind) and not all(group.is_unsharded for group in _groups(block))
        self._block: Optional[Any] = block if here else None

    def __enter__(self) -> None:
        if self._block is not None:
            self._block.unshard()

    def __exit__(self, *error: Any) -> None:
        if self._block is not None:
            self._block.reshard()


class gathered_whole:
    """The block with all its parts whole, and no hooks of theirs: its forwards and backwards are then no steps of a training,
    and communicate nothing. For a block that runs, to be measured aside."""

    def __init__(self, block: torch.nn.Module) -> None:
        self._parts: List[Any] = [part for part in _sharded_within(block) if part is not block]

    def __enter__(self) -> None:
        self._before = []
        for part in self._parts:
            state = part._get_fsdp_state()
            own = {state._pre_forward_hook_handle.id, state._post_forward_hook_handle.id}
            self._before.append((part._forward_pre_hooks, part._forward_hooks))
            for name in ("_forward_pre_hooks", "_forward_hooks"):
                hooks = getattr(part, name)
                part.__dict__[name] = type(hooks)((key, hook) for key, hook in hooks.items() if key not in own)
            part.unshard()

    def __exit__(self, *error: Any) -> None:
        for part, (before, after) in zip(self._parts, self._before):
            part.__dict__["_forward_pre_hooks"], part.__dict__["_forward_hooks"] = before, after
            part.reshard()
