"""Blocks that change what no recompute puts back, or that are given other things than tensors of blocks."""

import copy
import random
import sys
import types
import warnings

import pytest
import stowage
import torch
from comparing import assert_equal, autocast_step, outcome, profiled, step_on
from networks import Mlp
from schedules import follow, random_schedule, with_moves
from stowage import _copying
from stowage._device import Device
from torch import nn

torch.set_num_threads(1)
WIDTH = 16


class Rebinds(nn.Module):
    """A running mean that is another tensor after each forward."""

    def __init__(self):
        super().__init__()
        self.mlp = Mlp(WIDTH)
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.mlp(x - self.mean)


class FromPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Mlp(WIDTH)

    def forward(self, x):
        return self.mlp(x * random.uniform(0.5, 1.5))


class FromNumpy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp, self.numpy = Mlp(WIDTH), pytest.importorskip("numpy")

    def forward(self, x):  # of a pair of normal numbers the second one is kept
        return self.mlp(x * float(sys.modules["numpy"].random.randn()))

    def __deepcopy__(self, memo):
        twin = FromNumpy()
        twin.load_state_dict(self.state_dict())
        return twin


class FromOthers(nn.Module):
    """Random numbers of other libraries, of its own."""

    def __init__(self):
        super().__init__()
        numpy = pytest.importorskip("numpy")
        self.mlp, self.python, self.numpy = Mlp(WIDTH), random.Random(3), numpy.random.default_rng(3)

    def forward(self, x):
        return self.mlp(x * (1 + self.python.random()) * (1 + float(self.numpy.random())))


