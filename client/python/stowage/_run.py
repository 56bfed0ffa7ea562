"""One forward through the blocks, and the backwards that follow it, by the steps of a plan.

The caller's own backward drives. What a plan does not keep is packed as a Slot; when the engine first needs one of a block,
the run carries out the plan's steps up to that block's backward, which fills its slots.

Who holds whom: a graph's node its slots, a slot its Run, the Run the calls of its blocks and the activations that its plan
keeps. Slots are known to the Run by weak references, and nothing that it holds has a grad_fn: when the graph goes, all goes.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from stowage import _steps
from stowage._device import Device, RandomState
from stowage._sharding import gathered
from stowage._steps import START, Step
from stowage._versions import default_device, enter_task, flatten, hidden_from_dynamo, leaves_of, placed, storage_id
from stowage.errors import ExecutionError

if TYPE_CHECKING:
    from stowage._book import Book
    from stowage._chain import Chain
    from stowage._measuring import Watch
    from stowage._parts import Buffer

Kept = Tuple[torch.Tensor, int]  # a detached tensor, and the version that is to be read
Activation = Dict[int, Kept]  # a block's outputs by their place among its leaves
Meta = Tuple[torch.Size, torch.dtype, torch.device]
saved_tensors_hooks = torch.autograd.graph.saved_tensors_hooks
_HIDDEN = "stowage brings back a saved tensor"


class _Plain(NamedTuple):
    """An argument that is no tensor."""

    value: Any


class _Other(NamedTuple):
    """A tensor that is no output of the block before: held for the length of the run."""

    tensor: torch.Tensor
    version: int
    requires_grad: bool


class _Link(NamedTuple):
    """An output of the block before, by its place."""

    place: int
    requires_grad: bool


class _InputView(NamedTuple):
    """A saved tensor that is a view of the block's input, which the plan lets go of meanwhile."""

    place: int
    size: Tuple[int, ...]
    stride: Tuple[int, ...]
    offset: int


def shape_of(leaf: Any) -> Any:
    """What of an argument decides what a block takes: a tensor's shape and type, None, True or False, a value's type."""
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype, leaf.requires_grad
    return leaf if leaf is None or leaf is True or leaf is False else type(leaf)


class Slot:
    """What a graph's node has in place of one saved tensor."""

    __slots__ = ("run", "block", "index", "value", "version", "__weakref__")

    def __init__(self, run: Run, block: int, index: int) -> None:
        self.run = run
        self.block = block
        self.index = index
        self.value: Union[None, torch.Tensor, _InputView] = None
        self.version = 0


def may_hold_tensors(value: Any) -> bool:
    """Of a leaf of a block's arguments: an object whose attributes a block may read, and change."""
    return hasattr(value, "__dict__") and not isinstance(value, torch.Tensor) and not callable(value)


def versions_in(value: Any) -> Dict[str, int]:
    """Of the tensors that such an object holds."""
    held = [(name, tensor) for name, tensor in vars(value).items() if isinstance(tensor, torch.Tensor)]
    return {name: tensor._version for name, tensor in held if not tensor.is_inference()}


class _Held(NamedTuple):
    """An object that a block was given, and the tensors that it held then."""

    value: Any
    tensors: Dict[str, Tuple[weakref.ref[torch.Tensor], int]]

    @staticmethod
    def now(value: Any) -> _Held:
        return _Held(value, {name: (weakref.ref(vars(value)[name]), v) for name, v in versions_in(value).items()})

    def other(self) -> Optional[str]:
        """The name of a tensor that is another one now, or was written over."""
        now = versions_in(self.value)
        for name in {*now, *self.tensors}:
            reference, version = self.tensors.get(name, (None, -1))
            if reference is None or reference() is not vars(self.value).get(name) or now.get(name) != version:
                return name
        return None


def check_version(block: int, tensor: torch.Tensor, version: int) -> None:
    if tensor._version != version:
        raise ExecutionError(f"block {block}: what it reads was written over between its forward and its backward")


class Stop(BaseException):
    """Ends a recompute whose last saved tensor is there."""


def _no_unpack(_: object) -> torch.Tensor:
    raise ExecutionError("a block that runs a backward inside its forward must be kept")


def _drop(_: torch.Tensor) -> None:
    return None


