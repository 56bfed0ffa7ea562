"""Ranks that plan as one: what they agree on, what leads them to plan anew, and that none waits for one that does not come."""

import copy
import functools
import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import warnings

import pytest
import stowage
import torch
import torch.distributed as dist
from comparing import local
from ddp_test import loss_of, same
from networks import Mlp
from processes import SEEDS, Failed, Killed, outcomes, together, within
from stowage import _chain, _copying, _measuring
from stowage.planning import Profile
from torch import nn
from torch.distributed.nn.functional import all_reduce, all_to_all_single
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
WIDTH = 32


class Ill(nn.Module):
    """A block that does, or raises, what it is told to, in the forwards that it is told to."""

    def __init__(self):
        super().__init__()
        self.mlp, self.norm = Mlp(WIDTH), nn.BatchNorm1d(WIDTH)
        self.calls = 0
        self.what = None
        self.at = ()

    def forward(self, x):
        self.calls += 1
        y = self.norm(self.mlp.up(x)[:, :WIDTH])
        if self.calls in self.at:
            self.what()  # when something is saved, and more is to come
        return y + self.mlp(x)

    def does(self, what, *at):
        """In so many forwards from now, the next one is 1."""
        self.what, self.at = what, [self.calls + number for number in at]

    def raises(self, error, *at):
        self.does(functools.partial(_raise, error), *at)


def _raise(error):
    raise error


def blocks(count=6):
    torch.manual_seed(1)
    return nn.Sequential(*[Ill() for _ in range(count)])


def batch(rank, step, rows=64):
    torch.manual_seed(1000 * rank + step)
    return torch.randn(rows, WIDTH)


class Pair:
    """A model with plans and its twin without, each in a DistributedDataParallel of its own, that make the same steps."""

    def __init__(self, rank, budget="60%", **how):
        warnings.simplefilter("ignore")
        self.rank = rank
        self.plain, self.model = self.twins()
        stowage.wrap(self.model, budget, **how)
        self.parallel = [self.parallel_of(m) for m in (self.plain, self.model)]
        self.optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (self.plain, self.model)]
        self.steps = 0

    def twins(self):
        plain = blocks()
        return plain, copy.deepcopy(plain)

    def parallel_of(self, model):
        return DistributedDataParallel(model)

    @property
    def blocks(self):
        return list(self.model)

    def block_of(self, where, seed):
        """For a fault in its forward: any; for one in its recompute: one that the last step ran again."""
        again = [block for block, count in zip(self.blocks, self.training.recomputed) if count]
        among = self.blocks if where == "forward" else again
        return among[seed % len(among)]

    def step(self, rows=64):
        """Whether both left the same."""
        self.steps += 1
        results = []
        for parallel, optimizer in zip(self.parallel, self.optimizers):
            x = batch(self.rank, self.steps, rows)
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(parallel(x))
            loss.backward()
            results.append([loss.detach(), *(local(p.grad).clone() for p in parallel.parameters()), torch.get_rng_state()])
            results[-1] += [buffer.clone() for buffer in parallel.buffers()]
            optimizer.step()
        return same(results[:1], results[1:])

    @property
    def training(self):
        return self.model.stowage

    @property
    def fits(self):
        return self.training.measured_peak_bytes <= self.training.plan.budget_bytes


# -------------------------------------------------------------------- agreement


def under_another_default_device(rank):
    pair = Pair(rank)
    results = [[], []]
    for step in range(4):
        for parallel, of in zip(pair.parallel, results):
            x = batch(rank, step)
            with torch.device("meta"):
                loss = loss_of(parallel(x))
            loss.backward()
            of.append([loss.detach(), *(p.grad.clone() for p in parallel.parameters())])
    return same(*results), pair.training.plan.digest


@pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="PyTorch before 2.0 has no default device")
def test_what_ranks_say_is_on_the_cpu_whatever_the_default_device():
    (equal, digest), (others, theirs) = together(2, under_another_default_device)
    assert equal and others and digest == theirs


