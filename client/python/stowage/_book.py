"""What is known of a model's blocks for batches of one shape: costs, for which arguments, a plan, and what steps by it take."""

from __future__ import annotations

import statistics
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from stowage import _steps
from stowage._device import own_bytes
from stowage._run import _Other
from stowage._versions import storage_id
from stowage.errors import StowageError
from stowage.planning import Plan, Profile

if TYPE_CHECKING:
    from stowage._device import Device
    from stowage._measuring import BlockCosts
    from stowage._run import Call
    from stowage.rpc import Answer, PlanService

MOST_KNOWN = 256  # arguments of one block, remembered so that they are found at once
# As the C++ agent's (client/agent/agent_options.h): after so many steps by a plan their medians are looked at.
DRIFT_STEPS = 50
DRIFT_TIME, DRIFT_PEAK = 0.3, 0.05  # off by more of the prediction: the time either way, the peak above it
MOST_REPLANS = 2  # of one shape; then it stays as it is
STEPS_BY_LARGER = 2  # of a new shape, by the plan for a larger one; then it is measured


class Event(NamedTuple):
    """Something that happened to a wrapped model's training. ``step``: forwards begun by then. ``kind``: "measured",
    "planned", "recorded" (an earlier process's measurements are taken), "widened" (blocks were given larger arguments than any
    before), "by larger" (a new shape of batch trains by the plan for a larger one), "drift", "out of memory" or "note" (what
    was said as a warning)."""

    step: int
    kind: str
    words: str


class Report:
    """What the first steps by a service's plan take, sent once."""

    def __init__(self, service: PlanService, answer: Answer, steps: int, beside_bytes: int) -> None:
        from stowage.rpc import current_traceparent  # there is a service, and so its part is installed

        self._service = service
        self._answer = answer
        self._traceparent = current_traceparent()  # the plan's: the thread that sends is in no span
        self._steps = steps
        self._beside_bytes = beside_bytes
        self._copied: Dict[str, int] = {}
        self._times_ns: List[int] = []
        self._peaks_bytes: List[int] = []

    def add(self, time_ns: int, peak_bytes: int, copied: Dict[str, int], failed: Callable[[str], None]) -> None:
        if len(self._times_ns) == self._steps:
            return
        self._copied = copied
        self._times_ns.append(time_ns)
        self._peaks_bytes.append(peak_bytes - self._beside_bytes)
        if len(self._times_ns) == self._steps:
            threading.Thread(target=self._send, args=(failed,), name="stowage-report", daemon=True).start()

    def _send(self, failed: Callable[[str], None]) -> None:
        took: Dict[str, Any] = {
            **self._copied,
            "step_time_ns": int(statistics.median(self._times_ns)),
            "peak_bytes": int(statistics.median(self._peaks_bytes)),
        }
        try:
            self._service.report(self._answer, steps=self._steps, traceparent=self._traceparent or None, **took)
        except StowageError as error:
            failed(f"could not report to the service: {error}")


class Drift:
    """Whether steps by a plan are still what was predicted, looked at each DRIFT_STEPS of them."""

    def __init__(self) -> None:
        self._times_ns: List[int] = []
        self._peaks_bytes: List[int] = []

    def add(self, time_ns: int, peak_bytes: int, plan: Plan) -> Optional[str]:
        """What has drifted, in words."""
        self._times_ns.append(time_ns)
        self._peaks_bytes.append(peak_bytes)
        if len(self._times_ns) < DRIFT_STEPS:
            return None
        time_ns, peak_bytes = int(statistics.median(self._times_ns)), int(statistics.median(self._peaks_bytes))
        self._times_ns, self._peaks_bytes = [], []
        if peak_bytes > (1 + DRIFT_PEAK) * plan.peak_bytes > 0:
            return f"the median peak of {DRIFT_STEPS} steps is {peak_bytes} bytes, predicted {plan.peak_bytes}"
        if plan.makespan_ns > 0 and abs(time_ns - plan.makespan_ns) > DRIFT_TIME * plan.makespan_ns:
            return f"the median time of {DRIFT_STEPS} steps is {time_ns} ns, predicted {plan.makespan_ns}"
        return None


