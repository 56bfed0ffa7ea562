"""What blocks take: bytes and times, as their device counts them."""

from __future__ import annotations

import functools
import gc
import random
import sys
import threading
import weakref
from contextlib import nullcontext
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch

from stowage._device import Device, local_part, own_bytes
from stowage._run import Call, _no_unpack, _Other, _Plain, may_hold_tensors, restored, saved_tensors_hooks, versions_in
from stowage._versions import hidden_from_dynamo, leaves_of, queue_callback, storage_id, tensors_left_in, unhooked
from stowage.errors import ExecutionError, InvalidArgument

if TYPE_CHECKING:
    from stowage._book import Book
    from stowage._chain import Chain
    from stowage._ranks import Listening

ROUNDS = 2  # the first warms up; of a block like one that was measured, or that was measured with others, there is one
# Of a block's parameters whose gradients are taken out as soon as they are whole, by hooks in each step; smaller ones' are
# after the block's backward.
LEAST_WATCHED_BYTES = 1 << 16
_HIDDEN = "stowage measures the step"


class Window(NamedTuple):
    """A stretch of work, from start to end."""

    peak_bytes: int  # beyond what was held at its start
    grown_bytes: int  # what is held at its end beyond that
    time_ns: int


class _Held:
    """What is held beyond a start, by all threads, or by this one alone where that is more: what another thread lets go of
    meanwhile, of gradients that ranks have summed, is none of a block's."""

    __slots__ = ("_before", "_device", "_own")

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before, self._own = device.current_bytes(), device.thread_bytes()
        self.take_peak()

    def now(self) -> int:
        held, own = self._device.current_bytes() - self._before, self._device.thread_bytes()
        return held if own is None or self._own is None else max(held, own - self._own)

    def take_peak(self) -> int:
        """The most since this was last taken of any."""
        peak = self._device.take_peak_bytes() - self._before
        return peak if self._own is None else max(peak, self._device.take_thread_peak_bytes() - self._own)


class _Measured:
    __slots__ = ("_device", "_held", "_peak", "_start", "window")

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> _Measured:
        self._device.settle()
        self._held, self._peak = _Held(self._device), 0
        self._start = self._device.now_ns()
        return self

    def __exit__(self, *error: Any) -> None:
        took = self._device.now_ns() - self._start
        self._device.settle()
        self.window = self._until(took)

    def so_far(self) -> Window:
        """From the start to now; the stretch goes on."""
        return self._until(self._device.now_ns() - self._start)

    def _until(self, time_ns: int) -> Window:
        self._peak = max(self._peak, self._held.take_peak())
        return Window(self._peak, self._held.now(), time_ns)


class _Arrivals:
    """The peak of a backward without the gradients of parameters that are whole, which are the job's from then on.

    They go to where a step accumulates them, or stay; either way what is held beside them is the same.
    """

    def __init__(self, device: Device, outputs: Sequence[torch.Tensor], parameters: Iterable[torch.Tensor]) -> None:
        self._held = _Held(device)
        self.bytes = 0
        self._peak = 0
        self._mine = {id(parameter) for parameter in parameters if own_bytes(parameter) >= LEAST_WATCHED_BYTES}
        self._missing: Dict[int, int] = {}  # uses of a parameter whose gradients are not there yet
        self._summed: Set[int] = set()  # parameters of several uses
        self._handles = [node.register_hook(self._hook_of(places)) for node, places in self._users(outputs)]

    def _users(self, outputs: Sequence[torch.Tensor]) -> List[Tuple[Any, Dict[int, int]]]:
        """The nodes that make parameters' gradients, and the parameters by the gradients' places."""
        todo, seen, users = [output.grad_fn for output in outputs], set(), []
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            places = {}
            for place, (following, _) in enumerate(node.next_functions):
                parameter = id(getattr(following, "variable", None))
                if parameter in self._mine:
                    places[place] = parameter
                    if parameter in self._missing:
                        self._summed.add(parameter)
                    self._missing[parameter] = self._missing.get(parameter, 0) + 1
                else:
                    todo.append(following)
            if places:
                users.append((node, places))
        return users

    def _hook_of(self, places: Dict[int, int]) -> Callable[[Any, Any], None]:
        def note(gradients: Any, _: Any) -> None:
            self.peak_bytes()
            for place, parameter in places.items():
                self._missing[parameter] -= 1
                gradient = gradients[place]
                if self._missing[parameter] == 0 and gradient is not None and gradient.layout == torch.strided:
                    if parameter in self._summed:  # right after this, beside what it is the sum of
                        self._peak = max(self._peak, self._held.now() + own_bytes(gradient) - self.bytes)
                    self.bytes += own_bytes(gradient)

        return note

    def peak_bytes(self) -> int:
        """Up to now, beyond what was held at first."""
        self._peak = max(self._peak, self._held.take_peak() - self.bytes)
        return self._peak

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()


