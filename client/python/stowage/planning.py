"""Profiles, plans and frontiers: the planning library without a framework.

Sizes are bytes and times are nanoseconds, whole numbers all of them; names say which. Everything here is immutable and
may be used from several threads; a solve lets other threads of Python run.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from stowage import _core
from stowage.errors import Infeasible, InvalidArgument

__version__: str = _core.VERSION

Budget = Union[int, str]
"""Bytes; or text: ``"8GiB"``, ``"60%"`` of what plain training takes, or ``"least"``."""


class Instruction(NamedTuple):
    """One step of a schedule, in the words of ``stowage plan``.

    ``stage`` counts from 1, a chain's loss is the last one; of a graph it is the place in program order plus 1.
    ``tensor`` ("activation" or "saved") and ``part`` are of account for discards and copies.
    """

    op: str
    stage: int
    tensor: str = "activation"
    stream: str = "compute"
    part: int = 0


class FrontierPoint(NamedTuple):
    """What a step takes by one of a frontier's schedules."""

    peak_bytes: int
    makespan_ns: int


class Plan:
    """A schedule that the evaluator has accepted within a budget, what it takes, and how good that is.

    Attributes in bytes: ``budget_bytes``; ``peak_bytes``, the most that is held at any time of the step;
    ``store_all_peak_bytes``, the same of plain training; ``least_bytes``, the smallest budget that the solver knows a
    schedule for (0: not looked for). In nanoseconds: ``makespan_ns``, the whole step; ``store_all_makespan_ns``;
    ``recompute_time_ns``, the part of it that repeats forwards; ``lower_bound_ns``, which no schedule within the budget
    goes below. ``gap`` is makespan / lower bound - 1.
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: _core.Plan) -> None:
        self._plan = plan

    @property
    def budget_bytes(self) -> int:
        return self._plan.budget_bytes

    @property
    def peak_bytes(self) -> int:
        return self._plan.peak_bytes

    @property
    def makespan_ns(self) -> int:
        return self._plan.makespan_ns

    @property
    def recompute_time_ns(self) -> int:
        return self._plan.recompute_time_ns

    @property
    def recomputed_forwards(self) -> int:
        return self._plan.recomputed_forwards

    @property
    def store_all_peak_bytes(self) -> int:
        return self._plan.store_all_peak_bytes

    @property
    def store_all_makespan_ns(self) -> int:
        return self._plan.store_all_makespan_ns

    @property
    def lower_bound_ns(self) -> int:
        return self._plan.lower_bound_ns

    @property
    def gap(self) -> float:
        return self._plan.gap

    @property
    def proven_optimal(self) -> bool:
        return self._plan.proven_optimal

    @property
    def schedule_class(self) -> str:
        return self._plan.schedule_class

    @property
    def least_bytes(self) -> int:
        return self._plan.least_bytes

    @property
    def solver(self) -> str:
        return self._plan.solver

    @property
    def solve_time_ns(self) -> int:
        return self._plan.solve_time_ns

    @property
    def revision(self) -> int:
        """Of a service's plan it grows with every re-solve; 1 of one that was made here."""
        return self._plan.revision

    @property
    def search_complete(self) -> bool:
        """False: a deadline cut the search short."""
        return self._plan.search_complete

    @property
    def digest(self) -> str:
        """SHA-256 of the schedule, 64 digits."""
        return self._plan.digest

    def schedule(self) -> List[Instruction]:
        """The instructions, in order."""
        return [Instruction(*fields) for fields in self._plan.schedule()]

    def schedule_text(self) -> str:
        """One line per run of like instructions."""
        return self._plan.schedule_text()

    def summary(self) -> str:
        """A few lines: budget, peak, time, bound, solver."""
        return self._plan.summary()

    def explain(self) -> str:
        """The summary, where the peak is, and what becomes of each stage and what that costs."""
        return self._plan.explain()

    def report(self, frontier: Optional[Frontier] = None, label: str = "plan") -> str:
        """A page of HTML to move around in, complete in itself; with the frontier's curve if one is given."""
        return self._plan.report(label, None if frontier is None else frontier._frontier)

    def to_dict(self) -> Dict[str, Any]:
        """The plan with the names of the contract's JSON mapping."""
        return self._plan.to_dict()

    def to_json(self) -> str:
        """What ``stowage plan --format=json`` writes: ``stowage report`` and others read it."""
        return json.dumps(self._plan.to_dict(), indent=1)

    def __repr__(self) -> str:
        return repr(self._plan)