def own_budgets(rank, budgets):
    pair = Pair(rank, budgets[rank])
    equal = [pair.step() for _ in range(4)]
    return equal, pair.training.plan.digest, pair.training.plan.budget_bytes, pair.fits, pair.training.ranks


def test_the_least_budget_is_that_of_all():
    def whole(rank):
        pair = Pair(rank, "100%")
        for _ in range(2):
            pair.step()
        return pair.training.plan.peak_bytes

    most = max(together(2, whole))
    budgets = [most, int(0.7 * most), most]
    found = together(3, own_budgets, budgets)
    assert all(all(equal) and fits and ranks == 3 for equal, _, _, fits, ranks in found)
    assert len({digest for _, digest, *_ in found}) == 1
    assert {budget for _, _, budget, *_ in found} == {budgets[1]}


@pytest.mark.parametrize("budget", ["80%", "least"])
def test_shares_are_of_what_all_take(budget):
    found = together(2, own_budgets, [budget, budget])
    assert all(all(equal) and fits for equal, _, _, fits, _ in found)
    assert len({(digest, budget_bytes) for _, digest, budget_bytes, *_ in found}) == 1


def own_devices(rank, devices):
    pair = Pair(rank, None, device_budget=devices[rank])
    equal = [pair.step() for _ in range(4)]
    return equal, pair.training.plan.digest, pair.training.resident.total_bytes, pair.training.plan.budget_bytes, pair.fits


def test_each_rank_has_a_device_of_its_own():
    devices = [8 << 20, 1 << 20]
    first, second = together(2, own_devices, devices)
    assert all(first[0]) and all(second[0])
    assert first[1] == second[1]
    assert first[3] == second[3] <= min(devices[0] - first[2], devices[1] - second[2])
    assert first[4] and second[4]


def slow_rank(rank):
    inner = _measuring.measure_block

    def measure(*arguments):
        costs, changed = inner(*arguments)
        costs.stage["forward_time_ns"] = costs.stage["backward_time_ns"] = 1000 * (rank + 1)
        costs.stage["recompute_saving_time_ns"] = 1000 * (rank + 1) if rank else 0
        costs.stage["backward_overhead_bytes"] += 4096 * (2 - rank)
        return costs, changed

    _measuring.measure_block = measure
    pair = Pair(rank)
    equal = [pair.step() for _ in range(3)]
    stages = pair.training.profile.to_dict()["chain"]["stages"]
    fields = ("forward_time_ns", "recompute_saving_time_ns", "backward_overhead_bytes")
    return equal, [[stage.get(field) for field in fields] for stage in stages]


def test_the_greatest_costs_are_those_of_all():
    first, second, third = together(3, slow_rank)
    assert first[1] == second[1] == third[1]
    assert all(stage[:2] == [3000, 3000] and stage[2] >= 8192 for stage in first[1])


def lead_alone(rank):
    if rank > 0:
        Profile.plan = None  # whoever solves here fails
    pair = Pair(rank)
    return [pair.step() for _ in range(3)], pair.training.source, pair.training.plan.digest