class FromItsOwn(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp, self.generator = Mlp(WIDTH), torch.Generator().manual_seed(3)

    def forward(self, x):
        return self.mlp(x * (0.5 + torch.rand(1, generator=self.generator)))

    def __deepcopy__(self, memo):
        twin = FromItsOwn()
        twin.load_state_dict(self.state_dict())
        twin.generator.set_state(self.generator.get_state())
        return twin


def numbers_elsewhere(model):
    """Where random numbers that PyTorch does not know of are."""
    states = [random.getstate()]
    if "numpy" in sys.modules:
        states.append(str(sys.modules["numpy"].random.get_state()))
    states += [(m.python.getstate(), str(m.numpy.bit_generator.state)) for m in model.modules() if isinstance(m, FromOthers)]
    return states + [m.generator.get_state().tolist() for m in model.modules() if isinstance(m, FromItsOwn)]


def stepped(model, x, count):
    """What steps leave, from the same random numbers."""
    random.seed(5)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = [outcome(model, step_on(x), number) for number in range(count)]
    return left, numbers_elsewhere(model)


@pytest.mark.parametrize("kind", [Rebinds, FromPython, FromNumpy, FromOthers, FromItsOwn])
@pytest.mark.parametrize("budget", ["80%", "least"])
def test_what_no_recompute_puts_back_is_kept(kind, budget):
    torch.manual_seed(0)
    plain = nn.Sequential(Mlp(WIDTH), kind(), kind(), Mlp(WIDTH), Mlp(WIDTH), Mlp(WIDTH), Mlp(WIDTH))
    model = stowage.wrap(copy.deepcopy(plain), budget)
    x = torch.randn(64, WIDTH)
    expected, theirs = stepped(plain, x, 4)
    got, mine = stepped(model, x, 4)
    for a, b in zip(got, expected):
        assert_equal(a, b)
    assert mine == theirs
    assert list(model.stowage.kept) == [2, 3]
    assert sum(model.stowage.recomputed) > 0
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


class Late(nn.Module):
    """Changes a buffer, or has another one, once it is told to."""

    def __init__(self):
        super().__init__()
        self.mlp, self.how, self.inner = Mlp(WIDTH), None, nn.Module()
        self.register_buffer("scale", torch.ones(WIDTH))
        self.inner.register_buffer("same", torch.ones(WIDTH))

    def forward(self, x):
        self.inner.same.fill_(1)  # which is no change
        y = self.mlp(x + self.scale)
        if self.how == "changes":
            self.scale.mul_(0.9)
        elif self.how == "rebinds":
            self.scale = self.scale * 0.9
        return y


class Grows(nn.Module):
    """A table that is made by the first forward, and anew for longer inputs."""

    def __init__(self, first):
        super().__init__()
        self.mlp, self.rows = Mlp(WIDTH), 0
        self.register_buffer("table", None)
        if first:
            self.grow(2)

    def grow(self, rows):
        self.rows, self.table = rows, torch.arange(rows * WIDTH).float().view(rows, WIDTH).sin()

    def forward(self, x):
        if len(x) > self.rows:
            self.grow(len(x))
        return self.mlp(x * self.table[: len(x)])


@pytest.mark.parametrize("first", [False, True])
def test_buffers_that_are_made_once(first):
    torch.manual_seed(0)
    plain = nn.Sequential(*[Grows(first) for _ in range(5)])
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for number, rows in enumerate([8, 8, 8, 16, 16, 4, 16]):
        step = step_on(torch.randn(rows, WIDTH))
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert not model.stowage.kept and sum(model.stowage.recomputed) > 0


class Zeroed(nn.Module):
    """A norm whose mean stays what it is as long as a layer's weights are zeros."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return x + self.norm(self.linear(torch.tanh(x)))


def test_buffers_that_are_written_and_stay_the_same_at_first():
    torch.manual_seed(0)
    plain = nn.Sequential(*[Zeroed() for _ in range(5)])
    model = stowage.wrap(copy.deepcopy(plain), "least")
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.5) for each in (plain, model)]
    step = step_on(torch.randn(32, WIDTH))
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
        for optimizer in optimizers:
            optimizer.step()
    assert sum(model.stowage.recomputed) > 0


@pytest.mark.parametrize("how", ["changes", "rebinds"])
def test_a_buffer_that_changes_later_is_said(how):
    torch.manual_seed(0)
    plain = nn.Sequential(*[Late() for _ in range(4)])
    model = profiled(plain, step_on(torch.randn(8, WIDTH)), "least")
    step = step_on(torch.randn(8, WIDTH))
    assert_equal(outcome(model, step), outcome(plain, step))
    late = next(block for block, again in zip(model, model.stowage.recomputed) if again)
    late.how = how
    if how == "rebinds":
        with pytest.warns(UserWarning, match=r"block \d \(Late\) has another buffer scale than when it was measured"):
            outcome(model, step)
        return
    with pytest.raises(stowage.ExecutionError, match=r"block \d \(Late\) writes to its buffer scale, and did not"):
        outcome(model, step)
    late.inner.same = torch.ones(WIDTH)
    plain.load_state_dict(model.state_dict())
    plain[list(model).index(late)].how = how
    plain[list(model).index(late)].inner.same = torch.ones(WIDTH)
    for number in range(3):  # from now on it is put back
        assert_equal(outcome(model, step, number), outcome(plain, step, number))


class State:
    def __init__(self, h, mask=None):
        self.h, self.mask, self.seen = h, mask, 0


class OfState(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.mlp, self.how = Mlp(WIDTH), how

    def forward(self, state):
        if self.how == "writes":
            state.mask.mul_(0.9)
        y = self.mlp(state.h)
        state.h = y
        return state


class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Mlp(WIDTH)

    def forward(self, x, state):
        return self.mlp(x * state.mask)


class PerLayer(nn.Module):
    """Gives its blocks an object that it changes between them."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Reads() for _ in range(4)])
        self.masks = [torch.rand(WIDTH) for _ in range(4)]

    def forward(self, x):
        state = State(None)
        for block, mask in zip(self.blocks, self.masks):
            state.mask = mask
            x = block(x, state)
        return x


def test_objects_that_change_between_blocks_are_said():
    torch.manual_seed(0)
    model = stowage.wrap(PerLayer(), "least", blocks="blocks")
    with pytest.raises(RuntimeError, match="mask of the State that it reads is another one than in its forward"):
        outcome(model, step_on(torch.randn(8, WIDTH)))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Mlp(WIDTH)

    def forward(self, x, state):
        state.seen += 1
        return self.mlp(x) * state.factors[state.seen - 1]


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Counts() for _ in range(4)])

    def forward(self, x):
        state = State(None)
        state.factors = [0.5, 0.25, 2.0, 1.0]
        with torch.inference_mode():
            state.text = torch.ones(WIDTH)
        for block in self.blocks:
            x = block(x, state)
        return x


def test_objects_that_count():
    torch.manual_seed(0)
    plain = Counted()
    model = stowage.wrap(copy.deepcopy(plain), "100%", blocks="blocks")
    step = step_on(torch.randn(8, WIDTH))
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert list(model.stowage.kept) == [1, 2, 3, 4]