class Frontier:
    """What a solver has at every budget, from one solve."""

    __slots__ = ("_frontier",)

    def __init__(self, frontier: _core.Frontier) -> None:
        self._frontier = frontier

    @property
    def points(self) -> List[FrontierPoint]:
        """Peaks rise, makespans fall."""
        return [FrontierPoint(*point) for point in self._frontier.points]

    @property
    def least_bytes(self) -> int:
        """Below it nothing of the solver's class fits: proven."""
        return self._frontier.least_bytes

    @property
    def exact(self) -> bool:
        """At every budget no schedule of the class is faster."""
        return self._frontier.exact

    @property
    def search_complete(self) -> bool:
        """False where the timeout cut the search short: a longer one may find more points, and faster ones."""
        return self._frontier.search_complete

    def plan_at(self, budget_bytes: int) -> Plan:
        """The plan for a budget. Raises Infeasible as Profile.plan does."""
        return _found(self._frontier.plan_at(budget_bytes))


class PipelineStage(NamedTuple):
    """A stage of a pipeline: layers of the chain, from 1, and what a microbatch takes on it.

    ``stash_bytes`` is held by each microbatch in flight. ``schedule`` is of the stage's layers, from 1, and a loss that
    stands for the stages behind; its first ``forward_instructions`` are the forward of a microbatch, the rest its backward.
    """

    first_layer: int
    last_layer: int
    forward_time_ns: int
    backward_time_ns: int
    stash_bytes: int
    schedule: List[Instruction]
    forward_instructions: int


class PipelinePlan(NamedTuple):
    """A plan for each stage of a pipeline, stage s on device s % devices.

    ``makespan_ns`` is the step with all microbatches, warm-up and cool-down among it; ``peak_bytes`` is by device. No plan
    of ``schedule_class`` is below ``lower_bound_ns``.
    """

    makespan_ns: int
    lower_bound_ns: int
    proven_optimal: bool
    schedule_class: str
    peak_bytes: List[int]
    stages: List[PipelineStage]


