"""Ranks of a job of torch.distributed that train one model: they plan as one, and none waits for one that does not come.

Every rank takes part in the same rounds, in the same order. After each step a tiny tensor goes round, while the step's own
gradients do, that says how it went (Words); it is read before the next step. What it says leads all ranks to the same: to
measure in the next step, to plan anew, to plan within less. A group of its own carries all this, on the CPU: collectives of
the job keep their order.
"""

from __future__ import annotations

import datetime
import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from stowage import _moving, _states
from stowage._copying import slowest_of
from stowage._sharding import gather_times_ns, group_of, group_of_tensors, has_shared_tensors, is_flattened
from stowage._versions import is_out_of_memory, queue_callback
from stowage.errors import FailedPrecondition, InternalError, InvalidArgument, StowageError, Unavailable
from stowage.planning import Plan, Profile, __version__

if TYPE_CHECKING:
    from stowage._chain import Book, Chain

COMMUNICATES = "it communicates with other ranks"
_NEVER = 2**62  # in place of a time: its recomputes do not stop early

# Of torch.distributed.ProcessGroup; PyTorch 1.13 does not dispatch them as operations.
_CALLED = ("alltoall_base", "_allgather_base", "_reduce_scatter_base")

_COSTS = (
    "output_bytes",
    "output_gradient_bytes",
    "saved_bytes",
    "forward_time_ns",
    "backward_time_ns",
    "forward_saving_overhead_bytes",
    "forward_overhead_bytes",
    "backward_overhead_bytes",
    "recompute_saving_overhead_bytes",
)
_KINDS = ("random", "stateful", "collective", "must_keep")
_STOPPED = "recompute_saving_time_ns"
_Fields = Dict[str, Any]  # of a plan, as Plan.to_dict has it


class Words(NamedTuple):
    """What any of the ranks says of a step."""

    out_of_memory: bool = False
    new_shape: bool = False  # or another mode, or other parameters: nothing is known of such a step
    replan: bool = False
    left: bool = False


def costs_of(profile: Profile) -> List[int]:
    """All that ranks may differ in, none of it negative, so that the greatest of all ranks is theirs."""
    chain = profile.to_dict()["chain"]
    costs = [chain["input_bytes"], chain["input_gradient_bytes"]]
    for stage in [*chain["stages"], chain["loss"]]:
        costs += [stage.get(name) or 0 for name in _COSTS]
        costs += [int(bool(stage.get(name))) for name in _KINDS]
        stopped = stage.get(_STOPPED)
        costs.append(_NEVER if stopped is None else stopped)
    return costs


def with_costs(profile: Profile, costs: Sequence[int]) -> Profile:
    """The same network with these costs, as costs_of has them."""
    fields = profile.to_dict()
    chain, rest = fields["chain"], iter(costs)
    chain["input_bytes"], chain["input_gradient_bytes"] = next(rest), next(rest)
    for stage in [*chain["stages"], chain["loss"]]:
        stage.update({name: next(rest) for name in _COSTS})
        stage.update({name: bool(next(rest)) for name in _KINDS})
        stopped = next(rest)
        if stopped == _NEVER:
            stage.pop(_STOPPED, None)
            stage.pop("recompute_saving_overhead_bytes")
        else:
            stage[_STOPPED] = stopped
    return Profile.from_dict(fields)


def with_gathers(profile: Profile, gathers: Optional[Sequence[int]]) -> Profile:
    """The same, where a run of a block takes so many ns more: it was measured when its parameters were whole. They are whole
    again when it is recomputed right before its backward, for which it is gathered anyway."""
    if gathers is None or not any(gathers):
        return profile
    fields = profile.to_dict()
    for stage, time_ns in zip(fields["chain"]["stages"], gathers):
        stage["forward_time_ns"] += time_ns
    return Profile.from_dict(fields)