class Skipping(nn.Module):
    """Leaves out a block, or all from one on."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks, self.skipped = nn.ModuleList([Mlp(WIDTH) for _ in range(4)]), ()
        self.others = nn.ModuleList([Mlp(WIDTH) for _ in range(3)])

    def forward(self, x):
        for number, block in enumerate([*self.blocks, *self.others]):
            if number not in self.skipped:
                x = block(x)
        return x


def skips(rank, skipped, at):
    warnings.simplefilter("ignore")
    plain = Skipping()
    model = stowage.wrap(copy.deepcopy(plain), "60%")
    parallel = [DistributedDataParallel(m, find_unused_parameters=True) for m in (plain, model)]
    equal = []
    for step in range(5):
        results = []
        for of, inner in zip(parallel, (plain, model)):
            inner.skipped = skipped if rank == 1 and step == at else ()
            x = batch(rank, step, 64)
            of.zero_grad(set_to_none=True)
            loss = of(x).square().mean()
            loss.backward()
            results.append([loss.detach(), *(p.grad.clone() for p in of.parameters()), torch.get_rng_state()])
        equal.append(same(results[:1], results[1:]))
    return equal, model.stowage.plan is not None and model.stowage.plan.digest


@pytest.mark.parametrize("skipped", [(1,), (2, 3), (4, 5, 6)], ids=["between", "to_the_end_of_a_list", "to_the_end"])
@pytest.mark.parametrize("at", [0, 2])
def test_a_rank_that_leaves_out_blocks(skipped, at):
    """The others wait, in the step that measures, until all have come to the end of the forward."""
    first, second = together(2, skips, skipped, at)
    assert all(first[0]) and all(second[0])
    assert first[1] and first[1] == second[1]


def test_one_rank_asks():
    first, second = together(2, lead_alone)
    assert all(first[0]) and first == second


def is_not_allowed(rank):
    pair = Pair(rank)

    def refuse(*_):
        raise stowage.PermissionDenied("this tenant has no plans")

    pair.training._chain.ask_for_all = refuse  # which rank 0 alone calls
    for _ in range(2):
        pair.step()


def test_what_ends_the_planning_of_rank_0_is_raised_as_it_is():
    assert all("PermissionDenied: this tenant has no plans" in str(outcome) for outcome in outcomes(2, is_not_allowed))


def fails_while_measured(rank):
    pair = Pair(rank)
    if rank == 1:
        pair.model[3].raises(ValueError("no such kernel"), 4)
    pair.step()


def test_a_rank_that_fails_while_it_measures_fails_all():
    first, second = outcomes(2, fails_while_measured)
    assert "FailedPrecondition: rank 1 failed while it measured: ValueError: no such kernel" in str(first)
    assert str(second).startswith("ValueError: no such kernel")


def too_small(rank, budgets):
    pair = Pair(rank, budgets[rank])
    pair.step()
    raised = []
    for _ in range(2):
        try:
            pair.step()
        except stowage.StowageError as error:
            raised.append((type(error).__name__, getattr(error, "least_bytes", 0)))
    return raised


def test_nothing_fits_one_rank():
    first, second = together(2, too_small, [1 << 30, 1000])
    assert first == second and len(first) == 2
    assert first[0][0] == "Infeasible" and first[0][1] > 1000


def other_model(rank):
    model = stowage.wrap(blocks(4 + rank), "60%", process_group=dist.group.WORLD)
    model(batch(rank, 0))


def test_ranks_with_other_models_are_refused():
    for rank, outcome in enumerate(outcomes(2, other_model)):
        assert isinstance(outcome, Failed)
        assert f"FailedPrecondition: rank {1 - rank} has" in str(outcome)


def alone_and_in_parts(rank):
    warnings.simplefilter("ignore")
    alone = stowage.wrap(blocks(), "60%")
    for step in range(rank + 2):  # ranks that plan alone take what steps they like
        loss_of(alone(batch(rank, step))).backward()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    given = stowage.wrap(blocks(), "60%", process_group=groups[rank % 2])
    for step in range(2 + rank % 2):
        loss_of(given(batch(rank, step))).backward()
    return alone.stowage.ranks, given.stowage.ranks, given.stowage.plan.digest


def test_groups_plan_for_themselves():
    if "use_local_synchronization" not in inspect.signature(dist.new_group).parameters:
        pytest.skip("parts of a job's ranks need PyTorch 2.1")
    found = together(4, alone_and_in_parts)
    assert {(alone, given) for alone, given, _ in found} == {(1, 2)}
    assert found[0][2] == found[2][2] and found[1][2] == found[3][2]


class Mean(nn.Module):
    """Less the mean of all ranks."""

    def forward(self, x):
        return torch.tanh(x - all_reduce(x.mean(0)) / dist.get_world_size())


class Experts(nn.Module):
    """One on each rank, which rows go to and come back from."""

    def __init__(self):
        super().__init__()
        self.expert = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        sent = all_to_all_single(torch.empty_like(x), x)
        done = torch.tanh(self.expert(sent))
        return all_to_all_single(torch.empty_like(done), done)


class SyncNorm(nn.SyncBatchNorm):
    """As it is on a GPU."""

    def forward(self, x):
        return (x - all_reduce(x.mean(0)) / dist.get_world_size()) * self.weight + self.bias


def with_norms(rank, kind, budget):
    warnings.simplefilter("ignore")
    torch.manual_seed(2)
    DistributedDataParallel._passing_sync_batchnorm_handle = lambda *_: None  # it insists on a GPU
    last = {"mean": Mean, "experts": Experts, "sync": lambda: SyncNorm(WIDTH)}[kind]
    norms = [nn.Sequential(nn.Linear(WIDTH, WIDTH), last()) for _ in range(6)]
    plain = nn.Sequential(*[norm if number % 2 else Mlp(WIDTH) for number, norm in enumerate(norms)])
    model = stowage.wrap(copy.deepcopy(plain), budget)
    results = []
    for parallel in (DistributedDataParallel(plain), DistributedDataParallel(model)):
        for step in range(4):
            parallel.zero_grad(set_to_none=True)
            loss = loss_of(parallel(batch(rank, step, 64 - 8 * (rank == 0 and step == 3 and kind == "sync"))))
            loss.backward()
            results.append([loss.detach(), *(p.grad.clone() for p in parallel.parameters())])
    return same(results[:4], results[4:]), model.stowage.kept, model.stowage.recomputed


@pytest.mark.parametrize("kind, budget", [("mean", "80%"), ("mean", "least"), ("experts", "least")])
def test_blocks_that_communicate_run_once(kind, budget):
    first, second = together(2, with_norms, kind, budget)
    assert first == second and first[0]
    assert first[1] == {block: "it communicates with other ranks" for block in (2, 4, 6)}
    assert sum(first[2]) == sum(first[2][0::2]) > 0


def test_batches_normed_by_all_ranks():
    first, second = together(2, with_norms, "sync", "least")  # the last batches have different shapes
    assert first == second and first[0] and not first[1] and sum(first[2][1::2]) > 0


# -------------------------------------------------------------------- copies to the host


def fast_link(duplex, host_bytes, to_host, to_device):
    link = {"duplex": duplex, "host_memory_bytes": host_bytes, "to_host_latency_ns": 0, "to_device_latency_ns": 100}
    return {**link, "to_host_bytes_per_second": to_host, "to_device_bytes_per_second": to_device}


LINKS = [fast_link("DUPLEX_FULL", 1 << 30, 10**12, 10**11), fast_link("DUPLEX_HALF", 1 << 28, 10**11, 10**12)]


def with_copies(rank, budget, host_budgets, lacks=None):
    """By links over which copies are cheaper than recomputes. ``lacks``: in which block's forward memory runs out on rank 1."""
    _copying.Copies.measured_link = lambda self, host_bytes: LINKS[rank]
    pair = Pair(rank, budget, host_budget=host_budgets[rank])
    equal = [pair.step() for _ in range(3)]
    plan, training = pair.training.plan, pair.training
    if lacks is not None and rank == 1:
        pair.model[lacks].raises(out_of_memory(), 1)
    equal += [pair.step() for _ in range(4)]
    copied = training.plan.to_dict()["prediction"]["offloaded_bytes"], training.offloaded_bytes
    device = training.profile.to_dict()["device"]
    link = {name: device.get(name) for name in LINKS[0]}
    said = [note for note in training.notes if "host" in note]
    return equal, plan.digest, training.plan.digest, copied, link, said, pair.fits