class Profile:
    """What one training step takes, stage by stage (or op by op): the input of all planning.

    >>> stage = {"forward_time_ns": 10, "backward_time_ns": 20, "output_bytes": 100,
    ...          "output_gradient_bytes": 100, "saved_bytes": 300}
    >>> profile = Profile.of_chain([stage] * 8, input_bytes=100)
    >>> profile.store_all_peak_bytes
    2600
    >>> plan = profile.plan("60%")
    >>> plan.peak_bytes <= plan.budget_bytes == 1560
    True
    >>> plan.makespan_ns - profile.ideal_time_ns
    40
    """

    __slots__ = ("_profile",)

    def __init__(self, profile: _core.Profile) -> None:
        self._profile = profile

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Profile:
        """A profile from the names of the contract's JSON mapping (``proto/stowage/v1/profile.proto``).

        Raises InvalidArgument, which names the field, the value and the rule:

        >>> Profile.from_dict({"chain": {"stages": [{"output_bytes": 8, "saved_bytes": 4}]}})
        Traceback (most recent call last):
        stowage.errors.InvalidArgument: chain.stages[0].saved_bytes = 4: must be >= output_bytes (8)
        """
        return cls(_core.Profile.from_dict(dict(fields)))

    @classmethod
    def of_chain(
        cls,
        stages: Iterable[Mapping[str, Any]],
        *,
        input_bytes: int = 0,
        input_gradient_bytes: int = 0,
        loss: Optional[Mapping[str, Any]] = None,
        name: str = "",
    ) -> Profile:
        """A chain of stages that run one after the other, then the loss; a stage's fields are those of from_dict."""
        chain: Dict[str, Any] = {
            "stages": [dict(stage) for stage in stages],
            "input_bytes": input_bytes,
            "input_gradient_bytes": input_gradient_bytes,
            "loss": None if loss is None else dict(loss),
        }
        return cls.from_dict({"name": name, "chain": chain})

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """A profile from text that ``stowage profile`` or to_json wrote. Raises InvalidArgument."""
        return cls.from_dict(_object_of(text))

    @classmethod
    def load(cls, path: Union[str, PathLike[str]]) -> Profile:
        """from_json of a file. Raises what reading it raises."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def to_dict(self) -> Dict[str, Any]:
        """Every field, zeros too."""
        return self._profile.to_dict()

    def to_json(self) -> str:
        """What the command and the service read."""
        return json.dumps(self.to_dict(), indent=1)

    @property
    def name(self) -> str:
        return self._profile.name

    @property
    def kind(self) -> str:
        """ "chain", "graph" or "compute DAG"."""
        return self._profile.kind

    @property
    def labels(self) -> List[str]:
        """A name for each number that instructions have; [0] is a chain's input."""
        return self._profile.labels

    @property
    def ideal_time_ns(self) -> int:
        """All forwards and backwards once."""
        return self._profile.ideal_time_ns

    @property
    def store_all_peak_bytes(self) -> int:
        """What plain training takes: the whole that a share like "60%" is of. Raises InvalidArgument for a graph on
        which plain training is not valid."""
        return self._profile.store_all_peak_bytes

    def key(self, *, solver: str = "", slots: int = 0, recompute_only: bool = False, tenant: str = "") -> str:
        """The key under which a service caches its plans, 64 digits; times and names do not change it."""
        return self._profile.key(solver, slots, recompute_only, tenant)

    def plan(
        self,
        budget: Budget,
        *,
        solver: str = "",
        slots: int = 0,
        threads: int = 1,
        deadline_s: Optional[float] = None,
        table_limit_bytes: Optional[int] = None,
        recompute_only: bool = False,
    ) -> Plan:
        """The fastest schedule that the solver finds within the budget.

        ``solver``: a name of ``solvers()``, or the planner's choice. ``slots``: of its table; 0 lets it choose.
        ``deadline_s``: seconds. ``recompute_only``: copies nothing to host memory.

        Raises Infeasible if nothing fits, InvalidArgument, DeadlineExceeded without any answer by then,
        ResourceExhausted for tables above table_limit_bytes.

        >>> profile = Profile.of_chain([{"output_bytes": 100, "saved_bytes": 300}] * 4, input_bytes=100)
        >>> try:
        ...     profile.plan(50)
        ... except Infeasible as error:
        ...     print(error.least_bytes, error.proven)
        500 True
        """
        arguments = _arguments(solver, slots, threads, deadline_s, table_limit_bytes, recompute_only)
        return _found(self._profile.plan(_budget(budget), arguments))

    def _solve(self, budget_bytes: int, stop: _core.Stop, *, solver: str, slots: int, recompute_only: bool) -> Plan:
        """plan, until the stop is requested: then it raises Cancelled."""
        arguments = _core.SolveArguments(
            solver=solver, slots=slots, threads=1, stop=stop, table_limit_bytes=None, recompute_only=recompute_only
        )
        return _found(self._profile.plan(budget_bytes, arguments))

    def pipeline(
        self,
        budgets: Union[int, Sequence[int]],
        *,
        devices: int,
        microbatches: int,
        chunks: int = 1,
        last_layers: Sequence[int] = (),
        transfer_time_ns: int = 0,
        deadline_s: Optional[float] = None,
    ) -> PipelinePlan:
        """The chain as a pipeline, each device within a budget of its own, so that the whole step is fastest.

        ``budgets``: bytes, for all devices or for each. ``microbatches``: of a step, each as the profile has it.
        ``chunks``: stages on each device; 1 is the 1F1B schedule, more are interleaved. ``last_layers``: where stages end;
        chosen if it is empty. ``transfer_time_ns``: of an output to the next device.

        Raises Infeasible if nothing fits: its ``least_bytes`` is enough where every device has it.

        >>> layer = {"forward_time_ns": 10, "backward_time_ns": 20, "output_bytes": 10, "saved_bytes": 100}
        >>> profile = Profile.of_chain([layer] * 8, input_bytes=10)
        >>> plan = profile.pipeline(500, devices=2, microbatches=4)
        >>> len(plan.stages), plan.stages[-1].last_layer, max(plan.peak_bytes) <= 500
        (2, 8, True)
        """
        each = _budgets(budgets, devices)
        arguments = _arguments("", 0, 1, deadline_s, None, True)
        fields = self._profile.pipeline(devices, chunks, microbatches, transfer_time_ns, each, list(last_layers), arguments)
        if fields["status"] != "found":
            least, proven = fields["least_equal_bytes"], fields["status"] == "proven infeasible"
            short = f"device {fields['short_device']} needs {fields['least_bytes']} bytes; "
            message = (
                f"no pipeline fits: {short if fields['short_device'] >= 0 else ''}"
                f"{least} bytes are enough on every device{', proven' if proven else ''}"
            )
            raise Infeasible(message, min(each), least, proven)
        stages = [
            PipelineStage(
                stage["first_layer"],
                stage["last_layer"],
                stage["forward_time_ns"],
                stage["backward_time_ns"],
                stage["stash_bytes"],
                [Instruction(*instruction) for instruction in stage["instructions"]],
                stage["forward_instructions"],
            )
            for stage in fields["stages"]
        ]
        return PipelinePlan(
            fields["makespan_ns"],
            fields["lower_bound_ns"],
            fields["proven_optimal"],
            fields["schedule_class"],
            fields["peak_bytes"],
            stages,
        )

    def frontier(
        self,
        *,
        solver: str = "",
        slots: int = 0,
        threads: int = 1,
        deadline_s: Optional[float] = None,
        table_limit_bytes: Optional[int] = None,
        recompute_only: bool = False,
    ) -> Frontier:
        """All budgets at once. Arguments and errors are those of plan."""
        arguments = _arguments(solver, slots, threads, deadline_s, table_limit_bytes, recompute_only)
        return Frontier(self._profile.frontier(arguments))

    def budget_bytes(self, budget: Budget, *, solver: str = "", recompute_only: bool = False) -> int:
        """A budget in bytes: a share of plain training's peak, or the least that the solver plans within."""
        arguments = _arguments(solver, 0, 1, None, None, recompute_only)
        return self._profile.budget_bytes(_budget(budget), arguments)

    def lower_bound_ns(self, budget_bytes: int) -> int:
        """No schedule within the budget is faster, of whatever class."""
        return self._profile.lower_bound_ns(budget_bytes)

    def plan_of(self, schedule: Sequence[Sequence[Any]]) -> Plan:
        """What a schedule of the caller's own takes, as a plan with its peak as budget.

        Entries are Instructions, or tuples that leave out what follows from the op. Raises InvalidArgument that names
        the first instruction that is not valid.

        >>> profile = Profile.of_chain([{"output_bytes": 1, "saved_bytes": 3}])
        >>> profile.plan_of([("forward-save", 1), ("forward-save", 2), ("backward", 2), ("backward", 1)]).peak_bytes
        3
        """
        return Plan(self._profile.plan_of_schedule(schedule))

    def plan_from_json(self, text: str, *, recompute_only: bool = False) -> Plan:
        """plan_from_dict of what ``stowage plan --format=json`` or Plan.to_json wrote."""
        return self.plan_from_dict(_object_of(text), recompute_only=recompute_only)

    def plan_from_dict(self, fields: Mapping[str, Any], *, recompute_only: bool = False) -> Plan:
        """A plan that somebody else made, accepted by the evaluator under this profile's costs.

        ``recompute_only``: one that copies is not accepted. Raises InvalidArgument where it is no plan for this profile,
        FailedPrecondition where its peak is above its budget, Infeasible where it is one that says so.
        """
        return _found(self._profile.plan_from_dict(dict(fields), recompute_only))

    def __repr__(self) -> str:
        return f"<stowage.Profile {self.name!r}, {self.kind} of {len(self.labels) - 1}>"