class Book:
    """What is known of the blocks for batches of one shape: their costs, and from all of them a plan.

    Later blocks may be given other arguments in each batch (masks, the second stack's sequences): costs are the greatest of
    those for the arguments that were measured, and smaller ones count as known.
    """

    def __init__(self, length: int, inputs: List[Any], device: Device) -> None:
        self.length = length
        self.stages: List[Optional[Dict[str, Any]]] = [None] * (length + 1)  # [0] is not used
        self.kept: Dict[int, str] = {}
        self.input_bytes = device.bytes_of(inputs)
        self.input_gradient_bytes = device.gradient_bytes(inputs)
        self.held_at_least_bytes = 0  # whatever the blocks are given
        self.profile: Optional[Profile] = None
        self.plan: Optional[Plan] = None
        self.is_widened = False  # costs have grown since the plan was made
        self.was_watched = False  # a step by the plan was measured
        self.has_waited = False  # one more was, since the one before took memory of the host
        self.was_checked = False  # against its record
        self.source = "local"
        self.report: Optional[Report] = None  # that a service is to get
        self.own_profile: Optional[Profile] = None  # of this rank; `profile` is then one of all
        self.lacked_memory = False  # in a step by the plan
        self.reduced_bytes: Optional[int] = None  # the budget since then
        self.out_of_memory = 0  # steps
        self.at_most_bytes: Optional[int] = None  # whatever the device has
        self.drift = Drift()
        self.replans = 0  # because of it
        self.key: Optional[str] = None  # of its record
        self.record: Optional[Dict[str, Any]] = None  # what an earlier process has measured
        self.made: Dict[str, Any] = {}  # plans for its record
        self.doubt = ""  # why the record does not hold
        self.on_trial = False  # no step by what the record says has ended yet
        self.steps = _steps.Steps(_steps.each_block(length), length)
        self.warm: Set[Any] = set()  # kinds of calls that were measured
        self.alike: Optional[List[int]] = None  # by block: the first one that took the same with other shapes; None: not known
        self.is_by_likeness = False  # some costs are those of a block alike, and no planned step has checked them yet
        self._taken: Dict[Any, Tuple[BlockCosts, List[int]]] = {}  # costs, by the first block alike and the kind of call
        self._device = device
        self._head: Optional[Tuple[int, int, int]] = None
        self._head_may_grow = True  # until it was measured
        # By what it is for: what recomputes restore, what graphs and the engine hold beside saved tensors; what a backward
        # holds while the block is recomputed for it; of what is saved, what no copy moves.
        self._held: Dict[str, int] = {}
        self._early: Dict[str, int] = {}
        self._staying: Dict[str, int] = {}
        self._passed: Dict[str, int] = {}  # what of its input a block hands on, which copies move with what it saves
        self._side_gradients: Dict[int, int] = {}  # in the forward that is measured
        self._side_bytes = 0  # the most of these
        self._after_others: Set[int] = set()  # blocks that read nothing of the block before
        self._arguments: List[List[Any]] = [[] for _ in range(length + 1)]  # that were measured, as words_of has them
        self._known: List[Set[Any]] = [set() for _ in range(length + 1)]

    @property
    def serves_smaller(self) -> bool:
        """Whether batches that are smaller may train by the plan."""
        return self.plan is not None and not self.is_widened and not self.on_trial

    @property
    def held_bytes(self) -> int:
        return self.held_at_least_bytes + sum(self._held.values())

    @property
    def early_bytes(self) -> int:
        return max(self._early.values(), default=0)

    @property
    def staying_bytes(self) -> int:
        return sum(self._staying.values())

    @property
    def takes_more_for_copies(self) -> bool:
        """Whether plans that may copy take what others do not."""
        return self.staying_bytes + sum(self._passed.values()) > 0

    # ---------------------------------------------------------------- what was measured

    def took(self) -> List[str]:
        """By block, its arguments and what was measured with them, except times, in words that can be compared."""
        words = []
        for block, stage in enumerate(self.stages):
            costs = {name: value for name, value in (stage or {}).items() if name != "name" and not name.endswith("_ns")}
            sizes = [kind.get(f"block {block}", 0) for kind in (self._early, self._staying, self._passed)]
            words.append(f"block {block}" if stage is None else repr((sorted(costs.items()), sizes, self._arguments[block])))
        return words

    def costs_by_likeness(self, block: int, kind: Any) -> Optional[Tuple[BlockCosts, List[int]]]:
        """What measure_block has found, in this step, of a block alike that was called in the same way."""
        found = None if self.alike is None else self._taken.get((self.alike[block], kind))
        if found is None:
            return None
        self.is_by_likeness = True
        costs, changed = found
        return costs._replace(stage={**costs.stage, "name": f"block {block}"}), changed

    def unlike(self, peak_bytes: int, plan: Plan) -> Optional[str]:
        """After the first step by the plan: in words, that a block takes more than the one whose costs it has."""
        if not self.is_by_likeness:
            return None
        self.is_by_likeness = False
        if self.doubt and not self.on_trial:
            return self.doubt
        if peak_bytes <= plan.peak_bytes:
            return None
        return f"a step takes {peak_bytes} bytes, predicted {plan.peak_bytes} by what blocks like these take"

    def note_costs(self, block: int, kind: Any, costs: BlockCosts, changed: List[int]) -> None:
        self.warm.add(kind)
        if self.alike is not None:
            self._taken[self.alike[block], kind] = costs._replace(stage=dict(costs.stage)), changed

    def knows(self, block: int, arguments: Tuple[Any, ...]) -> bool:
        """Whether the block was measured with these arguments, or with some of which none is smaller."""
        known = self._known[block]
        if arguments in known:
            return True
        words = words_of(arguments)
        if not any(_covers(measured, words) for measured in self._arguments[block]):
            return False
        if len(known) == MOST_KNOWN:
            known.clear()
        known.add(arguments)
        return True

    def widen(self) -> None:
        """A block is given larger arguments than any that were measured: it and those behind it are measured in this step."""
        self.alike, self._taken = alike_in([self]), {}
        self.is_widened = self._head_may_grow = True
        self.was_watched = self.was_checked = False
        self._side_gradients = {}
        if self.record is not None:
            self.record = {**self.record, "plans": {}, "peaks": {}}

    def block_measured(self, block: int, call: Call, costs: BlockCosts, held_bytes: int) -> bool:
        """With what its recomputes restore. True where the block must be kept, so that the steps are others from now on."""
        self._arguments[block].append(words_of(call.shapes))
        self.stages[block] = _greatest(self.stages[block], costs.stage)
        sizes = ((self._held, held_bytes), (self._early, costs.early_bytes), (self._staying, costs.staying_bytes))
        for kind, size in (*sizes, (self._passed, costs.passed_bytes)):
            _keep_greatest(kind, f"block {block}", size)
        if costs.kept_because is None or block in self.kept:
            return False
        self.kept[block] = costs.kept_because
        self.steps = _steps.Steps(_steps.each_block(self.length, list(self.kept)), self.length, list(self.kept))
        return True

    def between_measured(self, block: int, call: Call, made_bytes: int) -> None:
        """What the model itself does between two blocks, of a second stack say, is ordinary autograd's."""
        _keep_greatest(self._held, f"made before {block}", made_bytes)
        sides = [a.tensor for a in call.arguments if isinstance(a, _Other) and a.requires_grad]
        if call.links:  # other blocks read them, too, and their gradients are summed up meanwhile
            self._side_gradients.update({storage_id(side): own_bytes(side) for side in sides})
            self._side_bytes = max(self._side_bytes, sum(self._side_gradients.values()))
        else:
            self._after_others.add(block)
            before = self.stages[block - 1]  # held by the graph of what reads it in its place
            _keep_greatest(self._held, f"read before {block}", 0 if before is None else before["output_bytes"])

    def stretch_measured(self, block: int, peak_bytes: int) -> None:
        """Of the backward of a block, and of what comes before it in the model."""
        stage = self.stages[block]
        if (self.plan is None or self.is_widened) and stage is not None and block in self._after_others:
            beyond = peak_bytes - (stage["saved_bytes"] - stage["output_bytes"])
            stage["backward_overhead_bytes"] = max(stage["backward_overhead_bytes"], beyond)

    def head_measured(self, peak_bytes: int, left_bytes: int, time_ns: int) -> None:
        """What the head and the loss take beyond the activations, both ways, and what of it is still held at their end."""
        if self._head_may_grow:
            before = self._head or (0, left_bytes, 0)
            self._head_may_grow = False
            self._head = max(before[0], peak_bytes), max(before[1], left_bytes), max(before[2], time_ns)
            self.is_widened = self.is_widened or self.plan is not None and self._head[:2] != before[:2]

    @property
    def is_complete(self) -> bool:
        return self._head is not None and all(stage is not None for stage in self.stages[1:])

    # ---------------------------------------------------------------- records

    def measured(self) -> Dict[str, Any]:
        """Of a book that is complete: what take() takes."""
        return {
            "stages": self.stages[1:],
            "arguments": self._arguments[1:],
            "kept": list(self.kept.items()),
            "bytes": [self.input_bytes, self.input_gradient_bytes, self.held_at_least_bytes, self._side_bytes],
            "held": self._held,
            "early": self._early,
            "staying": self._staying,
            "passed": self._passed,
            "head": self._head,
            "after_others": list(self._after_others),
        }

    def take(self, measured: Dict[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for what no book of as many blocks and the same input has measured."""
        stages, arguments, head = measured["stages"], measured["arguments"], measured["head"]
        same_input = measured["bytes"][:2] == [self.input_bytes, self.input_gradient_bytes]
        if len(stages) != self.length or len(arguments) != self.length or len(head) != 3 or not same_input:
            raise ValueError
        kept = {int(block): str(why) for block, why in measured["kept"]}
        steps = _steps.Steps(_steps.each_block(self.length, list(kept)), self.length, list(kept))
        sizes = [{str(k): int(v) for k, v in measured[name].items()} for name in ("held", "early", "staying", "passed")]
        held_at_least_bytes, side_bytes = map(int, measured["bytes"][2:])
        after_others = set(map(int, measured["after_others"]))
        arguments, stages = [[], *map(list, arguments)], [None, *map(dict, stages)]
        self._head, self._head_may_grow = (int(head[0]), int(head[1]), int(head[2])), False
        self.held_at_least_bytes, self._side_bytes, self._after_others = held_at_least_bytes, side_bytes, after_others
        self._held, self._early, self._staying, self._passed = sizes
        self.kept, self.steps, self._arguments, self.stages = kept, steps, arguments, stages

    # ---------------------------------------------------------------- plans

    def make_profile(self, name: str, link: Optional[Dict[str, Any]]) -> Profile:
        """Of a book that is complete, with a link to host memory where plans may copy."""
        assert self._head is not None
        stages = [dict(stage) for stage in self.stages if stage is not None]
        if link is not None:
            for block, stage in enumerate(stages, 1):
                stage["saved_bytes"] += self._passed.get(f"block {block}", 0)
        peak, left, time_ns = self._head
        # What the caller goes on holding, logits say, or what the head gives to a weight that it shares with the embedding, is
        # there for the whole backward, and in the head's peak. The head has let go of its input, but for a block that is kept.
        freed = 0 if stages[-1]["must_keep"] else stages[-1]["output_bytes"]
        held = max(0, left + freed - stages[-1]["output_gradient_bytes"])
        peak = max(0, peak - held)
        held += 0 if link is None else self.staying_bytes
        loss = {
            "name": "head and loss",
            "backward_time_ns": time_ns,
            "forward_saving_overhead_bytes": peak,
            "forward_overhead_bytes": peak,
            "backward_overhead_bytes": peak,
            "must_keep": True,
        }
        chain = {
            "stages": stages,
            "input_bytes": self.input_bytes + self.held_bytes + self.early_bytes + held + self._side_bytes,
            "input_gradient_bytes": self.input_gradient_bytes,
            "loss": loss,
        }
        return Profile.from_dict(
            {
                "name": name,
                "device": {**self._device.description(), **(link or {})},
                "cost_source": "COST_SOURCE_MEASURED",
                "chain": chain,
            }
        )


def alike_in(books: Sequence[Book]) -> List[int]:
    """By block, the first one that took the same in each of these. Two of them that are of one kind take the same when they
    are given something else, until a step shows that they do not."""
    first: Dict[Any, int] = {}
    return [first.setdefault(took, block) for block, took in enumerate(zip(*[book.took() for book in books]))]


def words_of(arguments: Sequence[Any]) -> List[Any]:
    """What shape_of says of a block's arguments, as it is in files."""
    words: List[Any] = []
    for shape in arguments:
        if isinstance(shape, tuple):
            words.append([list(shape[0]), str(shape[1]), shape[2]])
        else:
            words.append(shape.__qualname__ if isinstance(shape, type) else shape)
    return words


def _covers(measured: Sequence[Any], asked: Sequence[Any]) -> bool:
    """Whether arguments were measured that are like those asked for, and none smaller."""
    if len(measured) != len(asked):
        return False
    for large, small in zip(measured, asked):
        if not isinstance(large, list) or not isinstance(small, list):
            if large != small:
                return False
        elif large[1:] != small[1:] or len(large[0]) != len(small[0]) or any(a < b for a, b in zip(large[0], small[0])):
            return False
    return True


def _greatest(before: Optional[Dict[str, Any]], stage: Dict[str, Any]) -> Dict[str, Any]:
    """Each number, and what is true of either. What one of them does not have is as long as another field of it says."""
    if before is None:
        return stage
    both = {name: value for name, value in stage.items() if name in before}
    return {name: value if isinstance(value, str) else max(before[name], value) for name, value in both.items()}


def _keep_greatest(sizes: Dict[str, int], name: str, size_bytes: int) -> None:
    sizes[name] = max(sizes.get(name, 0), size_bytes)
