"""Parameters that ranks share (fully_shard): steps by plans are those without, bit for bit, and gather what they recompute."""

import warnings

import pytest
import stowage
import torch
from ddp_test import loss_of, same, words_batch
from networks import Decoder, Mlp
from processes import together
from schedules import random_schedule, recomputes
from stowage import _joint_version, _sharding, _steps
from torch import nn

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not _joint_version.is_here(), reason="fully_shard is tested on PyTorch from 2.11 on")
WIDTH, LAYERS = 16, 5
if _joint_version.is_here():
    import torch.distributed.fsdp  # once, not in each rank


class Net(nn.Module):
    def __init__(self, width=WIDTH, layer=Mlp):
        super().__init__()
        self.first, self.head = nn.Linear(width, width), nn.Linear(width, 4)
        self.layers = nn.ModuleList([layer(width) for _ in range(LAYERS)])

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


MODELS = {
    "decoder": (lambda: Decoder(LAYERS, WIDTH), words_batch),
    "vectors": (Net, lambda step, rank: torch.randn(32, WIDTH)),
}
# How it is sharded: is a block whole between forward and backward, are its parts sharded by themselves, are casts made.
WAYS = {"plain": {}, "whole": {"reshard": False}, "nested": {"nested": True}, "bfloat16": {"casts": True}}


def sharded(make, reshard=True, nested=False, casts=False, blocks=lambda model: model.layers):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    torch.manual_seed(5)
    model = make()
    how = {}
    if casts:
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in blocks(model):
        if nested:
            fully_shard(layer.mlp if hasattr(layer, "mlp") else layer.up, reshard_after_forward=reshard, **how)
        fully_shard(layer, reshard_after_forward=reshard, **how)
    return fully_shard(model, **how)


class Gathers:
    """How often parameters are gathered, and how many blocks are whole at a time in recomputes."""

    def __init__(self, model):
        import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups

        self.count = self.most = 0
        self._layers = model.layers
        inner = groups.foreach_all_gather

        def counted(*args, **kwargs):
            self.count += 1
            return inner(*args, **kwargs)

        groups.foreach_all_gather = counted

    def look(self):
        whole = [all(group.is_unsharded for group in _sharding._groups(layer)) for layer in self._layers]
        self.most = max(self.most, sum(whole))


def steps_of(model, batch, rank, steps, first=0, rate=0.05, kept=list):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    results = []
    for step in range(first, first + steps):
        torch.manual_seed(100 * step + rank)
        optimizer.zero_grad()
        if step % 3 == 2:
            loss_of(model(batch(step + 30, rank))).backward()  # gradients add up
        loss = loss_of(model(batch(step, rank)))
        loss.backward()
        of_step = [loss.detach(), *(p.grad.to_local().clone() for p in model.parameters()), torch.get_rng_state()]
        results.append(kept(of_step))
        optimizer.step()
    return results


def by_the_planner(rank, kind, way):
    warnings.simplefilter("ignore")
    make, batch = MODELS[kind]
    expected = steps_of(sharded(make, **WAYS[way]), batch, rank, 6)
    found = []
    for budget in ("100%", "80%", "least"):
        model = stowage.wrap(sharded(make, **WAYS[way]), budget)
        got = steps_of(model, batch, rank, 6)
        training = model.stowage
        found.append((same(got, expected), training.ranks, training.plan.digest, sum(training.recomputed)))
        found[-1] += (training.plan.recomputed_forwards, training.measured_peak_bytes <= training.plan.budget_bytes)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_steps_by_the_planner(kind, way):
    first, second = together(2, by_the_planner, kind, way)
    assert first == second
    assert all(equal and ranks == 2 for equal, ranks, *_ in first)
    assert all(done == planned and fits for *_, done, planned, fits in first)
    assert first[-1][-2] > 0


def by_a_device(rank):
    warnings.simplefilter("ignore")
    make, batch = MODELS["vectors"]
    torch.manual_seed(5)
    expected = steps_of(sharded(make), batch, rank, 5)
    model = sharded(make)
    stowage.wrap(model, device_budget=1 << 20, optimizer=torch.optim.Adam(model.parameters()))
    got = steps_of(model, batch, rank, 5)
    local = sum(4 * p.to_local().numel() for p in model.parameters())
    return same(got, expected), model.stowage.plan.digest, model.stowage.resident[:4], local


