"""What single ops of a joint graph take: estimated by a roofline, or measured one by one."""

from __future__ import annotations

import bisect
import itertools
import time
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.flop_counter import flop_registry

from stowage.errors import InvalidArgument

try:
    from stowage import _torch
except ImportError:
    _torch = None  # type: ignore[assignment]

_ROUNDS = 3  # beside one that warms up and whose memory is counted
_MARK = "stowage measures op "


class Roofline(NamedTuple):
    """Three figures of a device, by which times of ops are estimated, not measured.

    An op takes ``launch_ns``, and the longer of its floating-point operations over ``flops_per_second`` and the bytes that
    it reads and writes over ``bytes_per_second``. Estimates say which ops are dear and which are cheap; how long a step
    takes, they do not say. Workspaces are taken to be 0. The defaults are of no device in particular.

    >>> Roofline(flops_per_second=1e12, bytes_per_second=1e11, launch_ns=1000).time_ns(flops=2_000_000_000, moved_bytes=8000)
    2001000
    """

    flops_per_second: float = 1e13
    bytes_per_second: float = 1e12
    launch_ns: int = 2000

    def time_ns(self, flops: int, moved_bytes: int) -> int:
        """Nanoseconds, rounded."""
        return self.launch_ns + round(1e9 * max(flops / self.flops_per_second, moved_bytes / self.bytes_per_second))


Times = Union[Roofline, str]
"""A Roofline; or ``"measured"``: each op runs by itself, on tensors made for it."""


class OpCost(NamedTuple):
    """What one run of an op takes."""

    time_ns: int
    workspace_bytes: int  # beyond what it reads and returns


def hint(value: Any) -> int:
    """A size as a number; of a symbolic one, what it was when the graph was traced."""
    return int(value.node.hint) if isinstance(value, torch.SymInt) else int(value)


