"""A schedule as steps that an executor carries out: what each reads, keeps and lets go of, known beforehand.

Blocks are numbered from 1 to ``length``; what comes behind the last one, the head and the loss, is stage length + 1, which
the caller runs. Productions of activations are named by the index of the step that makes them, START is the input.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from stowage.errors import InvalidArgument

SAVE, NO_SAVE, NO_SAVE_FREE_INPUT = "forward-save", "forward-no-save", "forward-no-save-free-input"
BACKWARD, DISCARD, DROP_SAVED = "backward", "discard", "drop-saved-keep-output"
OFFLOAD_START, OFFLOAD_WAIT = "offload-start", "offload-wait"
PREFETCH_START, PREFETCH_WAIT = "prefetch-start", "prefetch-wait"
FORWARDS = (SAVE, NO_SAVE, NO_SAVE_FREE_INPUT)
DROPS = (DISCARD, DROP_SAVED)
OFFLOADS = (OFFLOAD_START, OFFLOAD_WAIT)
MOVES = (*OFFLOADS, PREFETCH_START, PREFETCH_WAIT)
START = -1


class Step:
    """One instruction.

    ``source``: the production that it moves, or that of its input, where it reads that from what is kept; else None.
    ``keep``: a later step reads its output, or what it moves. ``free``: the productions that nobody reads after it. ``gap``:
    the plan drops or moves the input between this saving forward and the backward, or moves what is saved, so that this must
    not hold the input. ``plain``: the only forward of its block, all of it stays, and nothing but another backward comes right
    before its own: ordinary autograd.
    """

    __slots__ = ("index", "op", "block", "saved", "first", "source", "keep", "free", "gap", "plain")

    def __init__(self, index: int, op: str, block: int, saved: bool) -> None:
        self.index = index
        self.op = op
        self.block = block
        self.saved = saved  # of a discard or a copy: the saved tensors, not the activation
        self.first = False
        self.source: Optional[int] = None
        self.keep = False
        self.free: List[int] = []
        self.gap = False
        self.plain = False


class _Held:
    """Which step made what is held, by the evaluator's table for chains."""

    def __init__(self, length: int) -> None:
        self.plain: List[Optional[int]] = [None] * (length + 2)
        self.saved: List[Optional[int]] = [None] * (length + 2)
        self.plain[0] = START
        self.away: Dict[Tuple[int, bool], Optional[int]] = {}

    def moved(self, step: Step) -> Optional[int]:
        """By a copy to the host or back."""
        key = step.block, step.saved
        return self.away[key] if key in self.away else (self.saved if step.saved else self.plain)[step.block]

    def source(self, block: int) -> Optional[int]:
        plain = self.plain[block]
        return plain if plain is not None else self.saved[block]

    def apply(self, step: Step) -> None:
        op, block = step.op, step.block
        if op == SAVE:
            self.saved[block] = step.index
        elif op in FORWARDS:
            self.plain[block] = step.index
            if op == NO_SAVE_FREE_INPUT:
                self.plain[block - 1] = None
        elif op == BACKWARD:
            self.saved[block] = self.plain[block - 1] = None
        elif op == DROP_SAVED:
            self.plain[block], self.saved[block] = self.saved[block], None
        elif op in MOVES:
            self._move(step)
        elif self.away.pop((block, step.saved), None) is not None:
            pass  # on the host
        elif step.saved:
            self.saved[block] = None
        else:
            self.plain[block] = None

    def _move(self, step: Step) -> None:
        on_device = self.saved if step.saved else self.plain
        if step.op == OFFLOAD_WAIT:
            self.away[step.block, step.saved], on_device[step.block] = on_device[step.block], None
        elif step.op == PREFETCH_WAIT:
            on_device[step.block] = self.away.pop((step.block, step.saved))