@pytest.mark.parametrize("budget", ["60%", "least"])
def test_ranks_copy_by_one_plan_over_the_slowest_link(budget):
    found = together(2, with_copies, budget, ["1GiB", "256MiB"])
    for equal, first, last, copied, link, said, fits in found:
        assert all(equal) and fits and not said
        assert first == last == found[0][1]
        assert copied[0] > 0 and copied[1] > 0
        assert link == fast_link("DUPLEX_HALF", 1 << 28, 10**11, 10**11)


@pytest.mark.parametrize("lacks", [1, 4])
def test_memory_that_runs_out_on_one_rank_while_something_is_away(lacks):
    first, second = together(2, with_copies, "60%", ["1GiB", "1GiB"], lacks)
    for equal, before, after, copied, _, _, fits in (first, second):
        assert all(equal) and fits and copied[0] > 0
        assert after == first[2] != before == first[1]


def test_a_rank_without_host_memory_has_none_copy():
    for equal, _, _, copied, link, said, fits in together(2, with_copies, "60%", ["1GiB", None]):
        assert all(equal) and fits and copied == (0, 0)
        assert not link["host_memory_bytes"]
        assert said == ["a rank has no host_budget: nothing goes to the host"]


# -------------------------------------------------------------------- words after each step


def planned_steps(rank):
    pair = Pair(rank)
    equal = [pair.step() for _ in range(3)]
    group = pair.training._chain.ranks.group
    calls = []
    for name in ("gather", "broadcast", "greatest", "say"):
        inner = getattr(group, name)
        setattr(group, name, lambda *a, inner=inner, name=name: calls.append(name) or inner(*a))
    equal += [pair.step() for _ in range(4)]
    return equal, calls