class Listening(TorchDispatchMode):  # type: ignore[misc]
    """Whether what runs meanwhile communicates with other ranks; ``heard`` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Optional[str] = None
        self._methods: Dict[str, Any] = {}

    def __enter__(self) -> Listening:
        for name in _CALLED:
            method = getattr(dist.ProcessGroup, name, None)
            if method is not None:
                self._methods[name] = method
                setattr(dist.ProcessGroup, name, self._hearing(method))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for name, method in self._methods.items():
            setattr(dist.ProcessGroup, name, method)
        self._methods.clear()

    def _hearing(self, method: Any) -> Any:
        def heard(*args: Any, **kwargs: Any) -> Any:
            self.heard = COMMUNICATES
            return method(*args, **kwargs)

        return heard

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # it makes operations of its own first
        if "c10d" in str(function):
            self.heard = COMMUNICATES
        return function(*args, **(kwargs or {}))


class Group:
    """A group of the same ranks as the job's, on the CPU. Made by all of them at once.

    Everything raises Unavailable where a rank is gone, or does not come within the group's timeout.
    """

    def __init__(self, of: Any) -> None:
        self.rank: int = dist.get_rank(of)
        self.size: int = dist.get_world_size(of)
        self._members = _members(of)
        how: Dict[str, Any] = {"backend": "gloo"}
        timeout = _timeout_of(of)
        if timeout is not None:
            how["timeout"] = timeout
        if self.size < dist.get_world_size():
            if not _is_local(dist.new_group):
                raise InvalidArgument("process_group: must have all ranks of the job, before PyTorch 2.1")
            how["use_local_synchronization"] = True
        self._group = self._try(lambda: dist.new_group(self._members, **how))
        self._word = torch.zeros(len(Words._fields), dtype=torch.int32, device="cpu")  # no step allocates one
        self._work: Any = None

    def gather(self, mine: Any) -> List[Any]:
        """What each rank says, by rank. Of few bytes."""
        said: List[Any] = [None] * self.size
        self._try(lambda: dist.all_gather_object(said, mine, group=self._group))
        return said

    def broadcast(self, mine: Any, rank: int) -> Any:
        """What that rank says."""
        said = [mine]
        self._try(lambda: dist.broadcast_object_list(said, src=self._members[rank], group=self._group))
        return said[0]

    def greatest(self, mine: Sequence[int]) -> List[int]:
        """Element by element."""
        values = torch.tensor(mine, dtype=torch.int64, device="cpu")
        self._try(lambda: dist.all_reduce(values, op=dist.ReduceOp.MAX, group=self._group))
        return [int(value) for value in values]

    def say(self, words: Words) -> None:
        """Without waiting for anybody. The last one said may be heard."""
        if self._work is not None:
            self._word = torch.zeros_like(self._word)  # the other one is still on its way
        self._word.zero_()
        for place, said in enumerate(words):
            if said:
                self._word[place] = 1
        self._work = self._try(lambda: dist.all_reduce(self._word, op=dist.ReduceOp.MAX, group=self._group, async_op=True))

    def hear(self) -> Words:
        """What was said by all."""
        self._try(self._work.wait)
        self._work = None
        return Words(*map(bool, self._word.tolist()))

    def _try(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (RuntimeError, ValueError) as error:
            words = f"rank {self.rank} of {self.size}: another rank is gone, or late beyond the group's timeout ({error})"
            raise Unavailable(words) from None


class Ranks:
    """One rank's part. Not thread-safe.

    ``one_schedule``: all ranks follow the same schedule in every step, whatever their batches are, since their recomputes
    communicate. ``waits_within``: forwards may wait for other ranks; set where a block is heard to communicate.
    """

    def __init__(self, of: Any, one_schedule: bool, waits_within: bool) -> None:
        self.group = Group(of)
        self.one_schedule = one_schedule
        self.waits_within = waits_within
        self.measuring = True  # all ranks measure in this step
        self.replanning = False  # since steps are no longer what was measured
        self.parted = False  # a rank has left: nothing is said any more
        self._begun = False  # a step was begun of which not all has been heard
        self._said = False
        self._has_ended = True  # this step's forward
        self._to_agree = False
        self._words = self._next_words = Words()
        self._agreed: Dict[str, List[int]] = {}  # costs, of one schedule
        self._greeted = False
        self._gathers: Optional[List[int]] = None  # ns, of each block's parameters
        self._link: Optional[Dict[str, Any]] = None  # of all ranks to host memory
        self._knows_link = one_schedule  # whose recomputes gather what must stay where it is

    # ---------------------------------------------------------------- steps

    def begin(self, chain: Chain, others_bytes: int) -> None:
        """Before a step's first block: hears of the step before, and does what follows, as all ranks do."""
        if self.parted:
            return
        if not self._greeted:
            self._greet(chain)
        if self._begun:
            self._begun = False
            self._say()
            said = self.group.hear()
            self.parted = said.left
            self._to_agree = self._to_agree or self.measuring or said.out_of_memory
            self.measuring, self.replanning = said.new_shape or said.replan, said.replan
        if not self.parted and (self._to_agree or self.measuring):
            self.group.say(Words())  # a rank that has left since takes part in no more than this
            self.parted = self.group.hear().left
        if self.parted:
            self.measuring = False
            return
        if self._to_agree:
            self._agree(chain, others_bytes)
            self._to_agree = False
        self._begun, self._said, self._has_ended = True, False, False
        self._words, self._next_words = self._next_words, Words()

    def note(self, **words: bool) -> None:
        """What is to be said of this step, or of the next one if that was said."""
        if self._begun and not self._said:
            self._words = self._words._replace(**words)
        else:
            self._next_words = self._next_words._replace(**words)

    def listening(self, block: torch.nn.Module) -> Optional[Listening]:
        """For the block's first forward aside. What SyncBatchNorm says it says again in a recompute: all ranks follow one
        schedule then."""
        return None if any(isinstance(m, torch.nn.SyncBatchNorm) for m in block.modules()) else Listening()

    def end_forward(self, outputs: Iterable[Any], error: Optional[BaseException] = None) -> None:
        """After the last block's forward, or one that failed or ended before: has the words go out at the end of the backward.

        After a forward that measured no backward begins unless all ranks have come so far: it would wait for them. Raises
        FailedPrecondition where another one failed, or Unavailable where forwards wait for others: these may wait within theirs
        for one that failed, so that it tells them nothing, and ends.
        """
        if self.parted or self._has_ended:
            return
        self._has_ended = True
        if error is not None:
            self.note(out_of_memory=self._words.out_of_memory or is_out_of_memory(error))
        if self.measuring and (error is None or not self.waits_within):
            said = self.group.gather(None if error is None else _text_of(error))
            if error is None:
                _raise_for(said, "while it measured")
        for output in outputs:
            if isinstance(output, torch.Tensor) and output.grad_fn is not None:
                output.register_hook(self._at_backward)
                return

    def leave(self) -> None:
        """This rank makes no more steps; the others go on by the plans that they have. Waits for nobody."""
        if self.parted:
            return
        if self._begun:
            self._say()
        self.group.say(Words(left=True))  # in place of what is said next, whatever that is
        self.parted, self.measuring = True, False

    def _at_backward(self, _: torch.Tensor) -> None:
        if not self._said:
            queue_callback(self._say)  # before that of DistributedDataParallel, which waits for others

    def _say(self) -> None:
        if not self._said:
            self._said = True
            self.group.say(self._words)

    # ---------------------------------------------------------------- plans

    def _greet(self, chain: Chain) -> None:
        mine = (__version__, torch.__version__, chain.name, chain.length, self.one_schedule)
        for rank, theirs in enumerate(self.group.gather(mine)):
            if theirs != mine:
                raise FailedPrecondition(
                    f"rank {rank} has (stowage, PyTorch, model, blocks, one schedule) = {theirs}, rank {self.group.rank} {mine}"
                )
        self._greeted = True

    def _agree(self, chain: Chain, others_bytes: int) -> None:
        """Plans for all shapes that any rank has measured, or ran out of memory with. An error of one rank is one of all."""
        self._agree_on_link(chain)
        mine: Dict[str, List[Book]] = {}
        wanted: List[str] = []
        link = self._link
        if link is not None and any(self.group.gather(any(book.kept for book in chain.books.values()))):
            link = None
        self._agree_on_gathers(chain)
        for shape, book in chain.books.items():
            if book.is_complete:
                if book.own_profile is None:
                    book.own_profile = with_gathers(book.make_profile(chain.name, link), self._gathers)
                profile = book.own_profile
                name = chain.name_of(profile, shape)
                mine.setdefault(name, []).append(book)
                if book.plan is None or book.lacked_memory:
                    wanted.append(name)
        for name in sorted({name for of_rank in self.group.gather(wanted) for name in of_rank}):
            self._agree_on(chain, name, mine.get(name, []), others_bytes)

    def _agree_on_link(self, chain: Chain) -> None:
        """Once: the slowest, to as little memory as any has, if all have one."""
        if self._knows_link:
            return
        self._knows_link = True
        mine: Union[None, str, Dict[str, Any]]
        try:
            mine = chain.link()
        except Exception as failure:
            mine = _text_of(failure)
        links = self.group.gather(mine)
        _raise_for(links, "while it measured its link to host memory")
        if None not in links:
            self._link = slowest_of(links)
        elif any(links):
            chain.say("a rank has no host_budget: nothing goes to the host")

    def _agree_on_gathers(self, chain: Chain) -> None:
        """As soon as there is a block that is not whole. Ranks that wait for one that failed wait for the collective."""
        if not self.one_schedule or self._gathers is not None:
            return
        mine: Union[None, str, List[int]]
        try:
            mine = gather_times_ns(chain.modules(), chain.device)
        except Exception as failure:
            mine = _text_of(failure)
        _raise_for(self.group.gather(mine), "while it measured what gathers take")
        if not isinstance(mine, str):
            self._gathers = mine

    def _agree_on(self, chain: Chain, name: str, books: List[Book], others_bytes: int) -> None:
        group = self.group
        has = group.gather(bool(books))
        owner = has.index(True)
        own = [book.own_profile for book in books if book.own_profile is not None]
        profile = Profile.from_json(group.broadcast(own[0].to_json() if owner == group.rank else "", owner))
        none = [0] * len(costs_of(profile))
        costs = group.greatest([max(of) for of in zip(none, self._agreed.get(name, none), *map(costs_of, own))])
        if self.one_schedule:
            self._agreed[name] = costs
        profile = with_costs(profile, costs)
        if any(stage["must_keep"] for stage in profile.to_dict()["chain"]["stages"]):
            profile = _moving.without_link(profile)
        entry = chain.resumed.take(name, group.size)
        _states.limit(books, entry)
        budget_bytes = self._least_budget(chain, profile, books, others_bytes)
        said = group.broadcast(_answer(chain, profile, budget_bytes, books, entry) if group.rank == 0 else None, 0)
        if isinstance(said, StowageError):
            raise said
        source, plan_fields = said
        if source == "local":
            plan_fields = self._for_the_slowest(profile, budget_bytes, own, plan_fields)
        error: Optional[BaseException] = None
        plan: Optional[Plan] = None
        try:
            plan = profile.plan_from_dict(plan_fields, recompute_only=not _moving.has_link(profile))
            chain.adopt(profile, plan, source, books, to_all=self.one_schedule)
        except Exception as failure:
            error = failure
        digests = group.gather(_text_of(error) if plan is None or error is not None else (plan.digest,))
        if error is not None:
            raise error
        _raise_for(digests, "over the plan of rank 0")
        if len(set(digests)) != 1:
            raise InternalError("the ranks have different plans")

    def _for_the_slowest(self, profile: Profile, budget_bytes: int, own: List[Profile], fields: _Fields) -> _Fields:
        """A plan by the greatest costs of all need not be the one by which the slowest rank is fastest. That rank makes one of
        its own times; of the two all take the one by which the slowest of them takes less."""
        group = self.group
        times = group.gather(_longest_of(own, fields))
        slowest = times.index(max(times))
        other = group.broadcast(_plan_by_times_of(own, profile, budget_bytes) if slowest == group.rank else None, slowest)
        if other is None or max(group.gather(_longest_of(own, other))) >= max(times):
            return fields
        return other  # type: ignore[no-any-return]

    def _least_budget(self, chain: Chain, profile: Profile, books: List[Book], others_bytes: int) -> int:
        error: Optional[BaseException] = None
        budget_bytes: Optional[int] = None
        try:
            if books:
                budget_bytes = self._budget(chain, profile, books, others_bytes)
        except Exception as failure:
            error = failure
        said = self.group.gather(budget_bytes if error is None else _text_of(error))
        if error is not None:
            raise error
        _raise_for(said, "before it planned")
        budgets: List[int] = [budget for budget in said if budget is not None]
        return min(budgets)

    def _budget(self, chain: Chain, profile: Profile, books: List[Book], others_bytes: int) -> int:
        """This rank's own."""
        least_bytes = _least_of(profile)
        budget = chain.budget_now(others_bytes)
        budget_bytes = least_bytes if budget == "least" else profile.budget_bytes(budget, recompute_only=True)
        for book in books:
            if book.lacked_memory and book.plan is not None:
                book.reduced_bytes = _states.less_than(book.plan)
            book.lacked_memory = False
            if book.reduced_bytes is not None:
                budget_bytes = min(budget_bytes, max(least_bytes, book.reduced_bytes))
        return budget_bytes


