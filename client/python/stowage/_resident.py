"""What of a device's memory is not a plan's to use: parameters, their gradients, buffers, optimizer state, and all else."""

from __future__ import annotations

import collections
import copy
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

import torch

from stowage._device import Device, own_bytes
from stowage._sharding import is_sharded, parts_of_parameters
from stowage.errors import Infeasible

ASSUMED_STATE = 2  # tensors of a parameter's size, as Adam has them, where no optimizer is given


class Resident(NamedTuple):
    """Bytes on the device beside what plans are of, with what is still to be created: gradients, an optimizer's state.

    ``others``: all else that is live when the first block is called: what comes before it, batches, what a loop holds on to,
    other models.
    """

    parameters_bytes: int
    gradients_bytes: int
    buffers_bytes: int
    optimizer_bytes: int
    others_bytes: int

    @property
    def total_bytes(self) -> int:
        return sum(self)


class DeviceMemory:
    """A device's memory, of which a model's plans get what is left."""

    def __init__(
        self, model: torch.nn.Module, limit_bytes: int, optimizer: Optional[torch.optim.Optimizer], device: Device
    ) -> None:
        self.limit_bytes = limit_bytes
        self._device = device
        self.resident: Optional[Resident] = None  # when the last plan was made
        self._model = weakref.ref(model)
        self._optimizer = optimizer
        self._first_others_bytes: Optional[int] = None
        # Of the CPU, where bytes are counted from the first wrap on.
        self._uncounted_bytes = max(0, self._known_bytes() - self._device.current_bytes())

    def see(self, inputs: Iterable[Any]) -> int:
        """What is live beside all that is known, at the call of the first block with these inputs."""
        live = self._device.current_bytes() - self._device.bytes_of(inputs)
        others = max(0, live + self._uncounted_bytes - self._known_bytes())
        if self._first_others_bytes is None:
            self._first_others_bytes = others
        return others

    def budget_bytes(self, others_bytes: int) -> int:
        """What is left for a plan. Raises Infeasible where nothing is."""
        self.resident = self._resident(others_bytes)
        left = self.limit_bytes - self.resident.total_bytes
        if left <= 0:
            words = f"device_budget = {self.limit_bytes} bytes: {self.resident.total_bytes} are resident ({self.resident})"
            raise Infeasible(words, self.limit_bytes, self.resident.total_bytes, proven=True)
        return left

    def _parameters(self) -> List[torch.Tensor]:
        """Of now: models change."""
        model = self._model()
        if model is None:
            return []
        return parts_of_parameters(model) if is_sharded(model) else list(model.parameters())

    def _known_bytes(self) -> int:
        """Of what is there and has a line of its own."""
        parameters, model = self._parameters(), self._model()
        known: List[Any] = [*parameters, *(p.grad for p in parameters), *(() if model is None else model.buffers())]
        if self._optimizer is not None:
            known += _tensors_of(self._optimizer.state)
        return self._device.bytes_of(known)

    def _resident(self, others_bytes: int) -> Resident:
        parameters, model = self._parameters(), self._model()
        trained = [p for p in parameters if p.requires_grad]
        to_come_bytes = _bytes_each(p for p in trained if p.grad is None)
        return Resident(
            parameters_bytes=self._device.bytes_of(parameters),
            gradients_bytes=self._device.bytes_of(p.grad for p in parameters) + to_come_bytes,
            buffers_bytes=0 if model is None else self._device.bytes_of(model.buffers()),
            optimizer_bytes=self._state_bytes(_bytes_each(trained), others_bytes),
            others_bytes=others_bytes,
        )

    def _state_bytes(self, trained_bytes: int, others_bytes: int) -> int:
        if self._optimizer is not None:
            return self._device.bytes_of(_tensors_of(self._optimizer.state)) + state_to_come_bytes(self._optimizer)
        # What has come since the first forward may be the state: it is among the others then.
        assert self._first_others_bytes is not None
        come = max(0, others_bytes - self._first_others_bytes)
        return max(0, ASSUMED_STATE * trained_bytes - come)


def state_to_come_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Of the state that an optimizer creates in its next step, for parameters that have none yet.

    One step of a copy tells, on tensors without memory; where it cannot be taken, as many bytes as Adam's are assumed.
    """
    groups: List[Dict[str, Any]] = []
    missing: List[torch.Tensor] = []
    for group in optimizer.param_groups:
        without = [p for p in group["params"] if p.requires_grad and not optimizer.state.get(p)]
        missing += without
        kernels = {name: False for name in ("capturable", "foreach", "fused") if name in group}
        groups.append({**group, **kernels, "params": [_probe(p) for p in without]})
    if not missing:
        return 0
    probe = copy.copy(optimizer)
    probe.__dict__.update(state=collections.defaultdict(dict), param_groups=groups)
    probe.__dict__.update({name: type(hooks)() for name, hooks in probe.__dict__.items() if name.endswith("_hooks")})
    try:
        type(optimizer).step(probe)
    except Exception:
        return ASSUMED_STATE * _bytes_each(missing)
    return _bytes_each(_tensors_of(probe.state))


def _probe(parameter: torch.Tensor) -> torch.Tensor:
    probe = torch.nn.Parameter(torch.empty_like(parameter, device="meta"))
    probe.grad = torch.empty_like(probe)
    return probe


def _tensors_of(state: Any) -> List[torch.Tensor]:
    """Of the state of an optimizer, of whatever depth."""
    if isinstance(state, torch.Tensor):
        return [state]
    if isinstance(state, dict):
        state = list(state.values())
    return [t for entry in state for t in _tensors_of(entry)] if isinstance(state, (list, tuple)) else []


def _bytes_each(tensors: Iterable[torch.Tensor]) -> int:
    return sum(map(own_bytes, tensors))