def test_a_planned_step_exchanges_one_word():
    for equal, calls in together(2, planned_steps):
        assert all(equal) and calls == ["say"] * 4


def new_shape_on_one(rank, seed, make=Pair):
    pair = make(rank)
    equal = [pair.step() for _ in range(3)]
    digests = [pair.training.plan.digest]
    rows = (40, 48, 56, 72, 96)[seed % 5] if rank == seed % 2 else 64
    for _ in range(5):
        equal.append(pair.step(rows))
    plans = [book.plan for book in pair.training._chain.books.values()]
    equal += [pair.step() for _ in range(2)]
    digests.append(pair.training.plan.digest)
    return equal, digests, [plan is not None for plan in plans], pair.fits


def check_new_shape(first, second):
    for equal, _, planned, fits in (first, second):
        assert all(equal) and all(planned) and fits
    assert first[1] == second[1]
    assert sorted([len(first[2]), len(second[2])]) == [1, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_shape_on_one_rank_is_measured_by_all(seed):
    check_new_shape(*together(2, new_shape_on_one, seed))


def larger_shape(rank, replanned):
    pair = Pair(rank)
    equal = [pair.step() for _ in range(3)]
    measured, measure = [], _measuring.measure_block
    _measuring.measure_block = lambda call, given, name, *rest: measured.append(name) or measure(call, given, name, *rest)
    if replanned and rank == 0:
        pair.training.replan()
    rows = 64 if replanned else 96
    equal += [pair.step(rows) for _ in range(5)]
    return all(equal), pair.fits, measured, pair.training.plan.digest


@pytest.mark.parametrize("replanned", [False, True], ids=["larger", "anew"])
def test_of_blocks_that_took_the_same_one_is_measured_for_a_larger_shape(replanned):
    first, second = together(2, larger_shape, replanned)
    assert first == second
    equal, fits, measured, _ = first
    every = [f"block {number}" for number in range(1, len(blocks()) + 1)]
    assert equal and fits
    assert measured == every if replanned else 0 < len(measured) < len(every)


def replans(rank):
    pair = Pair(rank)
    equal = [pair.step() for _ in range(3)]
    profile = pair.training.profile
    if rank == 1:
        pair.training.replan()
    equal += [pair.step() for _ in range(3)]
    return equal, pair.training.profile is not profile, pair.training.plan.digest


def test_one_rank_has_all_plan_anew():
    first, second = together(2, replans)
    assert all(first[0]) and first == second and first[1]


def mode_of_one(rank):
    pair = Pair(rank)
    equal = [pair.step() for _ in range(3)]
    if rank == 0:
        pair.model.eval()
        pair.plain.eval()
    return equal + [pair.step() for _ in range(4)]


def test_another_mode_on_one_rank():
    assert all(map(all, together(2, mode_of_one)))


def leaves_early(rank):
    pair = Pair(rank)
    steps = 4 if rank == 1 else 6
    model, optimizer = pair.parallel[1], pair.optimizers[1]
    with model.join():
        for step in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(batch(rank, step, 64 if step < 5 else 32))).backward()
            optimizer.step()
        pair.training.leave()
    return pair.training.plan.digest if rank == 1 else pair.training._chain.ranks.parted


