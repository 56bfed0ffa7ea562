"""The blocks of one model under one budget: which run they belong to, what they take, and by which plan they train."""

from __future__ import annotations

import collections
import copy
import functools
import operator
import threading
import warnings
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import torch

from stowage import _measuring, _moving, _records, _states, _steps
from stowage._book import MOST_REPLANS, STEPS_BY_LARGER, Event, Report, alike_in
from stowage._book import Book as Book
from stowage._caches import FilledCache, with_own_caches
from stowage._copying import Copies, HostPool, copies_of
from stowage._device import Device, own_bytes
from stowage._forwards import PlannedForward
from stowage._measuring import Watch
from stowage._moving import Moves
from stowage._parts import PartsOfBlocks
from stowage._ranks import COMMUNICATES
from stowage._resident import DeviceMemory
from stowage._run import Call, Run
from stowage._sharding import gathered_whole, in_flight_bytes
from stowage._versions import (
    flatten,
    is_functional_call,
    is_in_compiled,
    is_out_of_memory,
    is_transformed,
    leaves_of,
    swaps_by_class,
)
from stowage.errors import ExecutionError, FailedPrecondition, Infeasible, InvalidArgument, StowageError
from stowage.planning import Budget, Plan, Profile

if TYPE_CHECKING:
    from stowage._measuring import BlockCosts
    from stowage._ranks import Ranks
    from stowage.rpc import PlanService

MOST_SHAPES = 64  # of batches, whose plans are kept
REPORTED_STEPS = 20
SMALLER = 0.9  # than the peak of a plan by which a step ran out of memory, in a device's memory
MOST_SMALLER = 3  # plans for one shape
MOST_EVENTS = 1000  # that are kept


class _Place(threading.local):
    """Where this thread is in a forward."""

    run: Optional[Run] = None
    next_block = 1
    inside = 0
    has_left = False  # a forward that was begun: the rest of it is plain
    is_plain = False  # all of the forward, and that was said


class _Inside:
    __slots__ = ("_place",)

    def __init__(self, place: _Place) -> None:
        self._place = place

    def __enter__(self) -> None:
        self._place.inside += 1

    def __exit__(self, *error: Any) -> None:
        self._place.inside -= 1