class Call:
    """How a block was called, and the state that its forward saw."""

    __slots__ = (
        "function",
        "module",
        "device",
        "arguments",
        "build_from",
        "random",
        "autocast",
        "default_device",
        "buffers",
        "links",
        "training",
        "parameters",
        "shapes",
        "is_known",
        "objects",
        "others",
    )

    def __init__(self, function: Callable[..., Any], module: torch.nn.Module, device: Device) -> None:
        self.function = function
        self.module = module
        self.device = device
        self.arguments: List[Union[_Plain, _Other, _Link]] = []
        self.build_from: Callable[[List[Any]], Tuple[Any, Any]]
        self.random: RandomState
        self.autocast = device.autocast()
        self.default_device = default_device()
        self.buffers: List[Tuple[torch.Tensor, torch.Tensor]] = []
        self.links: List[int] = []
        self.training = module.training
        self.parameters: List[Tuple[torch.Tensor, int]] = []
        self.shapes: Tuple[Any, ...] = ()  # of the arguments, as shape_of has them
        self.is_known = True  # what it takes
        self.objects: List[_Held] = []
        self.others: List[Buffer] = []  # that no recompute restores

    def build(self, block: int, activation: Activation) -> Tuple[Any, Any]:
        """The arguments anew, with gradients that go nowhere."""
        leaves: List[Any] = []
        for argument in self.arguments:
            if isinstance(argument, _Plain):
                leaves.append(argument.value)
                continue
            if isinstance(argument, _Link):
                tensor, version = activation[argument.place]
            else:
                tensor, version = argument.tensor, argument.version
            check_version(block, tensor, version)
            leaves.append(tensor.detach().requires_grad_(argument.requires_grad))
        return self.build_from(leaves)

    def check(self, block: int) -> None:
        """Raises ExecutionError where a recompute would not do what the forward did."""
        if self.module.training != self.training:
            raise ExecutionError(f"block {block}: train() or eval() was called between forward and backward")
        for held in self.objects:
            name = held.other()
            if name is not None:
                words = f"{name} of the {type(held.value).__name__} that it reads is another one than in its forward"
                raise ExecutionError(f"block {block}: {words}")
        for parameter, version in self.parameters:
            if parameter._version != version:
                raise ExecutionError(f"block {block}: a parameter was written over between forward and backward")


_here = threading.local()


class restored:
    """Devices, random state, autocast and buffers as a call saw them; afterwards as they are now, whatever happens."""

    __slots__ = ("_call", "_random", "_buffers", "_chosen", "_placed", "_autocast")

    def __init__(self, call: Call) -> None:
        self._call = call

    def __enter__(self) -> None:
        call = self._call
        self._chosen = call.device.chosen()
        if self._chosen is not None:
            self._chosen.__enter__()
        self._random = call.device.random_state(call.random)
        self._buffers = [(buffer, buffer.detach().clone()) for buffer, _ in call.buffers]
        if self._random is not call.random:
            call.device.set_random_state(call.random)
        _put(call.buffers)
        self._placed = placed(call.default_device)
        self._placed.__enter__()
        self._autocast = call.autocast.scope()
        if self._autocast is not None:
            self._autocast.__enter__()
        _here.runs_again = getattr(_here, "runs_again", 0) + 1  # last: what fails before has no exit

    def __exit__(self, *error: Any) -> None:
        _here.runs_again -= 1
        if self._autocast is not None:
            self._autocast.__exit__(*error)
        self._placed.__exit__(*error)
        _put(self._buffers)
        self._call.device.set_random_state(self._random)
        if self._chosen is not None:
            self._chosen.__exit__(*error)


def is_recomputing() -> bool:
    """Whether this thread runs a block once more than plain training does: a recompute, or to measure it.

    For blocks that count or log what they do; what a block computes must not depend on it.
    """
    return getattr(_here, "runs_again", 0) > 0


def _put(buffers: Sequence[Tuple[torch.Tensor, torch.Tensor]]) -> None:
    for buffer, value in buffers:
        if buffer.shape != value.shape:  # made by the first forward
            buffer.resize_(value.shape)
        buffer.data.copy_(value)  # what a graph saved of the buffer keeps its version


