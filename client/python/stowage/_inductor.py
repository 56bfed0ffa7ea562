"""Planned graphs through inductor, held to their budget as inductor schedules them.

A fused kernel holds all that it reads and writes at once, and inductor fuses ops that a plan has at different times. So
only what is near in the order of the graph is fused, the order stays, and what the schedule takes is checked before there
is code: where it is more than the budget, the graph is planned anew for less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from torch import fx
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch._inductor import custom_graph_pass, memory
from torch._inductor.compile_fx import compile_fx
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from stowage.errors import Infeasible

if TYPE_CHECKING:
    from stowage.compiling import Partitioner

_Pass: Any = getattr(custom_graph_pass, "CustomSchedulerPass", custom_graph_pass.CustomGraphPass)
_REACH = 16  # nodes of inductor's schedule between those that are fused
_TRIES = 6


class _OverBudget(Exception):
    """Ends a compilation whose schedule takes more than the budget."""


class Inductor:
    """A backend of torch.compile."""

    def __init__(self, partitioner: Partitioner, options: Dict[str, Any]) -> None:
        self._partitioner = partitioner
        self._options = options

    def __call__(self, graph: fx.GraphModule, inputs: List[Any], **_ignored: Any) -> Callable[..., Any]:
        partitioner = self._partitioner
        for attempt in range(1, _TRIES + 1):
            last = attempt == _TRIES
            schedule = _KeepSchedule(partitioner, measures_all=last)
            compiled = self._compiled(graph, inputs, schedule)
            if compiled is not None:
                partitioner.took(schedule.peak_bytes)
                return compiled
            taken = partitioner.planned[-1]
            if last:
                break
            # Less by what it is over the budget, by ever more where that did not help, and last the least that there is.
            unused = taken.budget_bytes - max(taken.plan.peak_bytes, taken.predicted_peak_bytes)
            less = unused + attempt * schedule.excess_bytes
            partitioner.again(less if attempt < _TRIES - 1 else taken.budget_bytes)
        words = f"of {_TRIES} plans inductor has no schedule within a budget of {taken.budget_bytes} bytes"
        least = schedule.peak_bytes
        raise Infeasible(f"{words}: that of the least takes {least}", taken.budget_bytes, least, proven=False)

    def _compiled(self, graph: fx.GraphModule, inputs: List[Any], schedule: _KeepSchedule) -> Optional[Callable[..., Any]]:
        """None where the schedule takes more than the budget."""
        settings = {
            "custom_partitioner_fn": self._partitioner,
            "_pre_fusion_custom_pass": schedule,
            "reorder_for_peak_memory": False,
            **self._options,
        }
        self._partitioner.begin()
        copied = fx.GraphModule(graph, graph.graph.__deepcopy__({}))
        copied.meta = dict(graph.meta)
        try:
            # A backward that is compiled when it first runs would be checked when nobody can plan anew.
            with functorch_config.patch(force_non_lazy_backward_lowering=True):
                compiled: Callable[..., Any] = compile_fx(copied, inputs, config_patches=settings)
        except Exception:
            if schedule.excess_bytes == 0:
                raise
        return compiled if schedule.excess_bytes == 0 else None  # what a backward raises is put off until it runs


class _KeepSchedule(_Pass):  # type: ignore[misc]
    """Runs before inductor fuses: has it fuse neighbours alone, and looks at what comes of it.

    ``measures_all``: of forward and backward, where one alone is above the budget, too.
    """

    def __init__(self, partitioner: Partitioner, measures_all: bool) -> None:
        self._partitioner = partitioner
        self._halves_to_come = 2 if measures_all else 1
        self.peak_bytes = 0  # of what was scheduled so far
        self.excess_bytes = 0
        self._copied_bytes = 0

    def __call__(self, nodes: List[Any]) -> List[Any]:
        scheduler = nodes[0].scheduler
        can_fuse, fuse_nodes = scheduler.can_fuse, scheduler.fuse_nodes

        def can_fuse_near(a: Any, b: Any, *args: Any, **kwargs: Any) -> bool:
            reach = max(a.max_order, b.max_order) - min(a.min_order, b.min_order)
            return reach <= _REACH and bool(can_fuse(a, b, *args, **kwargs))

        def fuse_and_check(nodes: List[Any]) -> List[Any]:
            fused: List[Any] = fuse_nodes(nodes)
            self._check(scheduler, fused)
            return fused

        scheduler.can_fuse, scheduler.fuse_nodes = can_fuse_near, fuse_and_check
        return nodes

    def uuid(self) -> Any:
        return f"stowage {self._partitioner.uuid()}"

    def __deepcopy__(self, memo: Any) -> _KeepSchedule:
        return self

    def _check(self, scheduler: Any, nodes: List[Any]) -> None:
        planned = self._partitioner.last
        if planned is None:  # no backward, no plan
            return
        if not V.graph.is_backward:
            self._copied_bytes = _copied_bytes()
        beside = planned.beside_backward_bytes() + self._copied_bytes if V.graph.is_backward else 0
        self.peak_bytes = max(self.peak_bytes, beside + _peak_bytes(scheduler, nodes, planned.workspaces()))
        excess = self.peak_bytes - self._partitioner.planned[-1].budget_bytes
        if excess > 0 and self._partitioner.budget != "least":
            self.excess_bytes = excess
        self._halves_to_come -= 1
        if self.excess_bytes > 0 and self._halves_to_come <= 0:
            raise _OverBudget


def keeps_schedules() -> bool:
    """Whether what inductor compiles now is held to its budget here."""
    return isinstance(inductor_config._pre_fusion_custom_pass, _KeepSchedule)


def _peak_bytes(scheduler: Any, nodes: List[Any], workspaces: Dict[Any, int]) -> int:
    """The most that a schedule holds, by inductor's account, with the workspaces of ops that it calls."""
    inputs, outputs = OrderedSet(V.graph.graph_inputs.keys()), OrderedSet(V.graph.get_output_names())
    _, freeable = memory.prepare_planning_info(nodes, scheduler.name_to_buf, scheduler.name_to_fused_node, inputs, outputs)
    _, held = memory.estimate_peak_memory(nodes, freeable, outputs)
    peaks: List[int] = [
        bytes_held + (workspaces.get(_target(node), 0) if node.is_extern() else 0) for node, bytes_held in zip(nodes, held)
    ]
    return max(peaks)


def _copied_bytes() -> int:
    """Of what the forward hands to the backward in place of its own inputs, in a layout that suits a kernel: there they
    are the caller's, which nobody counts."""
    results = list(V.graph.module.graph.output_node().args[0])
    handed = zip(results, V.graph.graph_outputs)
    copies = {o.get_name(): o for node, o in handed if _is_input(node) and o.get_name() not in V.graph.graph_inputs}
    return sum(int(o.get_numel()) * o.get_dtype().itemsize for o in copies.values())


def _is_input(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.op == "placeholder"


def _target(node: Any) -> Optional[Any]:
    origin = node.node.get_origin_node() if node.node is not None else None
    return None if origin is None else origin.target