class Chained(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        if isinstance(self.blocks[0], Reads):
            state = State(None, torch.full((WIDTH,), 0.5))
            for block in self.blocks:
                x = block(x, state)
            return x
        state = State(x, torch.ones(WIDTH))
        for block in self.blocks:
            state = block(state)
        return state.h


def test_objects_that_blocks_read():
    torch.manual_seed(0)
    plain = Chained([Reads() for _ in range(4)])
    model = profiled(plain, step_on(torch.randn(8, WIDTH)), "least")
    step = step_on(torch.randn(8, WIDTH))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert not model.stowage.kept and sum(model.stowage.recomputed) > 0


def test_objects_that_blocks_change():
    torch.manual_seed(0)
    plain = Chained([OfState("changes") for _ in range(3)])
    model = stowage.wrap(copy.deepcopy(plain), "100%")
    step = step_on(torch.randn(8, WIDTH))
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert list(model.stowage.kept) == [1, 2, 3] and "changes the State" in model.stowage.kept[1]


def test_objects_that_blocks_write_over_are_refused():
    model = stowage.wrap(Chained([OfState("writes") for _ in range(3)]), "100%")
    with pytest.raises(stowage.InvalidArgument, match="writes over mask of the State"):
        outcome(model, step_on(torch.randn(8, WIDTH)))


class Graph(nn.Module):
    """Layers that are given a matrix of neighbours."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(5)])
        self.blocks = nn.ModuleList([Neighbours(layer) for layer in self.layers])

    def forward(self, x, adjacency):
        for block in self.blocks:
            x = block(x, adjacency)
        return x


class Neighbours(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, adjacency):
        return torch.tanh(torch.sparse.mm(adjacency, self.layer(x)))


@pytest.mark.parametrize("how", [{}, {"host_budget": "1MiB"}], ids=["", "copies"])
def test_sparse_arguments(how):
    torch.manual_seed(0)
    plain, nodes = Graph(), 40
    adjacency = (torch.rand(nodes, nodes) < 0.1).float().to_sparse()

    def step(model):
        source = torch.ones(nodes, WIDTH).requires_grad_()
        loss = model(source, adjacency).square().mean()
        loss.backward()
        return [loss, source.grad]

    model = stowage.wrap(copy.deepcopy(plain), "least", blocks="blocks", **how)
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    prediction = model.stowage.plan.to_dict()["prediction"]
    assert model.stowage.plan.recomputed_forwards > 0 or prediction["offloaded_bytes"] > 0
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


class Holds(nn.Module):
    """Tables that are no buffers, in a tuple and in a dictionary."""

    def __init__(self):
        super().__init__()
        self.mlp = Mlp(WIDTH)
        self.tables = (torch.rand(64, WIDTH), torch.rand(64, WIDTH))
        self.masks = {64: torch.rand(64, WIDTH)}

    def forward(self, x):
        return self.mlp(x * self.tables[0] + torch.tanh(x) * self.tables[1] * self.masks[len(x)])


def test_what_modules_hold_in_containers_stays():
    torch.manual_seed(0)
    plain = nn.Sequential(*[Holds() for _ in range(5)])
    step = step_on(torch.randn(64, WIDTH))
    model = profiled(plain, step, host_budget="1GiB")
    moved_bytes = 0
    for seed in range(6):
        plan = follow(model, with_moves(random_schedule(5, seed), 5, seed))
        assert_equal(outcome(model, step), outcome(plain, step))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes
        assert model.stowage.offloaded_bytes <= plan.to_dict()["prediction"]["offloaded_bytes"]
        moved_bytes += model.stowage.offloaded_bytes
    assert moved_bytes > 0


@pytest.mark.parametrize("seed", range(4))
def test_casts_of_weights_that_go_to_the_host(seed):
    torch.manual_seed(seed)
    plain = nn.Sequential(*[Mlp(64, dropout=0) for _ in range(5)])
    step = autocast_step(plain, torch.randn(8, 64))
    model = profiled(plain, step, host_budget="1GiB")
    for number in range(4):
        plan = follow(model, with_moves(random_schedule(5, 10 * seed + number), 5, number))
        assert_equal(outcome(model, step), outcome(plain, step))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes


def test_host_memory_of_forwards_that_overlapped_goes():
    pool = _copying.HostPool(100, _copying.Copies(Device(torch.device("cpu"))))
    first, second = pool.take(80), pool.take(80)
    pool.give(first)
    pool.give(second)
    assert pool.free_bytes <= 100
    # Others go as far as they must, the largest first.
    pool = _copying.HostPool(100, _copying.Copies(Device(torch.device("cpu"))))
    for memory in [pool.take(size) for size in (50, 30, 20)]:
        pool.give(memory)
    assert pool.take(40).numel() == 40 and pool.free_bytes == 50
    assert pool.take(30).numel() == 30 and pool.free_bytes == 20


class Flattened(nn.Sequential):
    """As FullyShardedDataParallel, for which ranks are needed."""


def test_models_that_cannot_be_planned_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed.fsdp", types.SimpleNamespace(FullyShardedDataParallel=Flattened))
    with pytest.raises(stowage.InvalidArgument, match="use fully_shard"):
        stowage.wrap(nn.Sequential(Flattened(Mlp(8)), Flattened(Mlp(8))), "60%")
    with pytest.raises(stowage.InvalidArgument, match="use DistributedDataParallel"):
        stowage.wrap(nn.DataParallel(nn.Sequential(Mlp(8), Mlp(8))), "60%")
