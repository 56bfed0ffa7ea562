"""Tensors that a plan has on the host for a while."""

from __future__ import annotations

import base64
import itertools
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Set, Tuple

import torch

from stowage import _steps
from stowage._copying import Away, HostPool, memory_of, system_memory
from stowage._run import Slot, _Other, check_version
from stowage._steps import Step
from stowage._versions import storage_bytes, storage_id, tensors_left_in
from stowage.errors import Infeasible
from stowage.planning import Budget, Plan, Profile

if TYPE_CHECKING:
    from stowage._run import Activation, Kept, Run

_OF_LINKS = {"duplex", "host_memory_bytes"}
_OF_LINKS |= {f"to_{side}_{what}" for side in ("host", "device") for what in ("bytes_per_second", "latency_ns")}


def copy_on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Its memory, as bytes that are not counted."""
    return system_memory(storage_bytes(tensor)).copy_(memory_of(tensor))


def is_copy(tensor: torch.Tensor, copy: torch.Tensor) -> bool:
    memory = memory_of(tensor)
    return bool(memory.numel() == copy.numel() and torch.equal(memory.cpu(), copy))


def copy_on_device(copy: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor of what copy_on_host made of it."""
    memory = torch.empty(copy.numel(), dtype=torch.uint8, device=like.device).copy_(copy)
    return memory.view(like.dtype).as_strided(like.shape, like.stride(), like.storage_offset())


def has_link(profile: Profile) -> bool:
    """Whether plans may copy."""
    return int(profile.to_dict()["device"].get("host_memory_bytes") or 0) > 0


def without_link(profile: Profile) -> Profile:
    fields = profile.to_dict()
    fields["device"] = {name: value for name, value in fields["device"].items() if name not in _OF_LINKS}
    return Profile.from_dict(fields)


def least_beside_input(profile: Profile) -> int:
    """What a plan takes at least that never moves the input."""
    fields = profile.to_dict()
    input_bytes = fields["chain"]["input_bytes"]
    fields["chain"]["input_bytes"] = 0
    return int(input_bytes) + Profile.from_dict(fields).budget_bytes("least")


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
        self.activation: Dict[int, Tuple[_View, Kept]] = {}
        self.back: Dict[int, _View] = {}  # of the activation, once it is away
        self.staying: Activation = {}  # what of it is on no device that is planned for
        self.away = Away(pool)
        self._places: Dict[int, int] = {}

    def add(self, tensor: torch.Tensor) -> _View:
        number = storage_id(tensor)
        if number not in self._places:
            self._places[number] = self.away.add(memory_of(tensor))
        size, stride = tuple(tensor.shape), tensor.stride()
        return _View(self._places[number], tensor.dtype, size, stride, int(tensor.storage_offset()))

    def tensor(self, view: _View) -> torch.Tensor:
        return self.away.memory(view.memory).view(view.dtype).as_strided(view.size, view.stride, view.offset)


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
            self._copies[step.block, step.saved].away.fetch()
        else:
            self._put_back(run, step)

    def drop(self, block: int, saved: bool) -> None:
        copies = self._copies.pop((block, saved), None)
        if copies is not None:
            copies.away.let_go()

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
                if not self._pool.copies.is_here(value):
                    continue  # such as the numbers that attention's dropout began with
                if storage_id(value) not in stays and value._version == slot.version:  # else the backward says so
                    copies.slots.append((reference, copies.add(value)))
        assert step.source is not None
        for place, (tensor, version) in run.activations.get(step.source, {}).items() if step.keep else ():
            check_version(step.block, tensor, version)
            if self._pool.copies.is_here(tensor):
                copies.activation[place] = copies.add(tensor), (tensor, version)
            else:
                copies.staying[place] = tensor, version
        copies.away.leave()
        return copies

    def _drop_on_device(self, run: Run, step: Step) -> None:
        copies = self._copies[step.block, step.saved]
        copies.away.join()
        for reference, view in list(copies.slots):
            slot = reference()
            if slot is not None and isinstance(slot.value, torch.Tensor):
                if slot.value._version == slot.version:
                    slot.value = None
                else:  # written over meanwhile: the backward says so
                    copies.slots.remove((reference, view))
        for place, (view, (tensor, version)) in copies.activation.items():
            check_version(step.block, tensor, version)
            copies.back[place] = view
        copies.activation.clear()
        assert step.source is not None
        run.activations.pop(step.source, None)

    def _put_back(self, run: Run, step: Step) -> None:
        copies = self._copies.pop((step.block, step.saved))
        copies.away.let_go()
        for reference, view in copies.slots:
            slot = reference()
            if slot is not None:
                tensor = copies.tensor(view)
                slot.value, slot.version = tensor, tensor._version
        activation: Activation = dict(copies.staying)
        for place, view in copies.back.items():
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