class Steps:
    """The steps of one schedule for ``length`` blocks and a loss. Immutable.

    ``kept``: blocks that ordinary autograd keeps, whatever else the plan does: their graphs hold their inputs.

    Raises InvalidArgument for a schedule whose blocks do not first run in order, or that moves the input, parts of what
    is saved, or what ``kept`` blocks save. Everything else is the evaluator's to refuse, before.
    """

    def __init__(self, schedule: Iterable[Sequence[Any]], length: int, kept: Sequence[int] = ()) -> None:
        self.length = length
        self._kept = kept
        self._schedule = [_parts_of(instruction) for instruction in schedule]
        if kept and any(op in MOVES for op, *_ in self._schedule):
            raise InvalidArgument("a schedule with copies cannot be followed: graphs of kept blocks hold their inputs")
        self.recomputes = [0] * (length + 2)
        self.steps, self.first_at = self._compile(executor_runs_all=False)
        self._again: Optional[List[Step]] = None

    @property
    def again(self) -> List[Step]:
        """The same with every forward run by the executor, for a second backward of one forward."""
        if self._again is None:
            self._again = self._compile(executor_runs_all=True)[0]
        return self._again

    def _compile(self, executor_runs_all: bool) -> Tuple[List[Step], List[int]]:
        steps = [Step(index, op, block, saved) for index, (op, block, saved) in enumerate(self._schedule)]
        first_at = self._find_first_forwards(steps)
        self._find_gaps(steps)
        self._find_plain(steps)
        self._find_readers(steps, executor_runs_all)
        return steps, first_at

    def _find_first_forwards(self, steps: List[Step]) -> List[int]:
        runs = [0] * (self.length + 2)
        first_at = [START] * (self.length + 2)
        for step in steps:
            if step.op in FORWARDS:
                step.first = runs[step.block] == 0
                if step.first:
                    first_at[step.block] = step.index
                runs[step.block] += 1
        if first_at[1:] != sorted(first_at[1:]) or START in first_at[1:]:
            raise InvalidArgument("the schedule does not first run every block in order")
        self.recomputes = [max(0, count - 1) for count in runs]
        return first_at

    def _find_gaps(self, steps: List[Step]) -> None:
        held = _Held(self.length)
        saving: Dict[int, Step] = {}
        for step in steps:
            held.apply(step)
            if step.op == SAVE:
                saving[step.block] = step
            elif step.op == BACKWARD or step.op == DROP_SAVED or (step.op == DISCARD and step.saved):
                saving.pop(step.block, None)
            for block, forward in saving.items():
                is_away = step.op == OFFLOAD_START and step.saved and step.block == block
                if (is_away or held.source(block - 1) is None) and block not in self._kept:
                    forward.gap = True

    def _find_plain(self, steps: List[Step]) -> None:
        hooked = {s.block for s in steps if s.op == DROP_SAVED or (s.op == DISCARD and s.saved)}
        # Nobody is told when a plain block's backward begins: what the plan does just before it would be done too late.
        pairs = zip(steps, steps[1:])
        hooked |= {s.block for before, s in pairs if s.op == BACKWARD and before.op != BACKWARD and s.block not in self._kept}
        for step in steps:
            step.plain = step.op == SAVE and not step.gap and self.recomputes[step.block] == 0 and step.block not in hooked

    def _find_readers(self, steps: List[Step], executor_runs_all: bool) -> None:
        held = _Held(self.length)
        last_reader: Dict[int, int] = {}
        gaps: Dict[int, bool] = {}
        for step in steps:
            of_caller = step.block > self.length or (step.first and not executor_runs_all)
            reads = not of_caller if step.op in FORWARDS else step.op == BACKWARD and gaps.get(step.block, False)
            if step.op in MOVES:
                step.source = held.moved(step)
            elif reads:
                step.source = held.source(step.block - 1)
                if step.source is None:
                    raise InvalidArgument(f"{step.op} {step.block}: its input is not held")
                last_reader[step.source] = step.index
            if step.op == SAVE:
                gaps[step.block] = step.gap
            held.apply(step)
        for production, reader in last_reader.items():
            if production != START:
                steps[production].keep = True
                steps[reader].free.append(production)
        for step in steps:
            if step.op in MOVES and step.source is not None:
                step.keep = last_reader.get(step.source, START) > step.index


def _parts_of(instruction: Sequence[Any]) -> Tuple[str, int, bool]:
    op, block = instruction[0], instruction[1]
    if op not in FORWARDS and op not in DROPS and op not in MOVES and op != BACKWARD:
        raise InvalidArgument(f"{op} {block}: is no instruction of a chain")
    if op in MOVES and (block == 0 or (len(instruction) > 4 and instruction[4] != 0)):
        raise InvalidArgument(f"{op} {block}: neither the input nor parts of what is saved are moved")
    return op, block, len(instruction) > 2 and instruction[2] == "saved"


def each_block(length: int, kept: Sequence[int] = ()) -> List[Tuple[str, int]]:
    """Every block's input is kept and each block runs twice, as by checkpointing all of them; ``kept`` run once."""
    first = [(SAVE if block in kept else NO_SAVE, block) for block in range(1, length + 1)]
    loss = [(SAVE, length + 1), (BACKWARD, length + 1)]
    backward: List[Tuple[str, int]] = []
    for block in range(length, 0, -1):
        if block not in kept:
            backward.append((SAVE, block))
        backward.append((BACKWARD, block))
    return first + loss + backward
