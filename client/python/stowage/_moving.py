"""Tensors that a plan has on the host for a while.

On the CPU, copies are made when they start, into memory that is no tensor's own: bytes of tensors, which budgets are of, do
not count it.
"""

from __future__ import annotations

import base64
import itertools
import mmap
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Set, Tuple

import torch

from stowage import _steps
from stowage._run import Slot, _Other
from stowage._steps import Step
from stowage._versions import storage_bytes, storage_id, tensors_left_in
from stowage.errors import ExecutionError, Infeasible
from stowage.planning import Budget, Plan, Profile

if TYPE_CHECKING:
    from stowage._run import Activation, Run

MEASURED_BYTES = 8 << 20


def _host_memory(size_bytes: int) -> torch.Tensor:
    if size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(mmap.mmap(-1, size_bytes), dtype=torch.uint8)


def copy_on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Its memory, as bytes that are not counted."""
    return _host_memory(storage_bytes(tensor)).copy_(_memory_of(tensor))


def is_copy(tensor: torch.Tensor, copy: torch.Tensor) -> bool:
    memory = _memory_of(tensor)
    return bool(memory.numel() == copy.numel() and torch.equal(memory.cpu(), copy))


def copy_on_device(copy: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor of what copy_on_host made of it."""
    memory = torch.empty(copy.numel(), dtype=torch.uint8, device=like.device).copy_(copy)
    return memory.view(like.dtype).as_strided(like.shape, like.stride(), like.storage_offset())


class HostPool:
    """Host memory for what is away. What comes back leaves its memory for the next, as far as the limit allows."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self.offloaded_bytes = 0  # all that was copied here, and back
        self.prefetched_bytes = 0
        self._free: Dict[int, List[torch.Tensor]] = {}

    def take(self, size_bytes: int) -> torch.Tensor:
        free = self._free.get(size_bytes)
        if free:
            return free.pop()
        if self._held_bytes + size_bytes > self._limit_bytes:
            self._held_bytes -= self.free_bytes
            self._free.clear()
        self._held_bytes += size_bytes
        return _host_memory(size_bytes)

    @property
    def free_bytes(self) -> int:
        return sum(size_bytes * len(free) for size_bytes, free in self._free.items())

    def give(self, memory: torch.Tensor) -> None:
        self._free.setdefault(memory.numel(), []).append(memory)


def measured_link(host_bytes: int) -> Dict[str, Any]:
    """The link to so much host memory, as profiles have it, by the time of a copy."""
    device, host = torch.zeros(MEASURED_BYTES, dtype=torch.uint8), _host_memory(MEASURED_BYTES)
    times_ns: Tuple[List[int], List[int]] = ([], [])
    for _ in range(3):
        for taken, into, source in zip(times_ns, (host, device), (device, host)):
            begun_ns = time.perf_counter_ns()
            into.copy_(source)
            taken.append(time.perf_counter_ns() - begun_ns)
    to_host, to_device = (max(1, MEASURED_BYTES * 10**9 // max(1, min(taken))) for taken in times_ns)
    return {
        "duplex": "DUPLEX_HALF",
        "host_memory_bytes": host_bytes,
        "to_host_bytes_per_second": to_host,
        "to_device_bytes_per_second": to_device,
    }


def plan_beside_input(profile: Profile, budget: Budget, ask: Callable[[Profile, Budget, int], Plan]) -> Plan:
    """A plan with copies that never moves the input, which is the caller's: it is asked for without the input, within the bytes
    that the input leaves. Raises Infeasible."""
    fields = profile.to_dict()
    input_bytes = fields["chain"]["input_bytes"]
    fields["chain"]["input_bytes"] = 0
    within = "least" if budget == "least" else max(0, profile.budget_bytes(budget) - input_bytes)
    try:
        plan = ask(Profile.from_dict(fields), within, input_bytes)
    except Infeasible as error:
        budget_bytes, least_bytes = (size and size + input_bytes for size in (error.budget_bytes, error.least_bytes))
        words = f"{error} (beside an input of {input_bytes} bytes)"
        raise Infeasible(words, budget_bytes, least_bytes, error.proven) from None
    stays = [i.stage > 0 or i.op not in _steps.MOVES for i in plan.schedule()]
    made = plan.to_dict()
    made["schedule"] = {"instructions": list(itertools.compress(made["schedule"]["instructions"], stays))}
    digest = profile.plan_of(list(itertools.compress(plan.schedule(), stays))).digest
    made["digest"] = base64.b64encode(bytes.fromhex(digest)).decode()
    made["budget_bytes"] += input_bytes
    made["bounds"].update(proven_optimal=False, least_budget_bytes=0)
    return profile.plan_from_dict(made)


class _View(NamedTuple):
    """A tensor of one of the memories that are away."""

    memory: int
    dtype: torch.dtype
    size: Tuple[int, ...]
    stride: Tuple[int, ...]
    offset: int


class _Copies:
    """What one stage has on the host: whole memories, and the tensors in them."""

    def __init__(self, pool: HostPool) -> None:
        self.slots: List[Tuple[weakref.ref[Slot], _View]] = []
        self.activation: Dict[int, _View] = {}
        self._pool = pool
        self._places: Dict[int, int] = {}
        self._host: List[torch.Tensor] = []
        self._device: List[torch.Tensor] = []

    def add(self, tensor: torch.Tensor) -> _View:
        number = storage_id(tensor)
        if number not in self._places:
            self._places[number] = len(self._host)
            host = self._pool.take(storage_bytes(tensor))
            host.copy_(_memory_of(tensor))
            self._pool.offloaded_bytes += host.numel()
            self._host.append(host)
        size, stride = tuple(tensor.shape), tensor.stride()
        return _View(self._places[number], tensor.dtype, size, stride, int(tensor.storage_offset()))

    def fetch(self) -> None:
        self._pool.prefetched_bytes += sum(host.numel() for host in self._host)
        self._device = [torch.empty(host.numel(), dtype=torch.uint8).copy_(host) for host in self._host]
        self.let_go()

    def let_go(self) -> None:
        """Of the host's memory."""
        for host in self._host:
            self._pool.give(host)
        self._host = []

    def __del__(self) -> None:
        self.let_go()  # of a graph that was thrown away

    def tensor(self, view: _View) -> torch.Tensor:
        return self._device[view.memory].view(view.dtype).as_strided(view.size, view.stride, view.offset)