class Run:
    """One forward through all blocks of a chain. Of one thread at a time."""

    def __init__(self, chain: Chain, steps: _steps.Steps, book: Book, watch: Watch) -> None:
        length = steps.length
        self.chain = chain
        self.book = book
        self.watch = watch
        self.plan = steps
        self.steps = steps.steps
        self.calls: List[Optional[Call]] = [None] * (length + 2)
        self.slots: List[List[weakref.ref[Slot]]] = [[] for _ in range(length + 2)]
        self.metas: List[List[Meta]] = [[] for _ in range(length + 2)]
        self.activations: Dict[int, Activation] = {START: {}}
        self.moves = chain.moves()
        self.next_step = 0
        self.current = length + 1  # the block whose backward runs
        self.backward_step: Optional[Step] = None
        self.task: Any = None
        self.busy = False
        self.in_forward = 0
        self.failed: Optional[str] = None
        self.outputs: List[Optional[weakref.ref[torch.Tensor]]] = []
        self.is_least = False  # the plan is left: each block runs again from the nearest activation
        self.is_widening = False  # blocks are measured anew, for other arguments
        self.given: Activation = {}  # what a block reads, while it is measured
        chain.runs.add(self)

    # ---------------------------------------------------------------- forward

    def forward(self, block: int, module: torch.nn.Module, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The block's first forward."""
        at = self.plan.first_at[block]
        made_between = self.watch.grown_since_forward()
        call = self._record(block, module, function, args, kwargs)
        while self.next_step < at and not self.is_least:
            self._execute(self.steps[self.next_step])
            self.next_step += 1
        self.in_forward = block
        try:
            self.chain.before_forward(self, block, call, made_between)
            self.given = {}
            at = self.plan.first_at[block]  # only now: a first step learns here what must be kept
            step = self.steps[at]
            call.buffers = self.chain.parts.copies_of_changed(module)
            others = self.chain.parts.copies_of_others(module) if self.book.on_trial or self.book.is_by_likeness else None
            runs_once = block in self.book.kept or (step.plain and not self.is_least)
            beside = [] if runs_once else self.chain.parts.others_now(call)
            out = self._first_forward(step, call, args, kwargs)
            if not step.plain:
                stays = step.op == _steps.SAVE and not step.gap
                if not stays and call.autocast.enabled and not self.chain.has_tied:
                    # Else it holds the casts of the block's weights to the end of the autocast region. Tied weights share a
                    # cast, and with it how their gradients are rounded.
                    torch.clear_autocast_cache()
            if others is not None:
                self.chain.parts.check_trial(self.book, call, others, beside)
            elif beside:
                self.chain.parts.check_others(block, call, beside, self.chain.say)
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.in_forward = 0
        self.next_step = at + 1
        if not self.is_least:
            self._release(step)
            self._execute_drops(block)
        self.watch.note_forward()
        leaves = leaves_of(out)
        self.outputs = [weakref.ref(leaf) if isinstance(leaf, torch.Tensor) else None for leaf in leaves]
        if block == self.plan.length:
            self.watch.end_forward(leaves)
        elif step.plain:
            self.watch.mark(block, leaves)
        return out

    def _first_forward(self, step: Step, call: Call, args: Any, kwargs: Any) -> Any:
        """By the step; where memory runs out once more, saving nothing, with nothing saved of the blocks before."""
        block = step.block

        def run() -> Any:
            if step.plain and (not self.is_least or block in self.book.kept):
                return call.function(*args, **kwargs)
            return self._hooked_forward(step, call, args, kwargs)

        try:
            return run()
        except BaseException as error:
            if self.is_least or block in self.book.kept or not self.chain.leaves_plan(self.book, error):
                raise
        self.leave_plan()  # here, where the error and its tensors are gone
        if call.links:
            self.activations[self.plan.first_at[block - 1]] = _input_activation(args, kwargs, call)
        self.slots[block], self.metas[block] = [], []
        call.device.set_random_state(call.random)
        _put(call.buffers)
        return run()

    def _execute_drops(self, block: int) -> None:
        """Those after the block's forward; after the last block's, what goes to the host before or after the loss, too."""
        is_last = block == self.plan.length
        while True:
            step = self.steps[self.next_step]
            of_loss = step.op == _steps.SAVE and step.block > self.plan.length
            if step.op not in _steps.DROPS and not (is_last and (of_loss or step.op in _steps.OFFLOADS)):
                return
            self._execute(step)
            self.next_step += 1

    def _record(self, block: int, module: torch.nn.Module, function: Callable[..., Any], args: Any, kwargs: Any) -> Call:
        call = Call(function, module, self.chain.device)
        before = [reference() if reference is not None else None for reference in self.outputs]
        leaves, call.build_from = flatten(args, kwargs)
        activation: Activation = {}
        call.shapes = tuple([shape_of(leaf) for leaf in leaves])
        call.is_known = self.chain.is_known(self.book, block, call.shapes)
        if not call.is_known and self.book.stages[block] is not None:
            self.chain.widen(self, block)
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor):
                call.arguments.append(_Plain(leaf))
                if may_hold_tensors(leaf):
                    call.objects.append(_Held.now(leaf))
                continue
            place = _place_among(leaf, before)
            if place is None:
                call.arguments.append(_Other(leaf.detach(), leaf._version, leaf.requires_grad))
            else:
                activation[place] = (leaf.detach(), leaf._version)
                call.links.append(place)
                call.arguments.append(_Link(place, leaf.requires_grad))
        self.given = {} if call.is_known else activation
        if block > 1:
            producer = self.plan.first_at[block - 1]
            if self.steps[producer].keep or self.is_least:
                self.activations[producer] = activation
        previous = self.calls[block - 1]
        call.random = call.device.random_state(previous.random if previous is not None else None)
        call.parameters = [(p, p._version) for p in self.chain.parts.parameters_of(module)]
        self.calls[block] = call
        return call

    def _hooked_forward(self, step: Step, call: Call, args: Any, kwargs: Any) -> Any:
        block, run = step.block, self
        slots, metas = self.slots[block], self.metas[block]
        saves = step.op == _steps.SAVE and not self.is_least
        views = _input_views(args, kwargs, call) if step.gap else {}

        # The graph keeps this function, so it must hold no tensor.
        def pack(tensor: torch.Tensor) -> Slot:
            slot = Slot(run, block, len(slots))
            slots.append(weakref.ref(slot))
            metas.append((tensor.shape, tensor.dtype, tensor.device))
            if saves:
                _fill(slot, tensor, views)
            return slot

        tensors = [leaf for leaf in flatten(args, kwargs)[0] if isinstance(leaf, torch.Tensor)]
        versions = [tensor._version for tensor in tensors]
        with saved_tensors_hooks(pack, unpack):
            out = call.function(*args, **kwargs)
        if versions != [tensor._version for tensor in tensors]:
            raise ExecutionError(f"block {block} writes over an argument, which it did not when it was profiled")
        return out

    # ---------------------------------------------------------------- backward

    def reach(self, block: int) -> bool:
        """Moves on to the backward of the block; False outside of a backward."""
        if self.in_forward:
            raise ExecutionError(f"block {self.in_forward} runs a backward inside its forward, which it did not before")
        if self.busy:
            raise ExecutionError(f"block {block} is needed while another block is recomputed")
        if self.failed is not None:
            raise ExecutionError(f"this forward's backward failed before ({self.failed}): run the forward again")
        task = enter_task(self.task, _End(self))
        if task is None:
            return False
        self.task = task
        self.busy = True
        try:
            if self.calls[self.plan.length] is None and self.chain.ranks is not None:
                self.chain.ranks.end_forward(())  # before the last block: others may wait for that
            self._finish_backward()
            self.watch.move_to(block)
            if not self._follow_plan(block):
                self._recompute_within_little(block)
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.busy = False
        return True

    def _follow_plan(self, block: int) -> bool:
        """False where there is no plan to follow to the block's backward: no whole forward, or no memory for it."""
        if self.calls[self.plan.length] is None or self.is_least:
            return False
        try:
            if block >= self.current:
                self._restart()
            while self.current != block:
                self._advance()
            return True
        except BaseException as error:
            if not self.chain.leaves_plan(self.book, error):
                raise
        self.leave_plan()
        return False

    def leave_plan(self) -> None:
        """For the rest of this run nothing is saved beyond the block whose backward runs."""
        self.is_least = True
        self.moves.clear()
        self.backward_step = None
        for block in range(1, self.plan.length + 1):
            self._clear(block)

    def go_on_by(self, steps: _steps.Steps) -> None:
        """Other steps from here on, within the first forwards: of blocks that run but once and in order."""
        if not self.is_widening:
            self.plan, self.steps = steps, steps.steps
        elif self.is_least:
            held = {p if p == START else steps.first_at[self.steps[p].block]: a for p, a in self.activations.items()}
            self.plan, self.steps, self.activations = steps, steps.steps, held

    def _advance(self) -> None:
        self._finish_backward()  # of a block that needed nothing
        step = self.steps[self.next_step]
        self.next_step += 1
        if step.op != _steps.BACKWARD:
            self._execute(step)
            self._release(step)
        elif step.block <= self.plan.length:
            self._finish_backward()
            self.current = step.block
            self.backward_step = step

    def _restart(self) -> None:
        """A second backward: from the input on, all forwards by the plan once more."""
        self.activations = {START: {}}
        self.moves.clear()
        for block in range(1, self.plan.length + 1):
            self._clear(block)
        self.steps = self.plan.again
        self.next_step = 0
        self.current = self.plan.length + 1
        self.backward_step = None
        self.chain.count_restart()

    def _finish_backward(self) -> None:
        step = self.backward_step
        if step is not None:
            self._clear(step.block)
            self._release(step)
            self.backward_step = None

    def end_of_task(self) -> None:
        self.task = None
        if self.failed is None:
            self._finish_backward()

    def _execute(self, step: Step) -> None:
        if step.op in _steps.FORWARDS:
            if step.block <= self.plan.length:
                self._recompute(step)
        elif step.op in _steps.MOVES:
            self.moves.execute(self, step)
        elif step.op == _steps.DROP_SAVED or (step.op == _steps.DISCARD and step.saved):
            self._clear(step.block)
        if step.op == _steps.DISCARD:
            self.moves.drop(step.block, step.saved)

    # ---------------------------------------------------------------- recomputes

    def _recompute(self, step: Step) -> None:
        block = step.block
        call = self.calls[block]
        if call is None or step.source is None:
            raise ExecutionError(f"block {block} has not run yet")
        fills = step.op == _steps.SAVE and bool(self.slots[block])
        out = self._run_again(block, call, self.activations[step.source], fills, step.keep, step.gap)
        if step.keep:
            following = self.calls[block + 1]
            leaves = leaves_of(out)
            links = following.links if following is not None else range(len(leaves))
            self.activations[step.index] = _activation_of(leaves, links)

    def _run_again(self, block: int, call: Call, activation: Activation, fills: bool, keep: bool, gap: bool) -> Any:
        call.check(block)
        self.chain.parts.check_same(block, call)
        self.chain.count_recompute(block)
        args, kwargs = call.build(block, activation)
        with self.chain.inside(), gathered(call.module), restored(call), torch.enable_grad():
            if fills:
                return self._fill_slots(block, call, args, kwargs, keep, gap)
            # With gradients on, as in the forward: without, some blocks take other kernels.
            with saved_tensors_hooks(_drop, _no_unpack):
                return call.function(*args, **kwargs)

    def _fill_slots(self, block: int, call: Call, args: Any, kwargs: Any, keep: bool, gap: bool) -> Any:
        slots, metas = self.slots[block], self.metas[block]
        expected, count, stopped = len(slots), 0, False
        views = _input_views(args, kwargs, call) if gap else {}

        def pack(tensor: torch.Tensor) -> None:
            nonlocal count, stopped
            index = count
            count += 1
            if index >= expected:
                raise ExecutionError(f"block {block}: a recompute saves more than the {expected} tensors of the forward")
            meta = (tensor.shape, tensor.dtype, tensor.device)
            if metas[index] != meta:
                raise ExecutionError(f"block {block}: saved tensor {index} was {metas[index]}, recomputed it is {meta}")
            slot = slots[index]()
            if slot is not None:
                _fill(slot, tensor, views)
            if count == expected and not keep:
                stopped = True
                raise Stop
            return None

        out = None
        try:
            with saved_tensors_hooks(pack, _no_unpack):
                out = call.function(*args, **kwargs)
        except BaseException:  # PyTorch 1.13 makes a RuntimeError of what a hook raises
            if not stopped:
                raise
        if count != expected:
            raise ExecutionError(f"block {block}: a recompute saves {count} tensors, the forward saved {expected}")
        return out

    def _recompute_within_little(self, block: int) -> None:
        """Where memory runs out, once more from the input, with nothing else held."""
        try:
            self._recompute_nearest(block)
            return
        except BaseException as error:
            if not self.chain.leaves_plan(self.book, error):
                raise
        self.activations = {START: {}}
        self.leave_plan()
        self._recompute_nearest(block)

    def _recompute_nearest(self, block: int) -> None:
        """The block's slots, from whatever is held before it."""
        self.current = block
        self.backward_step = None
        if self.is_least:
            self.activations = {p: a for p, a in self.activations.items() if p == START or self.steps[p].block < block}
        self._from_nearest(block, lambda call, activation: self._run_again(block, call, activation, True, False, False))

    def _from_nearest(self, block: int, last: Callable[[Call, Activation], Any]) -> None:
        held = {0 if p == START else self.steps[p].block: a for p, a in self.activations.items()}
        nearest = max(b for b in held if b < block)
        activation = held[nearest]
        for number in range(nearest + 1, block + 1):
            call = self.calls[number]
            assert call is not None
            if number == block:
                last(call, activation)
            else:
                following = self.calls[number + 1]
                assert following is not None
                out = self._run_again(number, call, activation, False, True, False)
                activation = _activation_of(leaves_of(out), following.links)

    def look(self, slot: Slot) -> torch.Tensor:
        """A saved tensor for somebody outside of a backward: recomputed aside, the plan stays where it is."""
        if isinstance(slot.value, torch.Tensor):
            return slot.value
        found: List[torch.Tensor] = []

        def again(call: Call, activation: Activation) -> None:
            call.check(slot.block)
            self.chain.parts.check_same(slot.block, call)
            args, kwargs = call.build(slot.block, activation)
            with self.chain.inside(), gathered(call.module), restored(call), torch.enable_grad():
                with saved_tensors_hooks(lambda t: found.append(t.detach()), _no_unpack):
                    call.function(*args, **kwargs)

        self.busy = True
        try:
            self._from_nearest(slot.block, again)
        finally:
            self.busy = False
        return found[slot.index]

    def input_view(self, view: _InputView) -> torch.Tensor:
        step = self.backward_step
        assert step is not None and step.source is not None
        tensor, version = self.activations[step.source][view.place]
        check_version(step.block, tensor, version)
        return tensor.as_strided(view.size, view.stride, view.offset)

    def _clear(self, block: int) -> None:
        for reference in self.slots[block]:
            slot = reference()
            if slot is not None:
                slot.value = None

    def _release(self, step: Step) -> None:
        for production in step.free:
            self.activations.pop(production, None)

    def fail(self, error: BaseException) -> None:
        """Lets go of every tensor; later backwards of this forward say why they cannot be."""
        self.failed = f"{type(error).__name__}: {error}"
        self.chain.note_failure(error, self.book)
        self.activations = {}
        self.moves.clear()
        self.backward_step = None
        for block in range(1, self.plan.length + 1):
            self._clear(block)


