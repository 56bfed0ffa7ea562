"""Compiled models that train within a budget: ``stowage.compile`` and ``stowage.Partitioner``.

    model = stowage.compile(model, budget="60%")

torch.compile traces forward and backward as one joint graph. The plan says which of the forward's tensors are kept for the
backward and which ops the backward runs again, how often and when.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch._functorch import partitioners
from torch._inductor import config as inductor_config
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from stowage._emission import PlannedGraph
from stowage._inductor import Inductor, keeps_schedules
from stowage._joint import JointGraph
from stowage._joint_plans import JointPlans
from stowage._op_costs import Times
from stowage.errors import FailedPrecondition, Infeasible, InvalidArgument
from stowage.planning import Budget, Plan, Profile, __version__
from stowage.wrapping import Service, Training, _service_of

_NEAR = 16  # plans that are tried one after the other, before those are left out that take more than the budget allows

Model = TypeVar("Model", bound=Callable[..., Any])


class Planned(NamedTuple):
    """What became of one joint graph."""

    profile: Profile
    plan: Plan
    budget_bytes: int
    predicted_peak_bytes: int  # of the graph as it runs op by op, what is in no plan among it
    saved_bytes: int  # what the forward leaves for the backward, parameters and inputs not counted
    repeated_ops: int  # runs of ops beyond their first
    source: str  # of the plan: "local", or "cache", "solved" or "shared" of the service


class _Fit(NamedTuple):
    graph: PlannedGraph
    plan: Plan
    budget_bytes: int
    source: str


class Partitioner(CustomPartitionerFn):  # type: ignore[misc]
    """Splits joint graphs of torch.compile by a plan within a budget.

        torch.compile(model, options={"custom_partitioner_fn": stowage.Partitioner("8GiB")})

    It is a ``partition_fn`` for ``torch._dynamo.backends.common.aot_autograd``, too.

    ``budget``: bytes as an int, text such as "8GiB", a share such as "60%" of what the step takes if all is kept, or
    "least". It covers what ``stowage.export`` counts, of each graph by itself: where a model breaks into several, tensors
    of one that wait while another runs are not covered. ``times``: as of export; measured if left out.
    ``deadline_s``: seconds for a plan. ``server``: the service that plans are asked of, "host:port" or a stowage.rpc.Server,
    which says what that means; "least" is always of this process. The key is of the graph, the same in all processes and
    ranks: times and workspaces are not in it, and what this process measures decides whether a cached plan holds here.

    Under inductor by itself, it plans what ops take one by one; fused kernels hold more at once, and inductor's schedule may
    take more than the budget: up to twice as much was measured, which is said once, as a warning. ``stowage.compile`` has
    inductor keep to the budget.

    ``planned`` has, for each graph, what became of it; not of graphs that torch.compile takes from its cache on disk.
    Calls raise Infeasible where nothing fits the budget, InvalidArgument for sizes that are symbols (``dynamic=True``, or a
    second shape without ``dynamic=False``).
    """

    def __init__(
        self, budget: Budget, *, times: Times = "measured", deadline_s: Optional[float] = None, server: Service = None
    ) -> None:
        self.budget = budget
        self.times = times
        self.deadline_s = deadline_s
        self.server = server
        self.planned: List[Planned] = []
        self._service = _service_of(server)
        self._plans: Dict[str, JointPlans] = {}  # by key
        self._reserves: Dict[str, int] = {}  # bytes by key
        self._last: Optional[PlannedGraph] = None
        self._has_warned = False

    def __call__(
        self,
        gm: fx.GraphModule,
        joint_inputs: Sequence[object],
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Optional[List[int]] = None,
        **_: Any,
    ) -> Tuple[fx.GraphModule, fx.GraphModule]:
        _refuse_symbols(gm)
        if inductor_config.custom_partitioner_fn is self and not keeps_schedules() and not self._has_warned:
            self._has_warned = True
            words = "inductor by itself fuses what a plan has at different times, and may take more than the budget"
            warnings.warn(f"stowage: {words}: stowage.compile(model, budget) has it keep to it", stacklevel=2)
        gm.graph.eliminate_dead_code()
        joint = JointGraph(gm, num_fwd_outputs, self.times)
        profile = joint.profile("joint graph", self.times)
        graph, plan, budget_bytes, source = self._fit(joint, profile)
        self._last = graph
        self.planned.append(Planned(profile, plan, budget_bytes, graph.peak_bytes, graph.saved_bytes, graph.repeated, source))
        return _split(graph, num_fwd_outputs, static_lifetime_input_indices or [])

    def uuid(self) -> Any:
        """Compiled graphs are cached under it: they are others under other budgets, costs and versions."""
        digest = hashlib.sha256(repr((self.budget, self.times, self.deadline_s, __version__)).encode())
        for file in sorted(Path(__file__).parent.glob("*.py")):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def _fit(self, joint: JointGraph, profile: Profile) -> _Fit:
        """The fastest plan whose graph keeps within the budget: as it runs, it may take more than the plan says."""
        key = profile.key()
        plans = self._plans.setdefault(key, JointPlans(profile, self._service, self.deadline_s))
        if self.budget == "least":
            plan = plans.least()
            graph = PlannedGraph(joint, plan)
            return _Fit(graph, plan, max(plan.peak_bytes, graph.peak_bytes), plans.source)
        budget_bytes = profile.budget_bytes(self.budget)
        reserve = self._reserves.get(key, 0)
        allowed = target = budget_bytes - reserve
        for tries in itertools.count():
            try:
                plan = plans.at(max(0, target))
            except Infeasible:
                break
            graph = PlannedGraph(joint, plan)
            if graph.peak_bytes <= allowed:
                return _Fit(graph, plan, budget_bytes, plans.source)
            # The next plan below, where plans are here; else each takes a question, and nothing between is asked for.
            near = plans.source == "local" and tries < _NEAR
            beyond = 0 if near else graph.peak_bytes - plan.peak_bytes
            target = min(plan.peak_bytes - 1, allowed - beyond)
        plan = plans.least()
        graph = PlannedGraph(joint, plan)
        if graph.peak_bytes <= allowed or reserve > 0:
            return _Fit(graph, plan, budget_bytes, plans.source)
        raise _infeasible(budget_bytes, max(plan.peak_bytes, graph.peak_bytes))

    def begin(self) -> None:
        """Before a graph is compiled: until it is planned, none is the last."""
        self._last = None

    def again(self, reserve_bytes: int) -> None:
        """Has the graph that was planned last, when it comes once more, take that much less than the budget: compiled, it
        takes more than op by op. Where nothing takes so little, it takes the least."""
        self._reserves[self.planned.pop().profile.key()] = reserve_bytes

    def took(self, peak_bytes: int) -> None:
        """What the last graph takes as it is compiled: its budget, where that was to be the least."""
        if self.budget == "least" and self._last is not None:
            planned = self.planned.pop()
            self.planned.append(planned._replace(budget_bytes=max(peak_bytes, planned.budget_bytes)))

    @property
    def last(self) -> Optional[PlannedGraph]:
        """The graph that was planned last."""
        return self._last

    def __deepcopy__(self, memo: Any) -> Partitioner:
        return self  # inductor copies its settings

    def __reduce__(self) -> Tuple[Any, ...]:
        return _partitioner, (self.budget, self.times, self.deadline_s, self.server)


def _partitioner(budget: Budget, times: Times, deadline_s: Optional[float], server: Service) -> Partitioner:
    return Partitioner(budget, times=times, deadline_s=deadline_s, server=server)


def _infeasible(budget_bytes: int, least: int) -> Infeasible:
    return Infeasible(f"no plan fits a budget of {budget_bytes} bytes: {least} bytes are needed", budget_bytes, least, False)


def _refuse_symbols(graph: fx.GraphModule) -> None:
    """A plan is of sizes: by one for others, a step would take another peak."""
    for node in graph.graph.nodes:
        if node.op == "placeholder" and _has_symbols(node.meta.get("val")):
            raise InvalidArgument(
                f"{node.name}: its size is a symbol: compile with dynamic=False, each shape then has its own plan"
            )


def _has_symbols(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in value.shape)
    return isinstance(value, torch.SymInt)


def compile(
    model: Model,
    budget: Union[Budget, Partitioner],
    *,
    backend: str = "inductor",
    fullgraph: bool = True,
    server: Service = None,
    **options: Any,
) -> Model:
    """torch.compile, with training steps that keep within a budget. Evaluation is as with torch.compile.

    ``budget``: as of ``Partitioner``, or a Partitioner. ``backend``: "inductor", or "aot_eager", which runs the ops of the
    joint graph as they are: gradients then are bit for bit those of torch.compile with "aot_eager". ``fullgraph``: a model
    that breaks into several graphs is refused, because the budget would hold for each by itself. ``options``: of inductor.
    Each shape of batch is compiled, and planned, by itself. ``server``: as of ``Partitioner``.

    The compiled model's ``stowage`` is the Partitioner, whose ``planned`` fills as graphs are compiled.

    Raises InvalidArgument for another backend and for ``dynamic``, FailedPrecondition for a model that is wrapped, and on a
    PyTorch before 2.11. The first call raises what torch.compile raises where a model breaks into several graphs
    (torch._dynamo.exc.Unsupported).

    >>> import stowage, torch
    >>> model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(8)])
    >>> compiled = stowage.compile(model, budget="70%", backend="aot_eager")
    >>> compiled(torch.randn(512, 64)).sum().backward()
    >>> planned = compiled.stowage.planned[0]
    >>> planned.predicted_peak_bytes <= planned.budget_bytes, planned.repeated_ops > 0
    (True, True)
    """
    if "dynamic" in options:
        raise InvalidArgument("dynamic: must be left out: each shape of batch is compiled, and planned, by itself")
    if isinstance(budget, Partitioner) and server is not None:
        raise InvalidArgument("server: must be the Partitioner's")
    if isinstance(getattr(model, "stowage", None), Training):
        raise FailedPrecondition("the model is wrapped, and trains by another plan: unwrap it first")
    partitioner = budget if isinstance(budget, Partitioner) else Partitioner(budget, server=server)
    if backend == "inductor":
        compiled = torch.compile(model, dynamic=False, fullgraph=fullgraph, backend=Inductor(partitioner, options))
    elif backend == "aot_eager":
        if options:
            raise InvalidArgument(f"options = {sorted(options)}: must be empty with backend='aot_eager'")
        eager = aot_autograd(
            fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partitioner, keep_inference_input_mutations=True
        )
        compiled = torch.compile(model, dynamic=False, fullgraph=fullgraph, backend=eager)
    else:
        raise InvalidArgument(f"backend = {backend!r}: must be 'inductor' or 'aot_eager'")
    compiled.__dict__["stowage"] = partitioner
    return compiled  # type: ignore[no-any-return]


def _split(planned: PlannedGraph, forward_outputs: int, static_inputs: List[int]) -> Tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward of a planned joint graph."""
    placeholders = [n for n in planned.module.graph.nodes if n.op == "placeholder"]
    primals = [n for n in placeholders if str(n.target).startswith("primals")]
    static = torch.utils._ordered_set.OrderedSet(n for i, n in enumerate(primals) if i in set(static_inputs))
    forward, backward = partitioners._extract_fwd_bwd_modules(
        planned.module,
        list(planned.saved),
        list(planned.saved_symbols),
        num_fwd_outputs=forward_outputs,
        static_lifetime_input_nodes=static,
    )
    _drop_unread(forward.graph, lambda node: not planned.is_after(node))
    _drop_unread(backward.graph, planned.is_after)
    forward.recompile()
    backward.recompile()
    return forward, backward


def _drop_unread(graph: fx.Graph, is_here: Callable[[fx.Node], bool]) -> None:
    """An op with an effect, or that draws, is in the half that the plan has it in alone, even where the other could run it."""
    graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output") or (n.is_impure() and is_here(n)))