def test_a_rank_may_leave():
    first, _ = together(2, leaves_early)
    assert first is True


def unwraps(rank, who):
    pair = Pair(rank)
    equal = [pair.step() for _ in range(4)]
    ranks = pair.training._chain.ranks
    if rank in who:
        stowage.unwrap(pair.model)
    equal += [pair.step() for _ in range(4)]
    return equal, ranks.parted


@pytest.mark.parametrize("who", [(1,), (0,), (0, 1)])
def test_a_rank_may_unwrap_its_model(who):
    assert together(2, unwraps, who) == [([True] * 8, True)] * 2


# -------------------------------------------------------------------- memory that runs out, and ranks that die


def out_of_memory():
    kind = getattr(torch, "OutOfMemoryError", None)
    return RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory") if kind is None else kind("out of memory")


def lacks_memory(rank, where, seed, budget):
    torch.manual_seed(seed)
    pair = Pair(rank, budget)
    equal = [pair.step() for _ in range(3)]
    before = pair.training.plan
    if rank == seed % 2:
        # In the recompute, and where that begins anew from the nearest activation.
        at = {"forward": (1,), "recompute": (2,), "both": (2, 3)}[where]
        pair.block_of(where, seed).raises(out_of_memory(), *at)
    equal += [pair.step() for _ in range(4)]
    after = pair.training.plan
    return equal, before.digest, before.peak_bytes, after.digest, after.budget_bytes, pair.fits


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("where, budget", [("forward", "100%"), ("forward", "70%"), ("recompute", "70%"), ("both", "70%")])
def test_memory_that_runs_out_on_one_rank(where, budget, seed):
    first, second = together(2, lacks_memory, where, seed, budget)
    for equal, _, peak_bytes, _, budget_bytes, fits in (first, second):
        assert all(equal) and fits and budget_bytes < peak_bytes
    assert first[1] == second[1] and first[3] == second[3] != first[1]


def lacks_memory_then_replans(rank):
    pair = Pair(rank, "100%")
    equal = [pair.step() for _ in range(3)]
    if rank == 1:
        pair.model[2].raises(out_of_memory(), 1)
    equal += [pair.step() for _ in range(2)]
    before = pair.training.plan
    if rank == 0:  # which has not lacked any
        pair.training.replan()
    equal += [pair.step() for _ in range(3)]
    after = pair.training.plan
    return equal, after is not before, before.budget_bytes, after.budget_bytes


def test_what_is_measured_anew_takes_no_more_than_before():
    for equal, is_new, before_bytes, after_bytes in together(2, lacks_memory_then_replans):
        assert all(equal) and is_new and after_bytes <= before_bytes


GIVES_UP_S = 8  # a rank that waits for one that is gone
SLACK_S = 6  # of a busy machine
FAULT_STEPS = 6


def step_of(seed):
    """In which the fault of that seed comes: one by a plan that is not the first."""
    return 2 + seed % (FAULT_STEPS - 2)


def comes(rank, step, seed):
    """Whether the fault of that seed comes on this rank now."""
    return rank == seed % dist.get_world_size() and step == step_of(seed)


def killed(rank, seed, how, make=Pair):
    """Between two steps, in a block's forward, or where it runs again."""
    pair = make(rank)
    for step in range(FAULT_STEPS):
        if comes(rank, step, seed):
            where = ("between", "forward", "recompute")[seed % 3]
            if where == "between":
                os.kill(os.getpid(), how)
            pair.block_of(where, seed).does(lambda: os.kill(os.getpid(), how), 1 if where == "forward" else 2)
        with within(GIVES_UP_S + SLACK_S):
            pair.step()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_rank_that_is_killed_fails_all(how, seed):
    for rank, outcome in enumerate(outcomes(3, killed, seed, how, group_s=GIVES_UP_S)):
        if rank == seed % 3:
            assert isinstance(outcome, Killed)
        else:
            assert isinstance(outcome, Failed) and "it hangs" not in str(outcome)


