"""Blocks whose weights ranks share as DTensors (tensor and sequence parallel): those that communicate in a forward run once."""

import contextlib
import statistics
import time
import warnings

import pytest
import stowage
import torch
import torch.distributed as dist
import torch.nn.functional as F
from comparing import local
from ddp_test import loss_of, same
from networks import Mlp
from processes import Failed, misses_another, outcomes, together
from rank_networks_test import budgets_of
from ranks_test import GIVES_UP_S, out_of_memory
from stowage import _joint_version, _ranks
from torch import nn

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not _joint_version.is_here(), reason="DTensors are tested on PyTorch from 2.11 on")
WIDTH, LAYERS = 16, 6


def model_of(rank):
    """Every other block is shared."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(5)
    model = nn.Sequential(*[Mlp(WIDTH) for _ in range(LAYERS)])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model[::2]:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


class Collectives(_ranks.Listening):
    """Those of DTensors, in their order."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "_c10d_functional" in str(function) and "wait" not in str(function):
            self.names.append(str(function))
        return super().__torch_dispatch__(function, types, args, kwargs)


def steps_of(model, steps, batch=lambda: torch.randn(32, WIDTH), last=None):
    """What each leaves, and the peaks of those by a plan; ``last`` hears the last one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    training = model.__dict__.get("stowage")
    results, peaks = [], []
    for step in range(steps):
        torch.manual_seed(step)  # the same batch on all ranks
        optimizer.zero_grad()
        with last if last is not None and step == steps - 1 else contextlib.nullcontext():
            loss = loss_of(model(batch()))
            loss.backward()
        results.append([loss.detach(), *(local(p.grad).clone() for p in model.parameters()), torch.get_rng_state()])
        optimizer.step()
        if training is not None and training.plan is not None:
            peaks.append(training.measured_peak_bytes)
    return results, peaks


def shared(rank, given, budget):
    warnings.simplefilter("ignore")
    how = {"process_group": dist.group.WORLD} if given else {}
    expected, _ = steps_of(model_of(rank), 4)
    model = stowage.wrap(model_of(rank), budget, **how)
    got, _ = steps_of(model, 4)
    training = model.stowage
    return same(got, expected), training.ranks, training.plan.digest, training.kept, training.recomputed


@pytest.mark.parametrize("given", [True, False])
def test_blocks_that_ranks_share_run_once(given):
    first, second = together(2, shared, given, "least")
    assert first == second and first[0] and first[1] == 2
    assert first[3] == {block: "it communicates with other ranks" for block in (1, 3, 5)}
    assert sum(first[4][0::2]) == 0 and sum(first[4][1::2]) > 0


def lacks_memory_while_measured(rank):
    model, failed_at = stowage.wrap(model_of(rank), "least"), []

    def lack(_):
        failed_at.append(time.monotonic())
        raise out_of_memory()

    if rank == 0:
        model[1].up.forward = lack
    try:
        loss_of(model(torch.randn(32, WIDTH))).backward()
    finally:
        assert not failed_at or time.monotonic() - failed_at[0] < GIVES_UP_S - 1, "it was late"


def test_memory_that_runs_out_while_one_rank_measures_is_its_error_at_once():
    """The other one is in the next block's sum, and hears nothing."""
    lacking, other = outcomes(2, lacks_memory_while_measured, group_s=GIVES_UP_S, deadline_s=60)
    assert "out of memory" in str(lacking).partition("\n")[0], lacking
    assert isinstance(other, Failed) and misses_another(other), other


class Part(nn.Module):
    """What a transformer has beside its attention, for a part of the sequence. Within it the whole sequence is gathered."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Norm(nn.Module):
    """Has shared weights, and communicates nothing in its forward."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return F.gelu(self.norm(x))


class Handed(nn.Module):
    """Hands on a DTensor, as SequenceParallel does unless it is told otherwise."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x)


class Taken(nn.Module):
    def forward(self, x):
        return torch.tanh(x).to_local()


def handing_on():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module

    torch.manual_seed(5)
    model = nn.Sequential(Mlp(WIDTH), Mlp(WIDTH), Handed(), Taken(), Mlp(WIDTH), Mlp(WIDTH))
    parallelize_module(model[2], init_device_mesh("cpu", (dist.get_world_size(),)), {"norm": SequenceParallel()})
    return model


def handed_on(rank):
    warnings.simplefilter("ignore")

    def batch():
        return torch.randn(4, 32, WIDTH)[:, 16 * rank : 16 * rank + 16].contiguous()

    expected, _ = steps_of(handing_on(), 4, batch)
    model = stowage.wrap(handing_on(), "least")
    got, _ = steps_of(model, 4, batch)
    return same(got, expected), model.stowage.kept, model.stowage.recomputed, model.stowage.plan.digest


def test_blocks_that_hand_dtensors_on_run_once():
    first, second = together(2, handed_on)
    assert first == second and first[0]
    assert first[1] == {block: "it is given DTensors, or hands them on" for block in (3, 4)}
    assert first[2][2:4] == [0, 0] and sum(first[2]) > 0


def model_of_sequences():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    torch.manual_seed(5)
    model = nn.Sequential(*[make() for _ in range(2) for make in (Part, lambda: Mlp(WIDTH), Norm)])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model:
        if isinstance(block, Part):
            up, down = ColwiseParallel(input_layouts=Shard(1)), RowwiseParallel(output_layouts=Shard(1))
            parallelize_module(block, mesh, {"norm": SequenceParallel(), "up": up, "down": down})
        elif isinstance(block, Norm):
            parallelize_module(block, mesh, {"norm": SequenceParallel(use_local_output=True)})
    return model


def in_parts(rank):
    warnings.simplefilter("ignore")

    def batch():  # this rank's part of each sequence
        return torch.randn(4, 32, WIDTH).chunk(dist.get_world_size(), 1)[rank].contiguous()

    plain = Collectives()
    expected, _ = steps_of(model_of_sequences(), 7, batch, plain)
    found, models = [], []
    for budget in budgets_of(models):
        model = stowage.wrap(model_of_sequences(), budget)
        models.append(model)
        planned = Collectives()
        got, peaks = steps_of(model, 7, batch, planned)
        training, plan = model.stowage, model.stowage.plan
        # The median of six: what threads of gloo let go of a moment later may be in one of them.
        fits = len(peaks) == 6 and statistics.median_low(peaks) <= plan.peak_bytes <= plan.budget_bytes
        assert sum(training.recomputed) == plan.recomputed_forwards
        told = training.ranks, plan.digest, training.kept, training.recomputed
        found.append((same(got, expected), fits, planned.names == plain.names, planned.names, *told))
    return found


def test_parts_of_sequences():
    """Nothing that communicates is recomputed: the collectives of a planned step are those of a plain one, on all ranks."""
    first, second = together(2, in_parts)
    assert first == second
    for equal, fits, as_plain, collectives, ranks, _, kept, recomputed in first:
        assert equal and fits and as_plain and collectives and ranks == 2
        assert kept == {block: _ranks.COMMUNICATES for block in (1, 4)}
        assert sum(recomputed[0::3]) == 0
    whole, middle, least = (recomputed for *_, recomputed in first)
    assert sum(whole) == 0 and sum(middle) <= sum(least)
    assert sum(least[2::3]) > 0  # norms, too