def _least_of(profile: Profile) -> int:
    if _moving.has_link(profile):
        return _moving.least_beside_input(profile)
    return profile.budget_bytes("least", recompute_only=True)


def _longest_of(own: Sequence[Profile], fields: _Fields) -> int:
    """A step's time by that plan under this rank's own costs, nanoseconds; 0 where it has measured none."""
    try:
        plans = [profile.plan_from_dict(fields, recompute_only=not _moving.has_link(profile)) for profile in own]
        return max((plan.makespan_ns for plan in plans), default=0)
    except Exception:
        return _NEVER


def _plan_by_times_of(own: Sequence[Profile], profile: Profile, budget_bytes: int) -> Optional[_Fields]:
    """Of the bytes of all ranks and this one's times; None where these are those of all."""
    fields = profile.to_dict()
    chains = fields["chain"], own[0].to_dict()["chain"]
    for stage, mine in zip(*([*chain["stages"], chain["loss"]] for chain in chains)):
        for name in ("forward_time_ns", "backward_time_ns", _STOPPED):
            if stage.get(name) is not None:
                stage[name] = mine.get(name) or 0
    if fields == profile.to_dict():
        return None
    try:
        own_times = Profile.from_dict(fields)
        if _moving.has_link(profile):
            return _moving.plan_beside_input(own_times, budget_bytes, lambda without, budget, _: without.plan(budget)).to_dict()
        return own_times.plan(budget_bytes, recompute_only=True).to_dict()
    except Exception:  # then there is the plan of rank 0
        return None