class _End:
    """Called by the engine when a backward has ended well; holds no run."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = weakref.ref(run)

    @hidden_from_dynamo(_HIDDEN)
    def __call__(self) -> None:
        run = self._run()
        if run is not None:
            run.end_of_task()


@hidden_from_dynamo(_HIDDEN)
def unpack(slot: Slot) -> torch.Tensor:
    """The engine's way back from a slot to its tensor."""
    run = slot.run
    if (run.current != slot.block or slot.value is None) and not run.reach(slot.block):
        return run.look(slot)
    value = slot.value
    if value is None:
        raise ExecutionError(f"block {slot.block}: saved tensor {slot.index} was not recomputed")
    if isinstance(value, _InputView):
        return run.input_view(value)
    if value._version != slot.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"block {slot.block}, saved tensor {slot.index}"
        )
    return value


def _fill(slot: Slot, tensor: torch.Tensor, views: Dict[int, Tuple[int, torch.dtype]]) -> None:
    if views:
        place, dtype = views.get(storage_id(tensor), (0, None))
        if dtype == tensor.dtype:
            slot.value = _InputView(place, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))
            return
    slot.value = tensor.detach()
    slot.version = tensor._version


def _input_views(args: Any, kwargs: Any, call: Call) -> Dict[int, Tuple[int, torch.dtype]]:
    leaves, _ = flatten(args, kwargs)
    return {
        storage_id(leaf): (argument.place, leaf.dtype)
        for leaf, argument in zip(leaves, call.arguments)
        if isinstance(argument, _Link)
    }


def _input_activation(args: Any, kwargs: Any, call: Call) -> Activation:
    leaves, _ = flatten(args, kwargs)
    pairs = zip(leaves, call.arguments)
    return {argument.place: (leaf.detach(), leaf._version) for leaf, argument in pairs if isinstance(argument, _Link)}


def _activation_of(leaves: List[Any], links: Any) -> Activation:
    return {place: (leaves[place].detach(), leaves[place]._version) for place in links}


def _place_among(leaf: torch.Tensor, outputs: List[Optional[torch.Tensor]]) -> Optional[int]:
    """Where a block's argument is among the outputs of the block before: the tensor itself, or one of its memory, as
    wrappers hand on."""
    for place, output in enumerate(outputs):
        if output is leaf:
            return place
    for place, output in enumerate(outputs):
        if output is not None and _same_memory(output, leaf):
            return place
    return None


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.numel() > 0
        and a.layout == b.layout == torch.strided
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
        and storage_id(a) == storage_id(b)
    )