class Chain:
    """Blocks in the order in which a model calls them."""

    def __init__(
        self,
        model: torch.nn.Module,
        stacks: Sequence[Sequence[torch.nn.Module]],
        device: Device,
        budget: Union[Budget, DeviceMemory],
        host_bytes: int,
        service: Optional[PlanService],
        records: Optional[_records.Records] = None,
        find_ranks: Callable[[], Optional[Ranks]] = lambda: None,
    ) -> None:
        self._stacks = [[weakref.ref(block) for block in stack] for stack in stacks]
        self.length = sum(map(len, stacks))
        self.device = device
        self.budget = budget
        self._service = service
        self._records = records
        self._reported_steps = REPORTED_STEPS if device.measures_each_step else 1
        self._host_bytes = host_bytes
        self._pool = HostPool(host_bytes, copies_of(device) if host_bytes else Copies(device))
        self._measured_link: Optional[Dict[str, Any]] = None
        self.name = type(model).__name__
        self.runs: weakref.WeakSet[Run] = weakref.WeakSet()
        self.books: Dict[Any, Book] = {}
        self.last_book: Optional[Book] = None
        self.measured_peak_bytes: Optional[int] = None
        self.copied = {"offloaded_bytes": 0, "prefetched_bytes": 0}  # in the last step
        self.recomputed = [0] * (self.length + 1)
        self.restarts = 0
        self.last_failure: Optional[BaseException] = None
        self.notes: List[str] = []
        self.events: Deque[Event] = collections.deque(maxlen=MOST_EVENTS)
        self._steps_begun = 0
        self._drifted: Dict[Any, Book] = {}  # by shape: what was planned before what is measured anew
        self._by_larger: Dict[Any, int] = {}  # by shape: its steps by plans for larger ones
        self._place = _Place()
        self._model = weakref.ref(model)
        self.watching: Optional[weakref.ref[Watch]] = None  # the step that is measured
        self._accumulators: List[Tuple[Any, Any]] = []  # where gradients of parameters arrive
        self.parts = PartsOfBlocks()
        self.ranks: Optional[Ranks] = None
        self.resumed = _states.Resumed()
        self._find_ranks = find_ranks
        self._steps_of_all: Optional[_steps.Steps] = None  # where all ranks follow one schedule
        self._kept: Sequence[int] = ()  # blocks, as the ranks know by now
        self._read_blocks()

    def _read_blocks(self) -> None:
        """Anew, with nothing known of what blocks take."""
        self._blocks = [reference for stack in self._stacks for reference in stack]
        blocks = [reference() for reference in self._blocks]
        self.parts.read(block for block in blocks if block is not None)
        self.books.clear()
        self._drifted.clear()
        self._by_larger.clear()
        # Parameters with their bytes, by the backward after which their gradients are whole; of the head at length + 1.
        self._by_backward: List[List[Tuple[torch.Tensor, int]]] = [[] for _ in range(self.length + 2)]
        self._tied: Dict[int, torch.Tensor] = {}  # parameters of two blocks or more
        seen: Set[int] = set()
        for number, block in enumerate(blocks, 1):
            for parameter in [] if block is None else self.parts.parameters_of(block):
                if id(parameter) in seen:
                    self._tied[id(parameter)] = parameter
                else:
                    seen.add(id(parameter))
                    self._by_backward[number].append((parameter, own_bytes(parameter)))
        model = self._model()
        self.has_tied = model is not None and _has_tied(model, [block for block in blocks if block is not None])
        if model is not None:
            others = [p for p in model.parameters() if id(p) not in seen and self.device.has(p)]
            self._by_backward[self.length + 1] = [(p, own_bytes(p)) for p in others]

    def _take_next(self, block: int, module: torch.nn.Module) -> bool:
        """Moves the stack that begins with the module to where the block is, unless a plan has another order already."""
        run = self._place.run if block > 1 else None
        if any(book.plan is not None for book in self.books.values()) or (block > 1 and run is None):
            return False
        before, at = 0, 0
        while before < block - 1:
            before, at = before + len(self._stacks[at]), at + 1
        if before != block - 1:
            return False
        for place in range(at, len(self._stacks)):
            if self._stacks[place][0]() is module:
                self._stacks.insert(at, self._stacks.pop(place))
                begun = {shape: book for shape, book in self.books.items() if run is not None and book is run.book}
                self._read_blocks()
                self.books.update(begun)
                for book in begun.values():
                    book.key = None  # which is of another order
                return True
        return False

    def _watch_parameters(self) -> None:
        """Anew for new shapes: a model may be of another dtype, too."""
        for _, handle in self._accumulators:
            handle.remove()
        of_blocks = [entry for entries in self._by_backward[:-1] for entry in entries]
        watched = [entry for entry in of_blocks if entry[1] >= _measuring.LEAST_WATCHED_BYTES]
        watched += self._by_backward[-1]  # of the head, and what is between stacks
        self._accumulators = [self._watched(*entry) for entry in watched if entry[0].requires_grad]

    def _watched(self, parameter: torch.Tensor, size_bytes: int) -> Tuple[Any, Any]:
        """The node that a backward ends at for this parameter, which says when its gradient is there while the node is held."""
        chain, reference = weakref.ref(self), weakref.ref(parameter)

        def note(*_: Any) -> None:
            mine, its = chain(), reference()
            watch = None if mine is None or mine.watching is None else mine.watching()
            if watch is not None and its is not None:
                watch.accumulated(its, size_bytes)

        with torch.enable_grad():
            node = parameter.view_as(parameter).grad_fn.next_functions[0][0]
        return node, node.register_hook(note)

    def without_gradients(self) -> Dict[int, bool]:
        """By the parameters' ids."""
        return {id(p): True for entries in self._by_backward for p, _ in entries if p.grad is None}

    def held_gradients(self, block: int) -> int:
        """Bytes of the gradients that the block's parameters have now."""
        return sum([size for parameter, size in self._by_backward[block] if parameter.grad is not None])

    # ---------------------------------------------------------------- forwards

    def enter(self, module: torch.nn.Module, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of a block, which runs plainly where there is nothing to plan."""
        place = self._place
        if not torch.is_grad_enabled():
            return function(*args, **kwargs)
        if place.inside:  # its saved tensors would be those of two blocks
            name = type(module).__name__
            raise FailedPrecondition(f"a block calls {name}, which is another block: leave one of them out of the blocks")
        try:
            with_caches = with_own_caches(function, args, kwargs)
            if with_caches is not None and not module.training:
                raise FilledCache  # or it will be
        except FilledCache:
            self._leave_forward()
            self.say("a forward with a cache of keys and values that is read is not planned")
            return function(*args, **kwargs)
        if with_caches is not None:
            self.say("caches of keys and values stay empty in training")
            function = with_caches
        block = place.next_block
        if self._blocks[block - 1]() is not module:
            if block > 1 and not self._take_next(block, module):
                self._leave_forward()
                block = 1
            if self._blocks[block - 1]() is not module and (place.has_left or not self._take_next(1, module)):
                if not place.is_plain:
                    self.say(f"{type(module).__name__} was called out of order: such forwards are not planned")
                return function(*args, **kwargs)
        if block == 1:
            place.has_left = place.is_plain = self._is_plain()
            place.run = None if place.is_plain else self._begin(args, kwargs)
        run = place.run
        if run is None:
            return function(*args, **kwargs)
        place.run, place.next_block = None, 1
        place.inside += 1
        try:
            out = run.forward(block, module, function, args, kwargs)
        except BaseException as error:
            if self.ranks is not None:
                self.ranks.end_forward((), error)
            if isinstance(error, RuntimeError) and is_transformed():
                words = f"block {block} is called within a transform of torch.func or forward-mode AD, its model is not"
                raise ExecutionError(f"{words}: stowage.unwrap the model for that") from error
            raise
        finally:
            place.inside -= 1
        if block < self.length:
            place.run, place.next_block = run, block + 1
        elif self.ranks is not None:
            self.ranks.end_forward(leaves_of(out))
        return out

    def _leave_forward(self) -> None:
        """This thread's, which goes on plainly: it ends here for those who wait for its end."""
        place = self._place
        if place.run is not None:
            place.has_left = True
            if self.ranks is not None:
                self.ranks.end_forward(())
        place.run, place.next_block = None, 1

    def _is_plain(self) -> bool:
        """Whether the forward that begins is one of those that are left alone. Reads anew what the blocks are of."""
        if is_transformed():
            self.say("forwards under transforms of torch.func and forward-mode AD are not planned")
            return True
        is_same = self.parts.hold()
        if not is_same or swaps_by_class:
            if is_functional_call():
                self.say("forwards with other parameters than the model's (functional_call) are not planned")
                return True
            if not is_same:
                self.parts.forget_changes()
                self._read_blocks()
        return False

    def _begin(self, args: Any, kwargs: Any) -> Run:
        inputs = [leaf for leaf in flatten(args, kwargs)[0] if isinstance(leaf, torch.Tensor)]
        self._check_devices(inputs)
        modes = tuple(self.parts.modes())
        shape = tuple((t.shape, t.dtype, t.requires_grad) for t in inputs), modes, self.device.autocast()
        others_bytes = self.budget.see(inputs) if isinstance(self.budget, DeviceMemory) else 0
        ranks = self.ranks
        if ranks is None:
            ranks = self.ranks = self._find_ranks()
            if ranks is not None and ranks.one_schedule and self._host_bytes:
                self.say("ranks that follow one schedule recompute only: nothing goes to the host")
        if ranks is not None:
            ranks.begin(self, others_bytes)
        self._steps_begun += 1
        book = self.books.get(shape)
        if book is None and ranks is None:
            larger = self._larger(shape)
            if larger is not None:
                return self._run_by(larger, inputs, by_larger=True)
        if book is None or (ranks is not None and ranks.measuring):
            if book is None:
                self._say_what_is_not_compiled()
                if len(self.books) >= MOST_SHAPES:
                    del self.books[next(iter(self.books))]
            drifted = self._drifted.pop(shape, None)
            before = drifted or book
            alike = self._alike(shape) if drifted is None else None
            book = self.books[shape] = self._new_book(inputs)
            book.alike = alike
            if before is not None:
                book.replans, book.out_of_memory = before.replans, before.out_of_memory
                book.at_most_bytes, book.reduced_bytes = before.at_most_bytes, before.reduced_bytes
                if before.lacked_memory and before.plan is not None:
                    book.reduced_bytes = _states.less_than(before.plan)
            if self._records is not None and ranks is None:  # which all of them would have to have
                self._take_record(book, (args, kwargs, shape[1:]))
        if ranks is not None:
            self._follow_ranks(ranks, book)
        elif (book.plan is None or book.is_widened) and book.is_complete:
            try:
                self._make_plan(book, others_bytes)
            except (Infeasible, InvalidArgument):
                if book.on_trial:
                    self._forget(book, "nothing can be planned by it")
                elif book.is_by_likeness:
                    self._measure_each(book, "nothing can be planned by what blocks like these take")
                else:
                    raise
                self._drifted.pop(shape, None)
                book = self.books[shape] = self._new_book(inputs, book.key)
        return self._run_by(book, inputs)

    def _say_what_is_not_compiled(self) -> None:
        """Blocks run planned, and as they were when they were wrapped: no torch.compile around them reaches into them."""
        compiled = [getattr(block, "_compiled_call_impl", None) is not None for block in self.modules()]
        if any(compiled) or (is_in_compiled() and not all(planned.is_compiled for planned in self._planned())):
            self.say("blocks that were not compiled before they were wrapped run uncompiled: compile each block, then wrap")

    def _planned(self) -> List[PlannedForward]:
        forwards = [block.__dict__.get("forward") for block in self.modules()]
        return [forward for forward in forwards if isinstance(forward, PlannedForward)]

    def _check_devices(self, inputs: Iterable[torch.Tensor]) -> None:
        """Blocks and what they read are where the blocks were when the model was wrapped."""
        first = next(iter(self.parts.all_parameters()), None)
        if first is not None and not self.device.is_where(first):
            words = f"the blocks are on {first.device} now, and were on {self.device.where} when the model was wrapped"
            raise FailedPrecondition(f"{words}: unwrap it, and wrap it again there")
        for tensor in inputs:
            if self.device.has(tensor) and not self.device.is_where(tensor):
                words = f"block 1 is given a tensor on {tensor.device}, and is on {self.device.where}"
                raise FailedPrecondition(f"{words}: replicas of a model (nn.DataParallel) cannot be planned, ranks can")

    def _run_by(self, book: Book, inputs: List[Any], by_larger: bool = False) -> Run:
        self.last_book = book
        self.recomputed = [0] * (self.length + 1)
        self._pool.offloaded_bytes = self._pool.prefetched_bytes = 0
        self._pool.has_grown = False
        return Run(self, book.steps, book, Watch(self, book, inputs, by_larger))

    def _larger(self, shape: Any) -> Optional[Book]:
        """The book for the smallest larger batch, for the first steps of a shape of its own: the last batch of an epoch is
        not worth a step that measures, until it comes again."""
        if self._by_larger.get(shape, 0) >= STEPS_BY_LARGER or shape in self._drifted:
            return None
        sizes, *modes = shape
        larger = [
            (known[0], book)
            for known, book in self.books.items()
            if book.serves_smaller and list(known[1:]) == modes and _covers(known[0], sizes)
        ]
        if not larger:
            return None
        if len(self._by_larger) == MOST_SHAPES:
            self._by_larger.clear()
        self._by_larger[shape] = self._by_larger.get(shape, 0) + 1
        if self._by_larger[shape] == 1:
            self._note("by larger", "a batch of a new shape trains by the plan for a larger one")
        return min(larger, key=lambda of: sum(size.numel() for size, _, _ in of[0]))[1]

    def _alike(self, shape: Any) -> Optional[List[int]]:
        """Which blocks took the same in batches of another shape, in the same modes."""
        if self.ranks is not None and (self.ranks.one_schedule or self.ranks.replanning or self._kept):
            return None  # what communicates is measured on all ranks, or on none
        others = [book for known, book in self.books.items() if known[1:] == shape[1:] and known not in self._drifted]
        others = [book for book in others if book.serves_smaller and book.was_watched and not book.is_by_likeness]
        return alike_in(others) if others else None

    def modules(self) -> List[torch.nn.Module]:
        """The blocks that are there."""
        return [block for block in (reference() for reference in self._blocks) if block is not None]

    def _new_book(self, inputs: List[Any], key: Optional[str] = None) -> Book:
        self._watch_parameters()
        self.device.warm()
        book = Book(self.length, inputs, self.device)
        # The tied ones' are the engine's, until the last of them is there.
        blocks = self.modules()
        book.held_at_least_bytes = self.device.gradient_bytes(self._tied.values()) + in_flight_bytes(blocks)
        book.key = key
        return book

    def _follow_ranks(self, ranks: Ranks, book: Book) -> None:
        """In a step in which the ranks measure, or one whose shape they have not measured."""
        drifted = any(known is book for known in self._drifted.values())
        if drifted and not ranks.measuring and book.replans < MOST_REPLANS:  # another shape came between
            book.replans += 1
            ranks.note(replan=True)
        if book.plan is None and not ranks.measuring:
            ranks.note(new_shape=True)
            book.steps = self._steps_of_all or _steps.Steps(_steps.each_block(self.length, self._kept), self.length, self._kept)

    def _take_record(self, book: Book, arguments: Any) -> None:
        """What an earlier process has measured, on trial for one step."""
        model = self._model()
        assert self._records is not None and model is not None
        blocks = [reference() for reference in self._blocks]
        args, kwargs, settings = arguments
        book.key = _records.key_of(model, blocks, args, kwargs, self.device.description(), settings)
        record = self._records.read(book.key)
        if record is None:
            return
        try:
            book.take(record["measured"])
            for block, places in zip(blocks, record["state"]):
                self.parts.note_changed(block, map(int, places))
            book.record, book.on_trial = record, True
            self._note("recorded", "what an earlier process measured is taken")
        except (AttributeError, KeyError, TypeError, ValueError):
            self._records.remove(book.key)
            book.stages = [None] * (self.length + 1)

    def _forget(self, book: Book, why: str) -> None:
        """Measures anew: what an earlier process has measured does not hold here."""
        self.say(f"what an earlier process measured of this model does not hold ({why}): it is measured anew")
        assert self._records is not None and book.key is not None
        self._records.remove(book.key)
        self.books = {shape: known for shape, known in self.books.items() if known is not book}
        book.on_trial = False

    def _keep_record(self, book: Book, peak_bytes: int) -> None:
        """After the first step by a plan that was measured: for the next process."""
        assert self._records is not None and book.key is not None and book.plan is not None
        record = book.record or {"plans": {}, "peaks": {}}
        record["measured"] = book.measured()
        record["state"] = [self.parts.changed_by(reference()) for reference in self._blocks]
        record["plans"].update(book.made)
        record["peaks"][book.plan.digest] = peak_bytes
        self._records.write(book.key, record)

    def _check_record(self, book: Book, peak_bytes: int) -> None:
        """The first step by a plan has ended."""
        assert book.plan is not None
        if book.on_trial and book.record is not None:
            # Less may be what else the process has let go of meanwhile; more than an earlier step by this plan took is more.
            expected = max(book.plan.peak_bytes, book.record["peaks"].get(book.plan.digest, 0))
            if peak_bytes > expected:
                book.doubt = f"{peak_bytes} bytes at the peak, not {expected}"
            if book.doubt:
                self._forget(book, book.doubt)
                return
            book.on_trial = False
            if book.plan.digest in book.record["peaks"] and not book.made:
                return
        self._keep_record(book, peak_bytes)

    def _make_plan(self, book: Book, others_bytes: int) -> None:
        may_copy = self._host_bytes > 0 and not book.kept
        book.profile = book.make_profile(self.name, self.link() if may_copy else None)
        budget = self.budget_now(others_bytes)
        entry = self.resumed.take(self.name_of(book.profile, self._shape_of(book)), 1)
        _states.limit([book], entry)
        if book.at_most_bytes is not None:
            at_most_bytes = book.at_most_bytes
            if entry or not may_copy or not isinstance(budget, int):
                at_most_bytes = max(book.profile.budget_bytes("least", recompute_only=True), at_most_bytes)
                budget = book.profile.budget_bytes(budget, recompute_only=True)
            budget = min(budget, at_most_bytes)
        known = None if may_copy else self._plan_of_state(book, entry, budget)
        if known is not None:
            plan, book.source = known, _states.SOURCE
        elif may_copy:
            plan = self._plan_with_copies(book, budget)
        else:
            plan = self._ask(book, book.profile, budget, recompute_only=True)
        book.steps = _steps.Steps(plan.schedule(), self.length, list(book.kept))
        book.plan, book.is_widened = plan, False
        again = f"{plan.recomputed_forwards} forwards run again"
        self._note("planned", f"{book.source}: {plan.peak_bytes} bytes within {plan.budget_bytes}, {again}")

    def _plan_with_copies(self, book: Book, budget: Budget) -> Plan:
        """Or without, where that fits or takes less: what no copy moves, and what blocks hand on, counts for copies' sake."""
        assert book.profile is not None
        alone = book.make_profile(self.name, None) if book.takes_more_for_copies else None
        least = 0 if alone is None else alone.budget_bytes("least", recompute_only=True)
        if alone is None or budget != "least" or _moving.least_beside_input(book.profile) <= least:
            try:
                return _moving.plan_beside_input(book.profile, budget, functools.partial(self._ask, book))
            except Infeasible:
                if alone is None or least > alone.budget_bytes(budget, recompute_only=True):
                    raise
        book.profile = alone
        return self._ask(book, alone, budget, recompute_only=True)

    def name_of(self, profile: Profile, shape: Any) -> str:
        """What processes must have in common to train by one plan."""
        return _states.name_of(profile, None if self.ranks is not None and self.ranks.one_schedule else shape)

    def _shape_of(self, book: Book) -> Any:
        # None: it was forgotten while a step by it ran on.
        return next((shape for shape, known in self.books.items() if known is book), None)

    def _plan_of_state(self, book: Book, entry: Mapping[str, Any], budget: Budget) -> Optional[Plan]:
        assert book.profile is not None
        if not entry:
            return None
        return _states.plan_in(entry, book.profile, book.profile.budget_bytes(budget, recompute_only=True))

    def budget_now(self, others_bytes: int) -> Budget:
        """What plans may take, while so much else is live. Raises Infeasible where a device has nothing left."""
        return self.budget.budget_bytes(others_bytes) if isinstance(self.budget, DeviceMemory) else self.budget

    def ask_for_all(self, profile: Profile, budget_bytes: int, books: Sequence[Book]) -> Tuple[Plan, str]:
        """A plan for all ranks, and where it comes from. Of the books that it is for this rank may have none."""
        book = books[0] if books else Book(self.length, [], self.device)
        if _moving.has_link(profile):
            plan = _moving.plan_beside_input(profile, budget_bytes, functools.partial(self._ask, book))
        else:
            plan = self._ask(book, profile, budget_bytes, recompute_only=True)
        return plan, book.source

    def adopt(self, profile: Profile, plan: Plan, source: str, books: Sequence[Book], to_all: bool) -> None:
        """What the ranks have agreed on for these books; ``to_all``: steps of all others follow it, too."""
        stages = profile.to_dict()["chain"]["stages"]
        self._kept = [block for block, stage in enumerate(stages, 1) if stage["must_keep"]]
        steps = _steps.Steps(plan.schedule(), self.length, self._kept)
        if to_all:
            self._steps_of_all = steps
        for book in books:
            book.profile, book.plan, book.source, book.steps = profile, plan, source, steps
            book.was_watched = False
            for block in self._kept:
                book.kept.setdefault(block, "another rank must keep it")
            self._note("planned", f"{source}: {plan.peak_bytes} bytes within {plan.budget_bytes}, on all ranks")

    def _ask(self, book: Book, profile: Profile, budget: Budget, beside_bytes: int = 0, recompute_only: bool = False) -> Plan:
        """A plan of the service or of this process. ``beside_bytes``: what steps hold and the profile does not have."""
        if self._service is None:
            return self._own_plan(book, profile, budget, recompute_only)
        recorded = self._recorded_plan(book, profile, budget, recompute_only)
        known: Dict[str, Any] = {} if recorded is None else {"known": recorded}
        answer = self._service.plan(profile, budget, recompute_only=recompute_only, **known)
        if recorded is None or answer.plan.digest != recorded.digest:
            self._record_plan(book, answer.plan, budget, recompute_only)
        book.source = answer.source
        book.report = None if answer.key is None else Report(self._service, answer, self._reported_steps, beside_bytes)
        return answer.plan

    def _own_plan(self, book: Book, profile: Profile, budget: Budget, recompute_only: bool) -> Plan:
        plan = self._recorded_plan(book, profile, budget, recompute_only)
        if plan is None:
            plan = profile.plan(budget, recompute_only=recompute_only)
            self._record_plan(book, plan, budget, recompute_only)
        return plan

    def _recorded_plan(self, book: Book, profile: Profile, budget: Budget, recompute_only: bool) -> Optional[Plan]:
        """What an earlier process had for the same costs, within the same budget."""
        made = None if book.record is None or not recompute_only else book.record["plans"].get(f"{budget} recompute only")
        try:
            return None if made is None else profile.plan_from_dict(made, recompute_only=True)
        except StowageError:
            return None  # a file that somebody has changed

    def _record_plan(self, book: Book, plan: Plan, budget: Budget, recompute_only: bool) -> None:
        if recompute_only and self._records is not None:
            book.made[f"{budget} recompute only"] = plan.to_dict()

    def link(self) -> Optional[Dict[str, Any]]:
        """To host memory, as profiles have it; None where nothing may go there."""
        if self._measured_link is None and self._host_bytes > 0:
            self._measured_link = self._pool.copies.measured_link(self._host_bytes)
        return self._measured_link

    def moves(self) -> Moves:
        """Of a new run."""
        return Moves(self._pool)

    def before_forward(self, run: Run, block: int, call: Call, made_between: int) -> None:
        """Measures the block if it is the first of its shape."""
        if call.is_known:
            return
        if block > 1:
            before = run.book.stages[block - 2] if run.is_widening else None
            if before is not None and run.plan.first_at[block - 2] not in run.activations:
                made_between += before["output_bytes"]  # which the caller may have let go of meanwhile
            run.book.between_measured(block, call, made_between)
        buffers = list(call.module.buffers())
        with self.inside(), gathered_whole(call.module):
            costs, changed = self._measure(run, block, call, buffers)
        buffers = list(call.module.buffers())  # which the first forward may have made
        if block == 1 or run.is_widening:
            self._note("measured", f"block {block}" if run.is_widening else f"{self.length} blocks, in this step")
        self.parts.note_changed(call.module, changed)
        buffer_bytes = self.device.bytes_of(buffers[place] for place in changed)
        random_bytes = self.device.bytes_of(call.random)
        random_states = (block == 1) + (costs.stage["random"] and block < self.length)  # before the first, after others
        held_bytes = buffer_bytes + random_states * random_bytes + costs.graph_bytes
        for field in costs.stage:  # during a recompute, what is restored after it
            if field.endswith("_overhead_bytes") and field != "backward_overhead_bytes":
                costs.stage[field] += buffer_bytes + random_bytes
        if run.book.block_measured(block, call, costs, held_bytes):
            run.go_on_by(run.book.steps)
            if self._host_bytes:
                self.say(f"block {block} is kept ({costs.kept_because}): nothing goes to the host")

    def _measure(self, run: Run, block: int, call: Call, buffers: List[torch.Tensor]) -> Tuple[BlockCosts, List[int]]:
        book, kind = run.book, _measuring.kind_of(call)
        known = book.costs_by_likeness(block, kind)
        if known is not None:
            return known
        listening = None if self.ranks is None else self.ranks.listening(call.module)
        rounds = 1 if kind in book.warm or book.alike is not None else _measuring.ROUNDS
        costs, changed = _measuring.measure_block(call, run.given, f"block {block}", buffers, listening, rounds)
        if self.ranks is not None and costs.kept_because == COMMUNICATES:
            self.ranks.waits_within = True
        book.note_costs(block, kind, costs, changed)
        return costs, changed

    def inside(self) -> _Inside:
        """Blocks that are called within are part of a recompute."""
        return _Inside(self._place)

    # ---------------------------------------------------------------- what is told

    def leaves_plan(self, book: Book, error: BaseException) -> bool:
        """Whether this rank, alone, goes on without the plan: memory has run out, and other ranks wait for its gradients."""
        if self.ranks is None or self.ranks.one_schedule or not is_out_of_memory(error):
            return False
        if COMMUNICATES in book.kept.values():
            return False  # what it does beyond the plan might say more than others expect
        self.ranks.note(out_of_memory=True)
        book.lacked_memory = book.plan is not None
        return True

    def is_known(self, book: Book, block: int, arguments: Tuple[Any, ...]) -> bool:
        """Whether the block need not be measured now. Ranks measure all of them in one step, by what is given there."""
        if book.stages[block] is None:
            return self.ranks is not None and not self.ranks.measuring
        return self.ranks is not None or book.knows(block, arguments)

    def widen(self, run: Run, block: int) -> None:
        """The block is given larger arguments than any that it was measured with."""
        if not run.is_widening:
            run.is_widening = True
            run.watch.leave_plan()
            run.book.widen()
            self._note("widened", f"block {block} is given other or larger arguments than it was measured with")
            if not run.book.kept:  # which run once: what is held before them may be gone
                run.leave_plan()

    def count_recompute(self, block: int) -> None:
        self.recomputed[block] += 1

    def count_restart(self) -> None:
        self.restarts += 1

    def step_measured(self, book: Book, peak_bytes: int, time_ns: int, planned: bool) -> None:
        self.measured_peak_bytes = peak_bytes
        pool = self._pool
        self.copied = {"offloaded_bytes": pool.offloaded_bytes, "prefetched_bytes": pool.prefetched_bytes}
        pool.offloaded_bytes = pool.prefetched_bytes = 0
        if planned and not book.was_checked and book.key is not None:
            book.was_checked = True
            self._check_record(book, peak_bytes)
        takes_memory = self._pool.has_grown and not self.device.measures_each_step and not book.has_waited
        if planned and takes_memory:
            # The time is that of locking it, too: the next step is measured. Once: shapes that come in turn may lock in each.
            book.was_watched, book.has_waited = False, True
        if planned and book.report is not None and not takes_memory:
            book.report.add(time_ns, peak_bytes, self.copied, self.notes.append)
        if planned and book.plan is not None:
            unlike = book.unlike(peak_bytes, book.plan)
            drifted = book.drift.add(time_ns, peak_bytes, book.plan) if self.device.measures_each_step else None
            if unlike is not None:
                self._measure_each(book, unlike)
            elif drifted is not None:
                self._note_drift(book, drifted)

    def _note_drift(self, book: Book, words: str) -> None:
        """Steps are not what was predicted: the blocks are measured and planned anew."""
        if book.replans == MOST_REPLANS:
            self._note("drift", f"{words}; that stays, after {MOST_REPLANS} plans for it")
            return
        book.replans += 1
        self._measure_each(book, words)

    def _measure_each(self, book: Book, words: str) -> None:
        """Anew, each block by itself, on all ranks."""
        book.is_by_likeness = False
        self._note("drift", f"{words}: measured anew")
        if self.ranks is not None:
            self.ranks.note(replan=True)
        for shape in [shape for shape, known in self.books.items() if known is book]:
            self._drifted[shape] = book
            if self.ranks is None:
                del self.books[shape]
                if self._records is not None and book.key is not None:
                    self._records.remove(book.key)

    def _plan_for_less(self, book: Book) -> None:
        """Before the next step of this shape, of a device whose memory is less than was said, or in parts."""
        plan, profile = book.plan, book.profile
        if plan is None or profile is None or book.out_of_memory == MOST_SMALLER or not isinstance(self.budget, DeviceMemory):
            return
        book.out_of_memory += 1
        at_most_bytes = min(int(SMALLER * plan.peak_bytes), plan.peak_bytes - 1)
        if not self._host_bytes and at_most_bytes < profile.budget_bytes("least", recompute_only=True):
            self.say("a step ran out of memory by the plan that takes least")
            return
        book.at_most_bytes, book.plan, book.was_watched = at_most_bytes, None, False
        self._note("out of memory", f"the next step of its shape is planned for {at_most_bytes} bytes at most")
        self.say(f"a step ran out of memory: the next one of its shape is planned for {at_most_bytes} bytes at most")

    def note_failure(self, error: BaseException, book: Book) -> None:
        lacks_memory = is_out_of_memory(error) and self.ranks is None
        if book.is_by_likeness and (lacks_memory or isinstance(error, ExecutionError)):
            self._measure_each(book, f"{type(error).__name__} by what blocks like these take")
        elif lacks_memory:
            self._plan_for_less(book)
        if book.on_trial and isinstance(error, ExecutionError):
            self._forget(book, str(error))
        try:
            self.last_failure = copy.copy(error)  # without its traceback, whose frames hold tensors
        except Exception:
            self.last_failure = RuntimeError(f"{type(error).__name__}: {error}")

    def _note(self, kind: str, words: str) -> None:
        self.events.append(Event(self._steps_begun, kind, words))

    def say(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
            self._note("note", note)
            warnings.warn(f"stowage: {note}", stacklevel=3)


def _covers(larger: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether inputs are like these, and none smaller."""
    return len(larger) == len(sizes) and all(
        a[1:] == b[1:] and len(a[0]) == len(b[0]) and all(map(operator.ge, a[0], b[0])) for a, b in zip(larger, sizes)
    )


def _has_tied(model: torch.nn.Module, blocks: Sequence[torch.nn.Module]) -> bool:
    """Whether several blocks use a parameter, or a block and what is beside the blocks."""
    places = [list(block.modules()) for block in blocks]
    inside = {id(module) for place in places for module in place}
    places.append([module for module in model.modules() if id(module) not in inside])
    owned = [{id(p) for module in place for p in module._parameters.values() if p is not None} for place in places]
    return sum(map(len, owned)) > len(set().union(*owned))