def _answer(chain: Chain, profile: Profile, budget_bytes: int, books: List[Book], entry: Mapping[str, Any]) -> Any:
    """The plan of rank 0 as others are told of it, or why there is none."""
    known = None if _moving.has_link(profile) else _states.plan_in(entry, profile, budget_bytes)
    if known is not None:
        return _states.SOURCE, known.to_dict()
    try:
        plan, source = chain.ask_for_all(profile, budget_bytes, books)
    except StowageError as error:
        return error
    except Exception as error:
        return FailedPrecondition(f"rank 0 failed while it planned: {type(error).__name__}: {error}")
    return source, plan.to_dict()


def _text_of(error: Optional[BaseException]) -> str:
    return f"{type(error).__name__}: {error}"


def _raise_for(said: Sequence[Any], when: str) -> None:
    """Ranks that failed say a text."""
    for rank, word in enumerate(said):
        if isinstance(word, str):
            raise FailedPrecondition(f"rank {rank} failed {when}: {word}")


# -------------------------------------------------------------------- which ranks


def ranks_of(model: torch.nn.Module, process_group: Any) -> Optional[Ranks]:
    """Those of the group that is given, else of what is around the model now, DistributedDataParallel or fully_shard; None
    where there is one rank alone."""
    if not dist.is_available() or not dist.is_initialized():
        if process_group is not None:
            raise FailedPrecondition("process_group: torch.distributed is not initialized")
        return None
    if is_flattened(model):
        raise FailedPrecondition("the model is in FullyShardedDataParallel, which cannot be planned: use fully_shard")
    sharded = group_of(model)
    group = process_group or sharded or _parallel_group(model) or group_of_tensors(model)
    if group is None or dist.get_world_size(group) < 2:
        return None
    one_schedule = sharded is not None or any(isinstance(m, torch.nn.SyncBatchNorm) for m in model.modules())
    return Ranks(group, one_schedule, one_schedule or has_shared_tensors(model))


def _parallel_group(model: torch.nn.Module) -> Any:
    """Of the DistributedDataParallel whose forward runs, if the model is in it."""
    parallel = torch.nn.parallel.DistributedDataParallel._active_ddp_module
    if parallel is None or not any(module is model for module in parallel.modules()):
        return None
    return parallel.process_group


def _members(group: Any) -> List[int]:
    if hasattr(dist, "get_process_group_ranks"):
        return list(dist.get_process_group_ranks(group))
    return [dist.distributed_c10d.get_global_rank(group, rank) for rank in range(dist.get_world_size(group))]


def _timeout_of(group: Any) -> Optional[datetime.timedelta]:
    """None where PyTorch does not say."""
    try:
        backend = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
        found = backend.options._timeout
    except (AttributeError, RuntimeError):
        return None
    return found if isinstance(found, datetime.timedelta) else None


def _is_local(new_group: Callable[..., Any]) -> bool:
    return "use_local_synchronization" in inspect.signature(new_group).parameters