def killed_between(rank):
    warnings.simplefilter("ignore")
    model = stowage.wrap(blocks(), "60%", process_group=dist.group.WORLD)
    for step in range(6):
        if rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        with within(GIVES_UP_S + SLACK_S):
            loss_of(model(batch(rank, step))).backward()


def test_a_rank_that_is_gone_is_said_so():
    first, second = outcomes(2, killed_between, group_s=GIVES_UP_S)
    assert isinstance(second, Killed)
    assert "Unavailable: rank 0 of 2: another rank is gone, or late beyond the group's timeout" in str(first)


class NoRoomForGradients(torch.autograd.Function):
    """Its backward takes more than there is, if it is told so."""

    @staticmethod
    def forward(ctx, x, told):
        ctx.told = told
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.told:
            raise out_of_memory()
        return gradient, None


class Backward(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp, self.told = Mlp(WIDTH), False

    def forward(self, x):
        return self.mlp(NoRoomForGradients.apply(x, self.told))


def lacks_memory_in_backward(rank, seed):
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    net = stowage.wrap(nn.Sequential(*[Backward() for _ in range(5)]), "60%")
    model = DistributedDataParallel(net)
    for step in range(FAULT_STEPS):
        net[seed % len(net)].told = comes(rank, step, seed)
        with within(GIVES_UP_S + SLACK_S):
            loss_of(model(batch(rank, step))).backward()


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_that_runs_out_in_a_backward_ends_all(seed):
    found = outcomes(2, lacks_memory_in_backward, seed, group_s=GIVES_UP_S)
    lacking, other = found[seed % 2], found[1 - seed % 2]
    assert isinstance(lacking, Failed) and "memory" in str(lacking)
    assert isinstance(other, Failed) and "it hangs" not in str(other)


def slow(rank, seed, make=Pair):
    """Before a step, or within a block's forward."""
    pair = make(rank)
    equal = []
    for step in range(FAULT_STEPS):
        if rank == seed % dist.get_world_size():
            wait = functools.partial(time.sleep, 0.05 * (1 + (seed + step) % 3))  # that is the fault
            if step % 2:
                pair.block_of("forward", seed).does(wait, 1)
            else:
                wait()
        equal.append(pair.step())
    return equal, pair.training.plan.digest, pair.fits


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_rank_is_waited_for(seed):
    found = together(3, slow, seed)
    assert all(all(equal) and fits for equal, _, fits in found)
    assert len({digest for _, digest, _ in found}) == 1


def too_slow(rank, folder, make=Pair):
    """The second one stands still until the first one has given up."""
    pair = make(rank)
    over = pathlib.Path(folder, "over")
    for step in range(5):
        while rank == 1 and step == 3 and not over.exists():
            time.sleep(0.02)
        try:
            with within(GIVES_UP_S + SLACK_S):
                pair.step()
        except BaseException:
            over.touch()
            raise


def test_a_rank_that_stands_still_is_given_up(tmp_path):
    first, second = outcomes(2, too_slow, str(tmp_path), group_s=GIVES_UP_S)
    for outcome in (first, second):
        assert isinstance(outcome, Failed) and "it hangs" not in str(outcome)


def other_version(rank, who, make=Pair):
    from stowage import _ranks

    if rank == who:
        _ranks.__version__ = "0.0.1"
    pair = make(rank)
    pair.step()


def check_other_version(found, who):
    for rank, outcome in enumerate(found):
        assert isinstance(outcome, Failed)
        other = who if rank != who else min({0, 1} - {who})
        assert f"FailedPrecondition: rank {other} has (stowage, PyTorch" in str(outcome)
        assert "'0.0.1'" in str(outcome) and f"'{stowage.__version__}'" in str(outcome)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_of_different_versions_are_refused(ranks):
    check_other_version(outcomes(ranks, other_version, ranks - 1), ranks - 1)


def one_without_server(rank, away):
    server = "unix:/nobody/is/here" if rank == away else None
    pair = Pair(rank, server=server)
    equal = [pair.step() for _ in range(4)]
    return equal, pair.training.plan.digest, pair.training.source, bool(pair.training.notes)


@pytest.mark.parametrize("away", [0, 1])
def test_the_server_is_away_for_one_rank(away):
    found = together(2, one_without_server, away)
    assert all(all(equal) for equal, *_ in found)
    assert len({(digest, source) for _, digest, source, _ in found}) == 1 and found[0][2] == "local"


def one_without_that_server(rank, away, address, make=Pair):
    from stowage import rpc

    server = "unix:/nobody/is/here" if rank == away else rpc.Server(address, patience_s=60.0)
    pair = make(rank, server=server)
    equal = [pair.step() for _ in range(4)]
    return equal, pair.training.plan.digest, pair.training.source, pair.fits


def check_server_away(ranks, away, make=Pair):
    """Rank 0 asks for all."""
    rpc_test = pytest.importorskip("rpc_test")
    with rpc_test.Stowaged() as stowaged:
        found = together(ranks, one_without_that_server, away, stowaged.address, make)
    assert all(all(equal) and fits for equal, *_, fits in found)
    assert len({digest for _, digest, *_ in found}) == 1
    assert {source for _, _, source, _ in found} == {"local" if away == 0 else "solved"}


@pytest.mark.parametrize("away", [0, 1, 2])
def test_a_server_that_is_there_is_away_for_one_rank(away):
    check_server_away(3, away)


def of_uneven_ranks(rank):
    """One rank is slow all over, the other one in a single block, where the first one is fast."""
    inner = _measuring.measure_block

    def measure(call, activation, name, *others):
        costs, changed = inner(call, activation, name, *others)
        is_third = name == "block 3"
        time_ns = (1000 if is_third else 100_000) if rank == 0 else (150_000 if is_third else 1000)
        costs.stage["forward_time_ns"] = time_ns
        costs.stage["backward_time_ns"] = 1000
        costs.stage.pop("recompute_saving_time_ns", None)
        costs.stage.pop("recompute_saving_overhead_bytes", None)
        return costs, changed

    _measuring.measure_block = measure
    head = _chain.Book.head_measured
    _chain.Book.head_measured = lambda book, peak, left, _: head(book, peak, left, 0)
    pair = Pair(rank, "85%")
    equal = [pair.step() for _ in range(3)]
    plan = pair.training.plan
    book = pair.training._chain.last_book
    by_all = pair.training.profile.plan(plan.budget_bytes, recompute_only=True)
    times = [book.own_profile.plan_from_dict(p.to_dict(), recompute_only=True).makespan_ns for p in (plan, by_all)]
    return all(equal) and pair.fits, plan.digest, times


def test_the_slowest_rank_is_as_fast_as_it_can_be():
    first, second = together(2, of_uneven_ranks)
    assert first[0] and second[0] and first[1] == second[1]
    taken, by_all = (max(first[2][i], second[2][i]) for i in (0, 1))
    assert taken < by_all - 90_000  # another block runs again


# -------------------------------------------------------------------- a job


def test_the_job_of_the_page_under_torchrun(tmp_path):
    page = pathlib.Path(__file__).parents[3] / "client/python/ranks.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    job = tmp_path / "job.py"
    job.write_text(block)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    how = ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"]
    how += ["--redirects", "1", "--tee", "1", "--log_dir", str(tmp_path)]  # 1.13 on Python 3.11 cannot go without
    for _ in range(3):  # the port that torchrun finds free may be somebody's when a worker takes it
        done = subprocess.run([*torchrun, *how, str(job)], text=True, capture_output=True, timeout=250)
        if "ddress already in use" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, done.stderr
    said = sorted(re.findall(r"rank (\d) of 2: plan (\w{12})$", done.stdout + done.stderr, re.M))
    assert [rank for rank, _ in said] == ["0", "1"] and said[0][1] == said[1][1]