def test_a_device_has_parts_of_the_parameters():
    first, second = together(2, by_a_device)
    assert first[0] and second[0] and first[1] == second[1]
    for _, _, (parameters, gradients, buffers, optimizer), local in (first, second):
        assert (parameters, gradients, buffers) == (local, local, 0) and 2 * local <= optimizer < 3 * local


def by_random_schedules(rank, kind, way):
    """Wrapped before it is sharded."""
    warnings.simplefilter("ignore")
    make, batch = MODELS[kind]
    expected = steps_of(sharded(make, **WAYS[way]), batch, rank, 3)
    found = []
    for seed in range(4):
        model = sharded(lambda: stowage.wrap(make(), "100%"), **WAYS[way])
        kept = [p.to_local().detach().clone() for p in model.parameters()]
        steps_of(model, batch, rank, 2)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), kept):
                parameter.to_local().copy_(value)
        schedule = random_schedule(LAYERS, seed)
        for book in model.stowage._chain.books.values():
            book.steps = _steps.Steps(schedule, LAYERS)
        gathers = Gathers(model)
        chain = model.stowage._chain
        count = chain.count_recompute
        chain.count_recompute = lambda block, count=count, gathers=gathers: (gathers.look(), count(block))
        got = steps_of(model, batch, rank, 3)
        counts = model.stowage.recomputed == recomputes(schedule, LAYERS)
        found.append((same(got, expected), counts, gathers.most, gathers.count))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_random_schedules(kind, way):
    first, second = together(2, by_random_schedules, kind, way)
    assert first == second
    for equal, counts, most, _ in first:
        assert equal and counts
        assert way == "whole" or most <= 2  # the block in backward, and the one that is gathered for the next


def times_of_gathers(rank, way):
    warnings.simplefilter("ignore")
    make, batch = MODELS["vectors"]
    inner = _sharding._time_of_gather_ns
    _sharding._time_of_gather_ns = lambda *arguments: inner(*arguments) + 10_000_000_000 * (1 + rank)
    model = stowage.wrap(sharded(make, **WAYS[way]), "100%")
    expected = steps_of(sharded(make, **WAYS[way]), batch, rank, 4)
    got = steps_of(model, batch, rank, 4)
    stages = model.stowage.profile.to_dict()["chain"]["stages"]
    parts = [len(list(_sharding._sharded_within(block))) for block in model.stowage._chain.modules()]
    times = [(stage["forward_time_ns"], stage.get("recompute_saving_time_ns"), of) for stage, of in zip(stages, parts)]
    return same(got, expected), times


@pytest.mark.parametrize("way", ["plain", "nested", "whole"])
def test_a_run_of_a_block_takes_the_time_of_its_gathers(way):
    """Those of the slowest rank; not right before its backward; where blocks stay whole nothing is gathered."""
    for equal, times in together(2, times_of_gathers, way):
        assert equal and len(times) == LAYERS
        for forward_ns, before_backward_ns, parts in times:
            gathers = 0 if way == "whole" else parts
            assert abs(forward_ns - gathers * 20_000_000_000) < 5_000_000_000, times  # one that is whole counts by its size
            assert before_backward_ns is None or before_backward_ns < 10_000_000_000


def gathers_of_two_micro_batches(rank):
    """All blocks are whole when the second one begins, which makes the plan."""
    warnings.simplefilter("ignore")
    make, batch = MODELS["vectors"]
    model = stowage.wrap(sharded(make), "100%")
    model.set_reshard_after_backward(False)
    found = []
    for step in range(6):  # the third asks for the fourth to measure, and the fifth has the plan of that
        if step == 2:
            model.set_reshard_after_backward(True)
            model.stowage.replan()
        loss_of(model(batch(step, rank))).backward()
        found.append(model.stowage._chain.ranks._gathers)
    return found


def test_gathers_are_measured_once_blocks_are_not_whole():
    for found in together(2, gathers_of_two_micro_batches):
        assert found[1] is None and all(time_ns > 0 for time_ns in found[-1]), found
