"""A PyTorch model trained within a budget: ``stowage.wrap``.

    model = stowage.wrap(model, budget="60%")

The training loop stays as it is. The first step runs with every block recomputed while each block is measured; from the
second step on the model trains by the plan that is made from these measurements.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

import torch

from stowage import _states
from stowage._book import Event
from stowage._chain import Chain
from stowage._device import Device, device_of
from stowage._forwards import PlannedForward
from stowage._ranks import ranks_of
from stowage._records import Records
from stowage._resident import DeviceMemory, Resident
from stowage._sharding import is_flattened
from stowage.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from stowage.planning import Budget, Plan, Profile

if TYPE_CHECKING:
    from stowage._ranks import Ranks
    from stowage.rpc import PlanService, Server

Model = TypeVar("Model", bound=torch.nn.Module)
Blocks = Union[None, str, Iterable[torch.nn.Module]]
Service = Union[None, str, "Server"]


class Memory(NamedTuple):
    """Bytes, counted as the plan counts; None before there is a plan, or a step that was measured."""

    budget_bytes: Optional[int]
    predicted_peak_bytes: Optional[int]
    measured_peak_bytes: Optional[int]  # of the last step that was measured
    plain_peak_bytes: Optional[int]  # of plain training, by the profile
    offloaded_bytes: int  # that the last step copied to the host
    resident: Optional[Resident]  # what of a device_budget was not the plan's


class Training:
    """What is known of a wrapped model's training: its ``stowage`` attribute.

    It tells of the shape of batch that was seen last.
    """

    def __init__(self, chain: Chain, blocks: Sequence[torch.nn.Module]) -> None:
        self._chain = chain
        self._blocks = [weakref.ref(block) for block in blocks]

    @property
    def budget(self) -> Optional[Budget]:
        """As it was given to wrap."""
        return None if isinstance(self._chain.budget, DeviceMemory) else self._chain.budget

    @property
    def resident(self) -> Optional[Resident]:
        """What of a device_budget was not the plan's when it was made, bytes; None without one, and before there is a plan."""
        return self._chain.budget.resident if isinstance(self._chain.budget, DeviceMemory) else None

    @property
    def profile(self) -> Optional[Profile]:
        """What was measured, bytes and nanoseconds; None before the second step, or the first by what a ``cache`` has."""
        return None if self._chain.last_book is None else self._chain.last_book.profile

    @property
    def plan(self) -> Optional[Plan]:
        """None before the second step, or the first by what a ``cache`` has."""
        return None if self._chain.last_book is None else self._chain.last_book.plan

    @property
    def source(self) -> Optional[str]:
        """Where the plan comes from: "cache", "solved" or "shared" of a service, "local", or "state" (load_state). None before
        there is one."""
        book = self._chain.last_book
        return None if book is None or book.plan is None else book.source

    @property
    def is_measured_here(self) -> Optional[bool]:
        """Whether this process has measured the profile, or an earlier one (``cache``). None before there is one."""
        return None if self.profile is None or self._chain.last_book is None else self._chain.last_book.record is None

    @property
    def predicted_peak_bytes(self) -> Optional[int]:
        """The plan's, None before there is one."""
        return None if self.plan is None else self.plan.peak_bytes

    @property
    def measured_peak_bytes(self) -> Optional[int]:
        """The most that the last step that was measured held, counted as the plan counts; None before the first backward has
        ended. On the CPU each step is measured, elsewhere the first of each plan."""
        return self._chain.measured_peak_bytes

    @property
    def recomputed(self) -> List[int]:
        """How often each block ran again in the last step, in the order of the blocks."""
        return self._chain.recomputed[1:]

    @property
    def offloaded_bytes(self) -> int:
        """What the last step copied to the host."""
        return self._chain.copied["offloaded_bytes"]

    @property
    def kept(self) -> Dict[int, str]:
        """The blocks, from 1, that are never recomputed, and why."""
        return {} if self._chain.last_book is None else dict(self._chain.last_book.kept)

    @property
    def memory(self) -> Memory:
        """What training takes beside what it may."""
        plan, chain = self.plan, self._chain
        return Memory(
            None if plan is None else plan.budget_bytes,
            self.predicted_peak_bytes,
            chain.measured_peak_bytes,
            None if plan is None else plan.store_all_peak_bytes,
            self.offloaded_bytes,
            self.resident,
        )

    @property
    def events(self) -> List[Event]:
        """What happened, the last thousand: measured, planned, widened, drift and so on (Event.kind), at which step."""
        return list(self._chain.events)

    @property
    def notes(self) -> List[str]:
        """What was said of forwards that could not be planned."""
        return list(self._chain.notes)

    @property
    def last_failure(self) -> Optional[BaseException]:
        """What a planned step raised last: PyTorch 1.13 makes RuntimeErrors of exceptions in a backward."""
        return self._chain.last_failure

    def explain(self) -> str:
        """Why the plan costs what it costs. Raises FailedPrecondition before there is one."""
        return self._planned().explain()

    def report(self) -> str:
        """The plan as a page of HTML, with the frontier of all budgets. Raises as explain does."""
        plan, profile = self._planned(), self.profile
        return plan.report(None if profile is None else profile.frontier(recompute_only=True))

    @property
    def ranks(self) -> int:
        """How many plan as one; 1 for a model that trains alone."""
        return 1 if self._chain.ranks is None else self._chain.ranks.group.size

    def replan(self) -> None:
        """Has all ranks measure and plan anew, in the next step but one. Raises FailedPrecondition for a model without any."""
        self._job().note(replan=True)

    def leave(self) -> None:
        """This rank makes no more steps: the others go on by the plans that they have, and plan no more. For data that ends
        early on some ranks, after the last step there. Waits for nobody."""
        self._job().leave()

    def state(self, error: Optional[BaseException] = None) -> Dict[str, Any]:
        """For the job's checkpoint: the plans that it trains by, with digest and revision, as plain values.

        ``error``: what has ended the training, where this is called for that. If memory had run out, plans take less after a
        restart with this state than the plan of the last step did. Each rank has a state of its own.
        """
        return _states.state_of(self._chain, error)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Before the first step of a restart: what was planned within about the same budget is planned by no solver again,
        if it still fits what the first step measures. A job of another number of ranks plans anew, once. Raises
        InvalidArgument for what state() has not returned, FailedPrecondition after the first step."""
        if self._chain.books:
            raise FailedPrecondition("load_state: the training has begun")
        self._chain.resumed = _states.Resumed(state)

    def _job(self) -> Ranks:
        if self._chain.ranks is None:
            raise FailedPrecondition("this model trains alone: no step was made beside other ranks")
        return self._chain.ranks

    def _planned(self) -> Plan:
        if self.plan is None:
            raise FailedPrecondition("there is no plan yet: the first step measures, the second one has a plan")
        return self.plan

    def _unwrap(self) -> None:
        if self._chain.ranks is not None:
            try:
                self._chain.ranks.leave()  # the others would wait for what it says no more
            except Unavailable:
                pass  # none is there to hear it
        for reference in self._blocks:
            block = reference()
            planned = None if block is None else block.__dict__.get("forward")
            if isinstance(planned, PlannedForward):
                planned.take_out()

    def __deepcopy__(self, memo: Dict[int, Any]) -> None:
        return None  # a copy is plain

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(None), ()

    def __repr__(self) -> str:
        budget = self._chain.budget
        within = f"a device of {budget.limit_bytes} bytes" if isinstance(budget, DeviceMemory) else repr(budget)
        return f"<stowage.Training of {len(self._blocks)} blocks within {within}: {self.plan!r}>"


def wrap(
    model: Model,
    budget: Optional[Budget] = None,
    blocks: Blocks = None,
    *,
    device_budget: Optional[Budget] = None,
    optimizer: Optional[torch.optim.Optimizer] = None,
    host_budget: Optional[Budget] = None,
    server: Service = None,
    cache: Union[None, str, "os.PathLike[str]"] = None,
    process_group: Any = None,
) -> Model:
    """Has the model train within the budget. Returns the same model, whose ``stowage`` attribute is a Training.

    ``budget``: bytes as an int, text such as "8GiB", a share such as "60%" of what plain training of these blocks takes, or
    "least". It covers what the blocks read, make and save, their gradients, workspaces, and what the head and the loss
    take beside; not parameters, their gradients once they are whole, optimizer state, or what comes before the first block.
    Whether gradients are there already or come in the step makes no difference.

    ``device_budget``: in place of ``budget``, bytes or text of all that training may take: the plan gets what parameters, their
    gradients, buffers, the optimizer's state and what else is live leave of it (Training.resident). State that an ``optimizer``
    creates in its first step is counted before it is there; without an optimizer, two tensors for each parameter, as Adam has
    them. What an optimizer takes while it steps, when no activation is held, is not counted. After a step in which a block
    runs out of memory, the next one of its shape is planned for nine tenths of that step's plan, three times at most.

    ``blocks``: the modules that the model calls one after the other, or the path of a ModuleList or Sequential that has
    them ("model.layers"). Left out: those of a Sequential, else those of the longest list of modules of one type, and of other
    lists at least half as long (the stages of a ResNet, encoder and decoder, the towers of CLIP), list by list in the order in
    which the first forward calls them.

    ``host_budget``: bytes or text of host memory that plans may have activations and saved tensors in for a while. Where a
    block must be kept nothing goes there, and that is said. On a device that is not the CPU copies run beside compute. Of
    several ranks all must have one, and the least holds for all; under fully_shard nothing goes there.

    ``server``: the service that plans are asked of, "host:port" or a stowage.rpc.Server, which says what that means; what the
    first steps by its plan take is reported to it. Left out, this process plans.

    ``cache``: a folder that keeps what was measured, and the plans that were made here; left out, the environment's
    STOWAGE_CACHE, or none. A process that trains the same model, by the same sources, with the same shapes on the same kind of
    device trains by a plan from its first step on. That step is checked: where it takes more than its plan, or blocks change
    other buffers, that is said, and the next step measures.

    Costs are those of the batch's shape, and of what later blocks are given beside it: a block that is given other arguments
    than it was measured with, or larger ones (masks, sequences of a second stack), is measured in that step, in which every
    block runs again; the next one has a plan for the largest. Fifty steps whose median peak is more than 5% above the
    prediction, or whose median time is 30% off it, have all measured and planned anew, twice at most for a shape.

    A new shape of batch that is like one that has a plan, and nowhere larger (the last batch of an epoch), trains by that
    plan for its first two steps, which are neither reported nor held against the prediction; its third one measures.

    ``process_group``: of torch.distributed: its ranks train by one plan, that of the least budget and the greatest costs among
    them. Left out, that of the DistributedDataParallel or fully_shard around the model, put there before or after; a model
    without any plans alone. All ranks make their steps together.

    Parameters, buffers, names, hooks, copies and pickles of the model stay what they are; under no_grad the model runs as
    if it were not wrapped. The first step measures each block, and takes four to eight times as long as a plain one. Of
    blocks that took the same bytes there, one is measured for each further shape of batch: two to three times as long.
    Where the first step by that plan takes more than its plan says, runs out of memory or changes other buffers, or nothing
    fits by those costs, each block is measured.

    Blocks that are compiled, by ``block.compile()`` or ``torch.compile(block)``, before the model is wrapped run compiled, and
    planned. Around a wrapped model torch.compile compiles what is beside the blocks alone, which is said once. Forwards under
    the transforms of torch.func, forward-mode AD or a functional_call with other parameters are plain, said once.

    Raises InvalidArgument for blocks that cannot be planned, FailedPrecondition for a model that is wrapped already or one of
    stowage.compile, and where nothing counts the bytes of tensors. The second step raises Infeasible, with ``least_bytes``,
    where nothing fits.

    >>> import stowage, torch
    >>> blocks = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(8)]
    >>> model = stowage.wrap(torch.nn.Sequential(*blocks), "70%")
    >>> for step in range(3):
    ...     model(torch.randn(512, 64)).square().mean().backward()
    >>> model.stowage.memory.measured_peak_bytes <= model.stowage.memory.budget_bytes, sum(model.stowage.recomputed) > 0
    (True, True)
    """
    stacks = _stacks_of(model, blocks)
    found = [block for stack in stacks for block in stack]
    device = _check(model, found)
    device.require_meter()
    memory = _memory_of(model, budget, device_budget, optimizer, device)
    host_bytes = 0 if host_budget is None else _bytes_of("host_budget", host_budget)
    folder = os.environ.get("STOWAGE_CACHE") if cache is None else cache
    records = Records(folder) if folder else None
    find_ranks = functools.partial(_ranks_of, weakref.ref(model), process_group)
    chain = Chain(model, stacks, device, memory, host_bytes, _service_of(server), records, find_ranks)
    for block in {id(block): block for block in found}.values():
        PlannedForward(chain, block).put_in()
    model.__dict__["stowage"] = Training(chain, found)
    return model


def unwrap(model: Model) -> Model:
    """Has the model train plainly again. Returns it. Of several ranks any may do so between two steps: the others go on by
    the plans that they have. Raises NotFound for a model that is not wrapped."""
    training = model.__dict__.get("stowage")
    if not isinstance(training, Training):
        raise NotFound(f"this {type(model).__name__} is not wrapped")
    training._unwrap()
    del model.__dict__["stowage"]
    return model


def _ranks_of(reference: weakref.ReferenceType[torch.nn.Module], process_group: Any) -> Optional[Ranks]:
    model = reference()
    return None if model is None else ranks_of(model, process_group)


def _service_of(server: Service) -> Optional[PlanService]:
    if server is None:
        return None
    from stowage.rpc import PlanService

    return PlanService(server)


def _memory_of(
    model: torch.nn.Module,
    budget: Optional[Budget],
    device_budget: Optional[Budget],
    optimizer: Optional[torch.optim.Optimizer],
    device: Device,
) -> Union[Budget, DeviceMemory]:
    """Raises for what is no budget at all now, not in the second step."""
    if budget is not None and device_budget is None and optimizer is None:
        _ANY_PROFILE.budget_bytes(budget)
        return budget
    if budget is not None or device_budget is None:
        raise InvalidArgument(
            "exactly one of budget and device_budget must be given, and an optimizer with device_budget alone"
        )
    return DeviceMemory(model, _bytes_of("device_budget", device_budget), optimizer, device)


_ANY_PROFILE = Profile.of_chain([{"output_bytes": 1, "saved_bytes": 1}])


def _bytes_of(name: str, budget: Budget) -> int:
    """Of a budget that is no share of anything."""
    if isinstance(budget, str) and not budget[:1].isdigit() or "%" in str(budget):
        raise InvalidArgument(f"{name} = {budget!r}: must be bytes, as an int or as text such as '70GiB'")
    return _ANY_PROFILE.budget_bytes(budget)


def _stacks_of(model: torch.nn.Module, blocks: Blocks) -> List[List[torch.nn.Module]]:
    """Lists of blocks; one list of those that were named."""
    if blocks is None:
        return _found_stacks(model)
    if isinstance(blocks, str):
        try:
            blocks = _children(model.get_submodule(blocks))
        except (AttributeError, TypeError):
            raise InvalidArgument(f"blocks = {blocks!r}: the model has no list of modules of that name") from None
    found = list(blocks)
    if not found or not all(isinstance(block, torch.nn.Module) for block in found):
        raise InvalidArgument("blocks: must be one module or more, or the path of a list of modules")
    return [found]


def _children(module: torch.nn.Module) -> List[torch.nn.Module]:
    if not isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)):
        raise TypeError
    return list(module)


def _found_stacks(model: torch.nn.Module) -> List[List[torch.nn.Module]]:
    if isinstance(model, torch.nn.Sequential) and len(model) > 1:
        return [list(model)]
    stacks: List[List[torch.nn.Module]] = []
    inside: Set[int] = set()  # a list of parts of a block is none of blocks
    for module in model.modules():
        if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)) and id(module) not in inside:
            children = list(module)
            if len(children) > 1 and len({type(child) for child in children}) == 1:
                stacks.append(children)
                inside.update(id(part) for part in module.modules())
    if not stacks:
        raise InvalidArgument("the model has no list of equal blocks: say which they are (blocks=...)")
    longest = max(len(stack) for stack in stacks)
    return [stack for stack in stacks if 2 * len(stack) >= longest]


def _check(model: torch.nn.Module, blocks: Sequence[torch.nn.Module]) -> Device:
    """What the blocks run on."""
    if isinstance(model.__dict__.get("stowage"), Training):
        raise FailedPrecondition(f"this {type(model).__name__} is wrapped already: unwrap it first")
    if model.__dict__.get("stowage") is not None:
        raise FailedPrecondition("the model is one of stowage.compile, which plans all of it: wrap one that is not")
    if isinstance(model, torch.nn.DataParallel):
        raise InvalidArgument("the model is in nn.DataParallel, whose replicas cannot be planned: use DistributedDataParallel")
    if is_flattened(model):
        raise InvalidArgument("the model is in FullyShardedDataParallel, which cannot be planned: use fully_shard")
    ids = {id(block) for block in blocks}
    mine = {id(module) for module in model.modules()}
    for number, block in enumerate(blocks, 1):
        if id(block) not in mine:
            raise InvalidArgument(f"block {number} is no part of the model")
        if isinstance(block, torch.jit.ScriptModule):
            raise InvalidArgument(f"block {number} is TorchScript, whose forward cannot be planned")
        if isinstance(block.__dict__.get("forward"), PlannedForward):
            raise FailedPrecondition(f"block {number} belongs to another wrapped model")
        if any(id(part) in ids for part in block.modules() if part is not block):
            raise InvalidArgument(f"block {number} contains another block")
    return device_of(tensor for block in blocks for tensor in [*block.parameters(), *block.buffers()])
