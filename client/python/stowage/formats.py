"""A chain's plan in the words of others, and what each of them loses.

Others say of each block, or of some rule over blocks, whether it is recomputed: once, right before its backward, from an
input that is kept until then. What a step takes by that is replayed by the evaluator, so that a loss has its figures.

>>> stage = {"forward_time_ns": 10, "backward_time_ns": 20, "output_bytes": 100,
...          "output_gradient_bytes": 100, "saved_bytes": 300}
>>> from stowage import Profile
>>> profile = Profile.of_chain([stage] * 8, input_bytes=100)
>>> translation = checkpointed_blocks(profile, profile.plan("60%"))
>>> translation.value, translation.takes.peak_bytes
([0, 1, 2, 3], 1800)
>>> for loss in translation.losses:
...     print(loss)
inputs of recomputed blocks stay until their backward
a step takes 1800 bytes in place of 1500: 240 more than the budget
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from stowage import _steps
from stowage._steps import BACKWARD, NO_SAVE, NO_SAVE_FREE_INPUT, SAVE
from stowage.errors import FailedPrecondition, InvalidArgument
from stowage.planning import Plan, Profile

Schedule = List[Tuple[str, int]]


class Translation(NamedTuple):
    """``value`` is what the other one takes. ``takes``: what a step takes by it, its peak as its budget. ``losses``: what the
    plan has and this has not, a sentence each."""

    value: Any
    takes: Plan
    losses: Tuple[str, ...]


def checkpointed_blocks(profile: Profile, plan: Plan) -> Translation:
    """The numbers, from 0, of the blocks to be checkpointed one by one: ``torch.utils.checkpoint.checkpoint(block, ...)``, the
    ``check_fn`` of ``apply_activation_checkpointing``, or ``gradient_checkpointing`` of a layer of Transformers."""
    chain = _Chain(profile, plan)
    return chain.translated(chain.recomputed, _each(chain.length, chain.recomputed))


def remat_regions(profile: Profile, plan: Plan, names: Sequence[str] = ()) -> Translation:
    """For torch_remat: by the name of each block, whether it is called through ``remat.checkpoint(region_name=name)`` (True) or
    plainly. ``names``: of the blocks, "block 0" and so on if left out."""
    chain = _Chain(profile, plan)
    names = names or [f"block {number}" for number in range(chain.length)]
    if len(names) != chain.length:
        raise InvalidArgument(f"names: must be {chain.length}, one for each block")
    regions = {name: number in chain.recomputed for number, name in enumerate(names)}
    loss = "random state that a block draws from is not restored unless a hook does it (recompute_state_hooks)"
    return chain.translated(regions, _each(chain.length, chain.recomputed), loss)


def selective_checkpoint_contexts(profile: Profile, plan: Plan) -> Translation:
    """For each block the ``context_fn`` with which ``torch.utils.checkpoint.checkpoint(block, ..., use_reentrant=False)`` saves
    all that it computes, or nothing. Raises FailedPrecondition where PyTorch has no selective checkpointing (2.4 has)."""
    try:
        from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
    except ImportError:
        raise FailedPrecondition("this PyTorch has no create_selective_checkpoint_contexts") from None

    def context_fn(saves: bool) -> Callable[[], Any]:
        policy = CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE
        return functools.partial(create_selective_checkpoint_contexts, lambda ctx, op, *args, **kwargs: policy)

    chain = _Chain(profile, plan)
    contexts = [context_fn(number not in chain.recomputed) for number in range(chain.length)]
    loss = "a kept block keeps what every op returns, which may be more than autograd saves: better not checkpointed at all"
    return chain.translated(contexts, _each(chain.length, chain.recomputed), loss)


def every_n_layers(profile: Profile, plan: Plan) -> Translation:
    """For Transformers' ``activation_checkpointing_enable(every_n_layers=n)``, which checkpoints the layers 0, n, 2n, ...

    The n of the fastest step within the plan's budget, or of the one that takes least memory if none is. 0: not to be
    enabled.
    """
    chain = _Chain(profile, plan)
    choices = {n: list(range(0, chain.length, n)) for n in range(1, chain.length + 1)}
    schedules = {n: _each(chain.length, blocks) for n, blocks in {0: [], **choices}.items()}
    return chain.chosen({n: (n, schedule) for n, schedule in schedules.items()}, "which blocks are recomputed follows from n")


def megatron_arguments(profile: Profile, plan: Plan) -> Translation:
    """For Megatron's transformer configuration.

    ``recompute_method`` "block" recomputes the first ``recompute_num_layers`` layers one by one, "uniform" all layers in
    groups of as many. Chosen as every_n_layers chooses; an empty dictionary recomputes nothing.
    """
    chain = _Chain(profile, plan)
    choices: Dict[Any, Tuple[Any, Schedule]] = {None: ({}, _each(chain.length, []))}
    for count in range(1, chain.length + 1):
        arguments = {"recompute_granularity": "full", "recompute_num_layers": count}
        block = {**arguments, "recompute_method": "block"}
        choices["block", count] = block, _each(chain.length, list(range(count)))
        uniform = {**arguments, "recompute_method": "uniform"}
        choices["uniform", count] = uniform, _in_groups(chain.length, count)
    return chain.chosen(choices, "which blocks are recomputed follows from their number, the same on every pipeline stage")


class _Chain:
    """A plan of a chain, as what it does to each block."""

    def __init__(self, profile: Profile, plan: Plan) -> None:
        if profile.kind != "chain":
            raise InvalidArgument(f"profile: must be of a chain, not of a {profile.kind}")
        self._profile = profile
        self._plan = plan
        self._schedule = plan.schedule()
        self.length = len(profile.to_dict()["chain"]["stages"])
        self._again = [-1] * (self.length + 2)
        for instruction in self._schedule:
            self._again[instruction.stage] += instruction.op.startswith("forward")
        self.recomputed = [number for number in range(self.length) if self._again[number + 1] > 0]

    def translated(self, value: Any, schedule: Schedule, *losses: str) -> Translation:
        takes = self._profile.plan_of(schedule)
        return Translation(value, takes, (*losses, *self._losses(), *self._figures(takes)))

    def chosen(self, choices: Dict[Any, Tuple[Any, Schedule]], *losses: str) -> Translation:
        """The fastest within the budget, of equal ones the smallest; the smallest if nothing is within it."""
        taken = {name: self._profile.plan_of(schedule) for name, (_, schedule) in choices.items() if self._may(schedule)}
        within = {name: takes for name, takes in taken.items() if takes.peak_bytes <= self._plan.budget_bytes}
        if within:
            best = min(within, key=lambda name: (within[name].makespan_ns, within[name].peak_bytes))
        else:
            best = min(taken, key=lambda name: (taken[name].peak_bytes, taken[name].makespan_ns))
        return self.translated(*choices[best], *losses)

    def _may(self, schedule: Schedule) -> bool:
        """Whether the evaluator accepts it: some blocks must be kept."""
        try:
            self._profile.plan_of(schedule)
        except InvalidArgument:
            return False
        return True

    def _losses(self) -> List[str]:
        losses = ["inputs of recomputed blocks stay until their backward"] if self.recomputed else []
        often = [number for number in self.recomputed if self._again[number + 1] > 1]
        if often:
            losses.append(f"blocks {often} run again more than once by the plan, to hold less between")
        if any(instruction.op.startswith(("offload", "prefetch")) for instruction in self._schedule):
            losses.append("nothing goes to host memory")
        return losses

    def _figures(self, takes: Plan) -> List[str]:
        figures = []
        if takes.peak_bytes > self._plan.peak_bytes:
            over = takes.peak_bytes - self._plan.budget_bytes
            words = f"{over} more than the budget" if over > 0 else "within the budget"
            figures.append(f"a step takes {takes.peak_bytes} bytes in place of {self._plan.peak_bytes}: {words}")
        if takes.makespan_ns > self._plan.makespan_ns:
            figures.append(f"a step takes {takes.makespan_ns} ns in place of {self._plan.makespan_ns}")
        return figures


def _each(length: int, blocks: Sequence[int]) -> Schedule:
    """These blocks recomputed, each right before its backward."""
    kept = [number for number in range(1, length + 1) if number - 1 not in blocks]
    return _steps.each_block(length, kept)


def _in_groups(length: int, count: int) -> Schedule:
    """All blocks recomputed, in groups of so many, each group right before its backwards."""
    forward: Schedule = []
    backward: Schedule = []
    for first in range(1, length + 1, count):
        group = range(first, min(first + count, length + 1))
        forward += [(NO_SAVE if block == first else NO_SAVE_FREE_INPUT, block) for block in group]
        backward = [(SAVE, block) for block in group] + [(BACKWARD, block) for block in reversed(group)] + backward
    return forward + [(SAVE, length + 1), (BACKWARD, length + 1)] + backward