def tensors_of(value: Any) -> List[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def values_of(node: torch.fx.Node) -> Tuple[Any, Any]:
    """Positional arguments and keywords with what the graph was traced with in place of its nodes."""
    values: Tuple[Any, Any] = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    return values


def costs_of(nodes: Sequence[torch.fx.Node], times: Times) -> Dict[torch.fx.Node, OpCost]:
    """What each of the nodes takes. Raises InvalidArgument for times that are none."""
    if isinstance(times, Roofline):
        return {node: OpCost(times.time_ns(_flops(node), _moved_bytes(node)), 0) for node in nodes}
    if times != "measured":
        raise InvalidArgument(f"times = {times!r}: must be a stowage.Roofline or 'measured'")
    return _measured(nodes)


def _packet(node: torch.fx.Node) -> Any:
    return getattr(node.target, "overloadpacket", node.target)


def _flops(node: torch.fx.Node) -> int:
    formula = flop_registry.get(_packet(node))
    if formula is None:
        return 0
    args, kwargs = values_of(node)
    return hint(formula(*args, **kwargs, out_val=node.meta.get("val")))


def _moved_bytes(node: torch.fx.Node) -> int:
    moved = tensors_of([n.meta.get("val") for n in node.all_input_nodes]) + tensors_of(node.meta.get("val"))
    return sum(hint(t.numel()) * t.element_size() for t in moved)


def _signature(node: torch.fx.Node) -> str:
    """Ops with equal ones take as much."""

    def described(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return [str(value.dtype), str(value.device), [hint(s) for s in value.shape], [hint(s) for s in value.stride()]]
        return str(value)

    return repr((str(node.target), pytree.tree_map(described, values_of(node))))


def _runs_alone(node: torch.fx.Node) -> bool:
    """Not collectives, which wait for other ranks, nor what calls other graphs."""
    return isinstance(node.target, torch._ops.OpOverload) and not node.target.namespace.startswith(("_c10d", "c10d"))


def _measured(nodes: Sequence[torch.fx.Node]) -> Dict[torch.fx.Node, OpCost]:
    signatures = {node: _signature(node) for node in nodes if _runs_alone(node)}
    unlike = {signature: node for node, signature in reversed(list(signatures.items()))}
    with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad(), torch.random.fork_rng():
        calls = {signature: _Call(node) for signature, node in unlike.items()}
        workspaces = _workspaces(calls)
        known = {signature: OpCost(call.time_ns(), workspaces[signature]) for signature, call in calls.items()}
    rest = {node: OpCost(Roofline().time_ns(0, _moved_bytes(node)), 0) for node in nodes if node not in signatures}
    return {**{node: known[signature] for node, signature in signatures.items()}, **rest}


def _real(value: Any) -> Any:
    """A tensor that has memory, for one that has none. Whole numbers are 0, which is a valid index of anything."""
    if isinstance(value, torch.Tensor):
        shape, stride = [hint(s) for s in value.shape], [hint(s) for s in value.stride()]
        tensor = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
        return tensor.fill_(0.5) if tensor.is_floating_point() or tensor.is_complex() else tensor.zero_()
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.hint
    return value


class _Call:
    """A node's op, to be run on tensors like those that it was traced with."""

    def __init__(self, node: torch.fx.Node) -> None:
        self._target: Any = node.target
        self._values = values_of(node)
        tensors = tensors_of((node.meta.get("val"), self._values))
        self.device = tensors[0].device if tensors else torch.device("cpu")

    def arguments(self) -> Any:
        return pytree.tree_map(_real, self._values)

    def run(self, arguments: Any) -> Any:
        args, kwargs = arguments
        return self._target(*args, **kwargs)

    def time_ns(self) -> int:
        arguments, rounds = self.arguments(), []
        for _ in range(_ROUNDS):
            self._synchronize()
            start = time.perf_counter_ns()
            self.run(arguments)
            self._synchronize()
            rounds.append(time.perf_counter_ns() - start)
        return min(rounds)

    def peak_on_gpu(self, arguments: Any) -> int:
        """The most that it holds beyond its arguments."""
        torch.cuda.reset_peak_memory_stats(self.device)
        before = int(torch.cuda.memory_allocated(self.device))
        self.run(arguments)
        return int(torch.cuda.max_memory_allocated(self.device)) - before

    def peak_by_meter(self) -> int:
        """The same on the CPU, by the allocator of ``stowage._torch``."""
        arguments = self.arguments()
        before = int(_torch.current_bytes())
        _torch.take_recent_peak_bytes()
        value = self.run(arguments)
        peak = int(_torch.take_recent_peak_bytes()) - before
        del value
        return peak

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _workspaces(calls: Dict[str, _Call]) -> Dict[str, int]:
    """Bytes that each holds for a while beyond what it reads and returns."""
    peaks: Dict[str, int] = {}
    returned: Dict[str, int] = {}
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as profile:
        for number, (signature, call) in enumerate(calls.items()):
            arguments = call.arguments()
            if call.device.type == "cuda":
                peaks[signature] = call.peak_on_gpu(arguments)
            with torch.profiler.record_function(f"{_MARK}{number}"):
                value = call.run(arguments)
            returned[signature] = sum(t.untyped_storage().nbytes() for t in _fresh(value, arguments))
            del value
    results: Any = profile.profiler
    events = results.kineto_results.events()
    on_cpu = _peaks_between_marks(events)
    if _torch is not None and not any(e.name() == "[memory]" for e in events):  # what wrap installs tells the profiler nothing
        on_cpu = {n: call.peak_by_meter() for n, call in enumerate(calls.values()) if call.device.type == "cpu"}
    return {s: max(0, peaks.get(s, on_cpu.get(number, 0)) - returned[s]) for number, s in enumerate(calls)}


def _peaks_between_marks(events: Sequence[Any]) -> Dict[int, int]:
    """The most that was allocated on the CPU within each mark, by its number."""
    marks = sorted(
        (e.start_ns(), e.start_ns() + e.duration_ns(), int(e.name()[len(_MARK) :]))
        for e in events
        if e.name().startswith(_MARK)
    )
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    peaks: Dict[int, int] = {}
    for start, end, number in marks:
        held = [nbytes for when, nbytes in changes[bisect.bisect(changes, (start,)) :] if when <= end]
        peaks[number] = max(itertools.accumulate(held), default=0)
    return peaks


def _fresh(value: Any, arguments: Any) -> List[torch.Tensor]:
    """The tensors of a value that lie in no storage of the arguments, one for each storage."""
    given = {t.untyped_storage()._cdata for t in tensors_of(arguments)}
    return list({t.untyped_storage()._cdata: t for t in tensors_of(value) if t.untyped_storage()._cdata not in given}.values())