def solvers() -> List[Tuple[str, str]]:
    """Name and description of every solver."""
    return _core.solvers()


def _object_of(text: str) -> Dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidArgument("not an object of JSON")
    return fields


def _budget(budget: Budget) -> Budget:
    if isinstance(budget, bool) or not isinstance(budget, (int, str)):
        raise InvalidArgument(f"budget = {budget!r}: must be bytes as an int, or text such as '60%', '8GiB' or 'least'")
    if isinstance(budget, int) and not 0 <= budget < 2**62:
        raise InvalidArgument(f"budget = {budget}: must be in [0, 2**62)")
    return budget


def _budgets(budgets: Union[int, Sequence[int]], devices: int) -> List[int]:
    """One for each device; the library checks whether there are as many."""
    each = list(budgets) if isinstance(budgets, Sequence) else [budgets]
    if any(isinstance(b, bool) or not isinstance(b, int) or not 0 <= b < 2**62 for b in each):
        raise InvalidArgument(f"budgets = {budgets!r}: must be bytes, for all devices or for each, each in [0, 2**62)")
    return each * devices if isinstance(budgets, int) and 1 <= devices <= 1024 else each


def _arguments(
    solver: str,
    slots: int,
    threads: int,
    deadline_s: Optional[float],
    table_limit_bytes: Optional[int],
    recompute_only: bool,
) -> _core.SolveArguments:
    return _core.SolveArguments(
        solver=solver,
        slots=slots,
        threads=threads,
        stop=_core.Stop(deadline_s),
        table_limit_bytes=table_limit_bytes,
        recompute_only=recompute_only,
    )


def _found(plan: _core.Plan) -> Plan:
    if plan.status == "found":
        return Plan(plan)
    proven = plan.status == "proven infeasible"
    needed = f"{plan.least_bytes} bytes are needed" if plan.least_bytes else "nothing was found"
    message = f"no schedule fits a budget of {plan.budget_bytes} bytes: {needed}{', proven' if proven else ''}"
    raise Infeasible(message, plan.budget_bytes, plan.least_bytes, proven)