class _NoCollections:
    """Python collects no garbage meanwhile: what an earlier step has left is not let go of by the pass during which it goes."""

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: Any) -> None:
        if self._collects:
            gc.enable()


class BlockCosts(NamedTuple):
    """One block's stage of the profile, why it must be kept, if it must, what its graph holds if nothing is saved, what
    its backward holds when it first needs something that is saved, what of that its module holds, too, and what of its input it
    hands on."""

    stage: Dict[str, Any]
    kept_because: Optional[str]
    graph_bytes: int
    early_bytes: int
    staying_bytes: int
    passed_bytes: int


class _Seed(torch.autograd.Function):  # type: ignore[misc]
    """Has a backward of a block's outputs begin, with gradients that the engine alone holds, as those of the next block."""

    @staticmethod
    def forward(ctx: Any, *outputs: torch.Tensor) -> torch.Tensor:
        ctx.make = [_maker_of_ones(output) for output in outputs]
        return torch.zeros((), device=outputs[0].device)

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        return tuple([make() for make in ctx.make])


def _maker_of_ones(like: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Makes the gradient of a tensor that it does not hold."""
    here = local_part(like)
    ones = functools.partial(torch.ones, here.shape, dtype=here.dtype, device=here.device)
    if here is like:
        return ones
    shared: Any = like
    whole: Any = sys.modules["torch.distributed.tensor"].Replicate()
    placements = [whole if placement.is_partial() else placement for placement in shared.placements]  # of a sum each has all
    mesh, sizes = shared.device_mesh, {"shape": shared.shape, "stride": shared.stride()}
    make = functools.partial(type(shared).from_local, device_mesh=mesh, placements=placements, run_check=False, **sizes)
    return lambda: make(ones())


class _HeldBackwards:
    """What backwards that this thread's forward runs give is held until the forward ends: autograd's thread for a device may
    hold it that long, or not. So it is counted each time."""

    def __init__(self) -> None:
        self._held: List[Any] = []

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._asked: Any = torch.autograd.Variable
        self._engine = self._asked._execution_engine
        self._asked._execution_engine = self

    def __exit__(self, *error: Any) -> None:
        self._asked._execution_engine = self._engine
        self._held.clear()

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        given = self._engine.run_backward(*args, **kwargs)
        if threading.get_ident() == self._thread:
            self._held.append(given)
        return given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _Beside:
    """What a forward may change and no recompute puts back: which tensors are buffers, the random numbers of Python, of NumPy
    and of generators that modules hold, and objects that the block is given. Afterwards all is as before, but for buffers where
    ``keeps_buffers``.

    ``changed`` says what did, ``replaced`` whether buffers did. Raises InvalidArgument where a tensor of an object was written
    over.
    """

    def __init__(self, call: Call, keeps_buffers: bool = False) -> None:
        self._call = call
        self._keeps_buffers = keeps_buffers
        self.changed: Optional[str] = None
        self.replaced = False

    def __enter__(self) -> _Beside:
        parts = list(self._call.module.modules())
        self._parts = [(part, dict(vars(part)), dict(part._buffers)) for part in parts]
        given = [argument.value for argument in self._call.arguments if isinstance(argument, _Plain)]
        self._objects = [(value, dict(vars(value)), versions_in(value)) for value in given if may_hold_tensors(value)]
        held = [value for part in parts for value in vars(part).values()]
        self._random = [(draws, draws.state(), set_back) for draws, set_back in _draws_of(held)]
        return self

    def __exit__(self, *error: Any) -> None:
        self.replaced = any(not _are_same(part._buffers, buffers) for part, _, buffers in self._parts)
        if self.replaced:
            self.changed = "it puts other tensors in the place of its buffers"
            if not self._keeps_buffers:
                self.put_back_buffers()
        for draws, state, set_back in self._random:
            if not _is_equal(draws.state(), state):
                self.changed = f"it draws from {draws.words}"
                set_back(state)
        for value, held, versions in self._objects:
            now, what = vars(value), type(value).__name__
            written = [name for name, version in versions.items() if held[name]._version != version]
            if written and error[0] is None:
                words = f"a block writes over {written[0]} of the {what} that it is given"
                raise InvalidArgument(f"{words}: what it is to write over must be given as a tensor")
            if not _are_same(now, held):
                self.changed = f"it changes the {what} that it is given"
                now.clear()
                now.update(held)

    def put_back_buffers(self) -> None:
        """With what else modules have of their own, which may say that buffers are made."""
        for part, attributes, buffers in self._parts:
            part._buffers.clear()
            part._buffers.update(buffers)
            vars(part).clear()
            vars(part).update(attributes)


def _are_same(now: Dict[str, Any], before: Dict[str, Any]) -> bool:
    return now.keys() == before.keys() and all(now[name] is value for name, value in before.items())


def _is_equal(a: Any, b: Any) -> bool:
    return bool(torch.equal(a, b)) if isinstance(a, torch.Tensor) else repr(_whole(a)) == repr(_whole(b))


class _Draws(NamedTuple):
    words: str
    state: Callable[[], Any]


def _draws_of(held: Sequence[Any]) -> List[Tuple[_Draws, Callable[[Any], None]]]:
    """Random numbers that PyTorch does not know of, and its generators among these."""
    found: List[Tuple[_Draws, Callable[[Any], None]]] = [(_Draws("Python's random numbers", random.getstate), random.setstate)]
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        found.append((_Draws("NumPy's random numbers", numpy.random.get_state), numpy.random.set_state))
    for value in held:
        if isinstance(value, torch.Generator):
            found.append((_Draws("a generator of its own", value.get_state), value.set_state))
        elif isinstance(value, random.Random):
            found.append((_Draws("random numbers of its own", value.getstate), value.setstate))
        elif numpy is not None and isinstance(value, numpy.random.Generator):
            bits = value.bit_generator
            own = _Draws("random numbers of its own", functools.partial(getattr, bits, "state"))
            found.append((own, functools.partial(setattr, bits, "state")))
    return found


def _whole(state: Any) -> Any:
    """With its arrays as lists, whose words are not cut short."""
    if isinstance(state, dict):
        return {name: _whole(value) for name, value in state.items()}
    if isinstance(state, tuple):
        return tuple(_whole(value) for value in state)
    return state.tolist() if hasattr(state, "tolist") else state


class _BlockMeter:
    """Runs one block aside: nothing of it reaches the caller's graph, gradients, buffers or random state."""

    def __init__(self, call: Call, name: str, kept: Optional[str] = None) -> None:
        self._call = call
        self._device = call.device
        self._name = name
        self._kept = kept
        self._output_bytes = 0
        self._gradient_bytes = 0
        self._graph_bytes = 0
        self._early_bytes = 0
        self._staying_bytes = 0
        self._passed_bytes = 0
        self._saved_tensors = 0
        self._stops = False
        self._times: Dict[str, List[int]] = {}
        self._sizes: Dict[str, int] = {}

    def costs(self, stateful: bool, draws: bool, rounds: int) -> BlockCosts:
        for number in range(rounds):
            if number > 0:
                self._sizes.clear()  # in which there is what kernels make once, such as workspaces of autograd's thread
            self._dropping_pass()
            self._saving_pass()
            if self._kept is None:
                self._holding_pass()
        early = self._sizes.get("recompute_saving_overhead_bytes", 0)
        # A part of it takes no more, though others may have let go of memory when the whole was measured.
        self._keep_largest("forward_saving_overhead_bytes", early - self._output_bytes)
        times = {field: min(times) for field, times in self._times.items()}
        if not self._stops or self._kept is not None:
            times.pop("recompute_saving_time_ns", None)  # of a round in which it did
        else:
            times["recompute_saving_time_ns"] = min(times["recompute_saving_time_ns"], times["forward_time_ns"])
        stage: Dict[str, Any] = {
            "name": self._name,
            "op_kind": type(self._call.module).__name__,
            "output_bytes": self._output_bytes,
            "output_gradient_bytes": self._gradient_bytes,
            "stateful": stateful,
            "random": draws,
            "must_keep": self._kept is not None,
        }
        costs = {**stage, **self._sizes, **times}
        sizes = self._graph_bytes, self._early_bytes, self._staying_bytes, self._passed_bytes
        return BlockCosts(costs, self._kept, *sizes)

    def _arguments(self) -> Tuple[Any, Any, List[torch.Tensor]]:
        """Copies, which a block may write over, and the leaves that their gradients go to."""
        leaves: List[Any] = []
        sources: List[torch.Tensor] = []
        for argument in self._call.arguments:
            if isinstance(argument, _Plain):
                leaves.append(argument.value)
                continue
            assert isinstance(argument, _Other)
            source = argument.tensor.detach().requires_grad_(argument.requires_grad)
            if argument.requires_grad:
                sources.append(source)
            leaves.append(source.clone())
        args, kwargs = self._call.build_from(leaves)
        return args, kwargs, sources

    def _dropping_pass(self) -> None:
        """A forward that saves nothing."""
        args, kwargs, _ = self._arguments()
        tensors = [leaf for leaf in leaves_of((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        versions = [tensor._version for tensor in tensors]
        self._saved_tensors = 0

        def drop(_: torch.Tensor) -> None:
            self._saved_tensors += 1

        with _Beside(self._call), restored(self._call), torch.enable_grad(), _Measured(self._device) as measured:
            try:
                with saved_tensors_hooks(drop, _no_unpack):
                    out = self._call.function(*args, **kwargs)
            except (ExecutionError, RuntimeError) as error:
                if "runs a backward inside its forward" not in str(error):
                    raise
                self._kept = "it runs a backward inside its forward"
                return
        if versions != [tensor._version for tensor in tensors]:
            self._kept = "it writes over its input"
        given = [leaf for leaf in leaves_of((args, kwargs, out)) if isinstance(leaf, torch.Tensor)]
        if self._kept is None and any(local_part(tensor) is not tensor for tensor in given):
            self._kept = "it is given DTensors, or hands them on"  # whose views a recompute could not make of its input
        self._output_bytes = self._device.bytes_of(leaves_of(out))
        self._graph_bytes = max(0, measured.window.grown_bytes - self._output_bytes)
        self._keep_largest("forward_overhead_bytes", max(0, measured.window.peak_bytes - self._output_bytes))
        self._note_time("forward_time_ns", measured.window)

    def _saving_pass(self) -> None:
        """A forward that saves, and its backward."""
        args, kwargs, sources = self._arguments()
        by_thread = self._kept is not None and self._device.type != "cpu"
        inner: ContextManager[None] = _HeldBackwards() if by_thread else nullcontext()
        with _Beside(self._call), restored(self._call), torch.enable_grad():
            with _Measured(self._device) as forward, inner:
                out = self._call.function(*args, **kwargs)
        outputs = [leaf for leaf in leaves_of(out) if isinstance(leaf, torch.Tensor)]
        self._output_bytes = self._device.bytes_of(outputs)
        self._gradient_bytes = self._device.gradient_bytes(outputs)
        # One that hands its input on makes nothing, but holds it.
        saved = max(forward.window.grown_bytes, self._output_bytes)
        given = {storage_id(leaf) for leaf in leaves_of((args, kwargs)) if isinstance(leaf, torch.Tensor)}
        passed = self._device.bytes_of(output for output in outputs if storage_id(output) in given)
        self._passed_bytes = max(0, forward.window.grown_bytes + passed - saved)
        if self._kept is not None:
            saved += self._device.bytes_of(leaves_of((args, kwargs)))  # its graph holds them, whatever the plan lets go of
        self._keep_largest("saved_bytes", saved)
        self._keep_largest("forward_saving_overhead_bytes", max(0, forward.window.peak_bytes - saved))
        if self._kept is not None:
            self._note_time("forward_time_ns", forward.window)
            self._keep_largest("forward_overhead_bytes", forward.window.peak_bytes)
        backward = self._backward([output for output in outputs if output.requires_grad], sources)
        self._keep_largest("backward_overhead_bytes", backward.peak_bytes)
        self._note_time("backward_time_ns", backward)

    def _holding_pass(self) -> None:
        """A recompute: what is saved is held by the executor, which may be more than a graph holds. Right before its backward
        it ends at the last saved tensor. That backward may have taken memory by the time when it first needs something,
        which is when the recompute is done."""
        args, kwargs, sources = self._arguments()
        held: List[torch.Tensor] = []
        at_last: List[Window] = []
        first: List[int] = []
        since: List[_Held] = []  # the backward's begin
        arrivals: List[_Arrivals] = []

        def hold(tensor: torch.Tensor) -> int:
            held.append(tensor.detach())
            if len(held) == self._saved_tensors:
                at_last.append(measured.so_far())
            return len(held) - 1

        def fetch(index: int) -> torch.Tensor:
            if not first:
                first.append(since[0].now() - arrivals[0].bytes)
            return held[index]

        with _Beside(self._call), restored(self._call), torch.enable_grad(), _Measured(self._device) as measured:
            with saved_tensors_hooks(hold, fetch):
                out = self._call.function(*args, **kwargs)
        outputs = [leaf for leaf in leaves_of(out) if isinstance(leaf, torch.Tensor)]
        self._keep_largest("saved_bytes", measured.window.grown_bytes)
        self._stops = bool(at_last) and {storage_id(o) for o in outputs}.isdisjoint(storage_id(t) for t in held)
        if self._stops:
            left = self._sizes["saved_bytes"] - self._output_bytes
            self._keep_largest("recompute_saving_overhead_bytes", max(0, at_last[0].peak_bytes - left))
            self._note_time("recompute_saving_time_ns", at_last[0])
        of_module = {storage_id(tensor) for tensor in tensors_left_in(self._call.module)}
        self._staying_bytes = self._device.bytes_of(tensor for tensor in held if storage_id(tensor) in of_module)
        since.append(_Held(self._device))
        backward = self._backward([output for output in outputs if output.requires_grad], sources, arrivals)
        self._note_time("backward_time_ns", backward)
        if first:
            self._early_bytes = max(0, first[0] - self._device.gradient_bytes(outputs))

    def _backward(
        self, outputs: List[torch.Tensor], sources: List[torch.Tensor], told: Optional[List[_Arrivals]] = None
    ) -> Window:
        parameters = [p for p in self._call.module.parameters() if p.requires_grad]
        into = sources + parameters
        if not outputs or not into:
            return Window(0, 0, 0)
        seed = _Seed.apply(*outputs)
        arrivals = _Arrivals(self._device, outputs, parameters)
        if told is not None:
            told.append(arrivals)
        with _Measured(self._device) as measured:
            made = torch.autograd.grad(seed, into, allow_unused=True)
            peak = arrivals.peak_bytes()
        del made
        arrivals.end()
        return measured.window._replace(peak_bytes=max(0, peak - self._device.gradient_bytes(outputs)))

    def _note_time(self, field: str, window: Window) -> None:
        self._times.setdefault(field, []).append(window.time_ns)

    def _keep_largest(self, field: str, value: int) -> None:
        self._sizes[field] = max(self._sizes.get(field, 0), value)


def kind_of(call: Call) -> Tuple[Any, ...]:
    """Equal for blocks of one class, on arguments and parameters of one size, in one mode: the first of them makes what
    kernels make once, such as workspaces, and the others find it there."""
    module = call.module
    parameters = tuple([(p.shape, p.dtype, p.requires_grad) for p in module.parameters()])
    buffers = tuple([(b.shape, b.dtype) for b in module.buffers()])
    return type(module), call.shapes, parameters, buffers, tuple([m.training for m in module.modules()])


def measure_block(
    call: Call,
    activation: Any,
    name: str,
    buffers: List[torch.Tensor],
    listening: Optional[Listening] = None,
    rounds: int = ROUNDS,
) -> Tuple[BlockCosts, List[int]]:
    """What the block takes by this call, and which of the buffers its forward writes to, by their places. A block that
    communicates while somebody is ``listening`` must be kept, and one that changes what is not put back. ``rounds``: 1 where
    its kernels are warm already.

    Raises what the block raises. Afterwards all is as before.
    """
    aside = Call(call.function, call.module, call.device)
    aside.build_from, aside.random, aside.autocast = call.build_from, call.random, call.autocast
    aside.default_device = call.default_device
    for argument in call.arguments:
        if isinstance(argument, (_Plain, _Other)):
            aside.arguments.append(argument)
        else:
            tensor, version = activation[argument.place]
            aside.arguments.append(_Other(tensor, version, argument.requires_grad))
    aside.buffers = [(buffer, buffer.detach().clone()) for buffer in buffers]
    with _NoCollections(), unhooked():
        changed, draws, kept = _find_state(aside, listening)
        aside.buffers = [aside.buffers[place] for place in changed]
        costs = _BlockMeter(aside, name, kept).costs(bool(changed), draws, rounds)
    aside.device.take_peak_bytes()  # which is none of the step's
    return costs, changed


def _find_state(call: Call, listening: Optional[Listening]) -> Tuple[List[int], bool, Optional[str]]:
    """Which buffers a forward writes to, by their places, whether it draws random numbers, and why the block must be kept."""
    first = _Beside(call, keeps_buffers=True)
    changed, draws = _state_after(call, first, listening or nullcontext())
    if first.changed is None:
        return changed, draws, None if listening is None else listening.heard
    # Once more: buffers may have been made, and are there now; another thread may have drawn.
    call.buffers = [(buffer, buffer.detach().clone()) for buffer in call.module.buffers()]
    second = _Beside(call)
    changed, draws = _state_after(call, second, nullcontext())
    if second.replaced:
        first.put_back_buffers()
        call.buffers = [(buffer, buffer.detach().clone()) for buffer in call.module.buffers()]
        changed = []  # nothing of a block that is kept is put back
    heard = None if listening is None else listening.heard
    return changed, draws, heard or second.changed


def _state_after(call: Call, beside: _Beside, scope: ContextManager[Any]) -> Tuple[List[int], bool]:
    args, kwargs, _ = _BlockMeter(call, "")._arguments()
    with beside, restored(call), torch.enable_grad():
        versions = [buffer._version for buffer, _ in call.buffers]
        with scope:
            call.function(*args, **kwargs)
        written = {
            id(buffer)
            for (buffer, before), version in zip(call.buffers, versions)
            if buffer._version != version or not _same(buffer, before)
        }
        # Norms write with no new version: a mean of zeros may stay one in this forward alone.
        for part in call.module.modules():
            own = {id(buffer) for buffer in part._buffers.values()}
            if not written.isdisjoint(own):
                written |= own
        changed = [place for place, (buffer, _) in enumerate(call.buffers) if id(buffer) in written]
        return changed, call.device.random_state(call.random) is not call.random


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.layout != torch.strided:
        return True  # as far as its version says
    return torch.equal(a, b) or bool(
        a.is_floating_point() and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
    )


class Watch:
    """The memory of one step, from the first block's forward to the end of its backward: that of the first block, or the
    whole backward's where nothing before the blocks has one.

    Gradients of parameters are the job's, not the plan's, from when they are whole: Chain.watching is told.
    The stretches are the forward, the head and the loss (up to the gradient of the last block's output), and the work
    from where one block is first needed to where the next one is.
    """

    def __init__(self, chain: Chain, book: Book, inputs: List[Any], by_larger: bool = False) -> None:
        """``by_larger``: the batch is smaller than those that the book is of."""
        self._chain = chain
        self._device = chain.device
        self._book = book
        self._planned = book.plan is not None and not by_larger  # the time is the plan's, and the peak
        self._begun_ns = self._start = 0
        self._peak = 0
        self._stretch_peak = 0
        self._grown = 0  # gradients that were not there before
        self._of_others = 0  # of these, those of parameters beside the blocks
        self._accumulated = 0  # of these, what is of the stretch that runs
        self._block = chain.length + 1  # whose backward runs; length + 1 is the head's
        self._gradients: List[int] = []
        self._fresh: Dict[int, bool] = {}  # parameters that have no gradient yet
        self._forward_end = 0
        self._forward_end_ns = 0
        self._after_forward = 0
        self._held = 0  # at the start of this stretch
        self._going = self._device.measures_each_step or not book.was_watched
        # What comes before the blocks has a backward after theirs.
        before = [i for i in inputs if i.grad_fn is not None] if self._going else []
        self._missing = len(before)
        for i in before:
            i.register_hook(self._input_gradient)
        if self._going:
            self._device.settle()
            self._begun_ns = self._device.now_ns()
            self._start = self._device.current_bytes() - self._device.bytes_of(inputs)
            self._after_forward = self._device.current_bytes()
            self._device.take_peak_bytes()

    def leave_plan(self) -> None:
        """This step is no longer one by the plan."""
        self._planned = False

    def note_forward(self) -> None:
        """After any block's forward."""
        if self._going:
            self._after_forward = self._device.current_bytes()

    def grown_since_forward(self) -> int:
        """What was made between that block and the next one."""
        return max(0, self._device.current_bytes() - self._after_forward) if self._going else 0

    def end_forward(self, outputs: List[Any]) -> None:
        """After the last block's forward."""
        if not self._going:
            return
        self._take()
        self._stretch_peak = 0
        self._forward_end = self._device.current_bytes()
        self._forward_end_ns = self._device.now_ns()
        self._chain.watching = weakref.ref(self)
        self._gradients = [self._chain.held_gradients(block) for block in range(self._chain.length + 2)]
        self._fresh = self._chain.without_gradients()
        for output in outputs:
            if isinstance(output, torch.Tensor) and output.grad_fn is not None:
                output.register_hook(lambda _: self._end_head())
                break

    @hidden_from_dynamo(_HIDDEN)
    def _input_gradient(self, _: torch.Tensor) -> None:
        self._missing -= 1
        if self._missing == 0 and self._gradients:
            self.end()

    def mark(self, block: int, outputs: List[Any]) -> None:
        """Has the gradient of a block that is kept tell when it is there: nothing else does."""
        if not self._going:
            return
        for output in outputs:
            if isinstance(output, torch.Tensor) and output.grad_fn is not None:
                output.register_hook(lambda _: self.move_to(block))
                break

    @hidden_from_dynamo(_HIDDEN)
    def _end_head(self) -> None:
        if not self._going or self._block <= self._chain.length:
            return
        peak = self._end_stretch([])
        took = self._device.now_ns() - self._forward_end_ns
        self._held = self._device.current_bytes() - self._grown
        self._book.head_measured(peak - self._forward_end, self._held - self._forward_end, took)
        self._block = self._chain.length
        queue_callback(self.end)

    @hidden_from_dynamo(_HIDDEN)
    def move_to(self, block: int) -> None:
        """The block is needed: the backwards of those behind it have ended."""
        if not self._going or not self._gradients:
            return
        self._end_head()  # whose own hook comes later, or never, where its gradient is that of other blocks, too
        if block > self._block:
            return  # the same gradient is that of two blocks
        if block < self._block:
            peak = self._end_stretch(range(block + 1, self._block + 1))
            self._book.stretch_measured(self._block, peak - self._held)
            self._block = block
            self._held = self._device.current_bytes() - self._grown

    @hidden_from_dynamo(_HIDDEN)
    def end(self) -> None:
        """The backward has ended."""
        if self._going:
            self._take()
            self._going = False
            self._chain.watching = None
            self._book.was_watched = self._book.was_watched or self._planned
            self._chain.step_measured(self._book, self._peak, self._device.now_ns() - self._begun_ns, self._planned)

    @hidden_from_dynamo(_HIDDEN)
    def accumulated(self, parameter: torch.Tensor, size_bytes: int) -> None:
        """The parameter's gradient is whole, and is added to what was there; the first time it is what is there."""
        if self._going and self._fresh.pop(id(parameter), False):
            self._take()
            self._accumulated += size_bytes

    def _take(self) -> None:
        peak = self._device.take_peak_bytes() - self._grown - self._accumulated
        self._peak = max(self._peak, peak - self._start)
        self._stretch_peak = max(self._stretch_peak, peak)

    def _end_stretch(self, blocks: Iterable[int]) -> int:
        """Its peak, without gradients of parameters. Of those, what is there now counts: loops may let go of them at once."""
        self._take()
        self._accumulated = 0
        for block in blocks:
            self._grown += self._grown_of(block)
        others = self._grown_of(self._chain.length + 1)  # some are between stacks of blocks
        self._grown += others - self._of_others
        self._of_others = others
        peak, self._stretch_peak = self._stretch_peak, 0
        return peak

    def _grown_of(self, block: int) -> int:
        return max(0, self._chain.held_gradients(block) - self._gradients[block])