def _memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """All bytes of the tensor's storage."""
    count = storage_bytes(tensor) // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0).view(torch.uint8)


class Moves:
    """What of one run is on the host, and how the plan's steps bring it there and back."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool
        self._copies: Dict[Tuple[int, bool], _Copies] = {}

    def execute(self, run: Run, step: Step) -> None:
        if step.op == _steps.OFFLOAD_START:
            self._copies[step.block, step.saved] = self._copied(run, step)
        elif step.op == _steps.OFFLOAD_WAIT:
            self._drop_on_device(run, step)
        elif step.op == _steps.PREFETCH_START:
            self._copies[step.block, step.saved].fetch()
        else:
            self._put_back(run, step)

    def drop(self, block: int, saved: bool) -> None:
        copies = self._copies.pop((block, saved), None)
        if copies is not None:
            copies.let_go()

    def clear(self) -> None:
        for block, saved in list(self._copies):
            self.drop(block, saved)

    def _copied(self, run: Run, step: Step) -> _Copies:
        copies = _Copies(self._pool)
        if step.saved:
            stays = _storages_that_stay(run.calls[step.block])
            for reference in run.slots[step.block]:
                slot = reference()
                if slot is None or not isinstance(slot.value, torch.Tensor):
                    continue
                value: torch.Tensor = slot.value
                if storage_id(value) not in stays and value._version == slot.version:  # else the backward says so
                    copies.slots.append((reference, copies.add(value)))
        assert step.source is not None
        for place, (tensor, version) in run.activations.get(step.source, {}).items() if step.keep else ():
            if tensor._version != version:
                raise ExecutionError("what a block reads was written over between its forward and its backward")
            copies.activation[place] = copies.add(tensor)
        return copies

    def _drop_on_device(self, run: Run, step: Step) -> None:
        copies = self._copies[step.block, step.saved]
        for reference, _ in copies.slots:
            slot = reference()
            if slot is not None:
                slot.value = None
        assert step.source is not None
        run.activations.pop(step.source, None)

    def _put_back(self, run: Run, step: Step) -> None:
        copies = self._copies.pop((step.block, step.saved))
        for reference, view in copies.slots:
            slot = reference()
            if slot is not None:
                tensor = copies.tensor(view)
                slot.value, slot.version = tensor, tensor._version
        activation: Activation = {}
        for place, view in copies.activation.items():
            tensor = copies.tensor(view)
            activation[place] = tensor, tensor._version
        assert step.source is not None
        if step.keep:
            run.activations[step.source] = activation


def _storages_that_stay(call: Any) -> Set[int]:
    """What is the model's or the caller's, and no plan's to move."""
    module: torch.nn.Module = call.module
    tensors = [*module.parameters(), *module.buffers(), *(a.tensor for a in call.arguments if isinstance(a, _Other))]
    tensors += tensors_left_in(module)
    return {storage_id(tensor) for tensor in tensors}
