"""Plans with copies to the host on a device that is not the CPU: copies run beside compute, on streams, as on a GPU."""

import gc
import random

import device
import pytest
import stowage
import torch
from comparing import assert_equal, outcome, step_on
from device_test import copied, profiled, seeded
from networks import MODELS, Mlp, Tanh
from offload_test import all_away
from schedules import between_backwards, follow, random_schedule, recomputes, with_moves
from stowage import _copying
from stowage._device import device_of
from torch import nn
from uses_test import accumulated, double, from_another_thread, interleaved, retained

torch.set_num_threads(1)
HOST = {"host_budget": "1GiB"}


@pytest.fixture(params=[0, 2], ids=["prompt", "late"])
def here(request):
    """The device, whose copies take some milliseconds longer or not."""
    there = device.test_device()
    device.delay_copies(request.param)
    yield there
    device.delay_copies(0)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_random_schedules_with_copies(kind, seed, here):
    torch.manual_seed(seed)
    blocks, x = MODELS[kind](random.Random(seed), 5)
    plain = nn.Sequential(*blocks).to(here)
    step = seeded(step_on(x.to(here)))
    model = profiled(plain, step, **HOST)
    moved = 0
    for number in range(4):
        schedule = with_moves(random_schedule(5, 100 * seed + number), 5, number)
        moved += sum(op == "offload-wait" for op, *_ in schedule)
        plan = follow(model, schedule)
        assert_equal(outcome(model, step), outcome(plain, step))
        assert all(a <= b for a, b in zip(model.stowage.recomputed, recomputes(schedule, 5)))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes
    assert moved > 4


@pytest.mark.parametrize("kind", between_backwards())
def test_what_a_plan_does_between_backwards_is_done_there(kind, here):
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)]).to(here)
    step = seeded(step_on(torch.randn(32, 64).to(here)))
    model = profiled(plain, step, **HOST)
    plan = follow(model, between_backwards()[kind])
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes


@pytest.mark.parametrize("budget", ["60%", "least"])
def test_a_training_by_the_planner(budget, here):
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)]).to(here)
    model = stowage.wrap(copied(plain), budget, **HOST)
    step = seeded(step_on(torch.randn(32, 64).to(here)))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (plain, model)]
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
        for optimizer in optimizers:
            optimizer.step()
    plan = model.stowage.plan
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes <= plan.budget_bytes


def test_what_is_away_takes_no_memory_of_the_device(here):
    plain = nn.Sequential(*[Mlp(64, dropout=0.0) for _ in range(8)]).to(here)
    step = step_on(torch.randn(256, 64).to(here))
    model = profiled(plain, step, **HOST)
    everything = model.stowage.plan.store_all_peak_bytes
    plan = follow(model, all_away(8))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes < 0.6 * everything
    assert 0 < model.stowage.offloaded_bytes == model.stowage._chain.copied["prefetched_bytes"]
    assert not any(model.stowage.recomputed)


def test_a_planned_step_waits_no_more_than_a_plain_one(here):
    plain = nn.Sequential(*[Mlp(64) for _ in range(4)]).to(here)
    step = step_on(torch.randn(32, 64).to(here))
    model = profiled(plain, step, **HOST)
    follow(model, all_away(4))
    step(model)  # the first by the plan is measured, and takes its host memory

    def waits(of):
        before = device.waits()
        step(of)
        return device.waits() - before

    assert waits(model) == waits(plain)
    assert model.stowage._chain._pool.free_bytes > 0


@pytest.mark.parametrize("use", [retained, double, interleaved, accumulated, from_another_thread], ids=lambda use: use.__name__)
def test_uses_of_a_graph_that_is_partly_away(use, here):
    torch.manual_seed(5)
    plain = nn.Sequential(*[Mlp(8) for _ in range(4)]).to(here)

    def call(model):
        device.seed(11)
        return [*use(Given(model, here)), device.random_state()]

    model = profiled(plain, call, **HOST)
    for seed in range(3):
        follow(model, with_moves(random_schedule(4, seed), 4, seed))
        assert_equal(outcome(model, call), outcome(plain, call))


class Given(nn.Module):
    """The model, given what comes from the host."""

    def __init__(self, model, there):
        super().__init__()
        self.model, self.there = model, there

    def forward(self, x):
        return self.model(x.to(self.there))


class OnHost(nn.Module):
    """Its graph has a tensor of the host, as attention's has what its dropout began with."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factors):
            ctx.save_for_backward(x, factors)
            return x * float(factors[0])

        @staticmethod
        def backward(ctx, gradient):
            x, factors = ctx.saved_tensors
            assert factors.device.type == "cpu"
            return gradient * float(factors[0]), None

    def forward(self, x):
        return OnHost.Function.apply(x, torch.tensor([0.5, 2.0]))


def test_what_is_on_the_host_stays_there(here):
    plain = nn.Sequential(Mlp(16), *[nn.Sequential(Mlp(16), OnHost()) for _ in range(3)], Mlp(16)).to(here)
    step = seeded(step_on(torch.randn(8, 16).to(here)))
    model = profiled(plain, step, **HOST)
    follow(model, all_away(5))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.offloaded_bytes > 0


class Doubles(nn.Module):
    """Has the head write over what the last block but one has made, when asked."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks, self.writes = nn.ModuleList(blocks), False

    def forward(self, x):
        for block in self.blocks[:-1]:
            x = block(x)
        y = self.blocks[-1](x)
        if self.writes:
            x.detach().mul_(2)
        return y


def test_what_is_written_over_while_it_is_copied_is_an_error(here):
    plain = Doubles([Tanh() for _ in range(5)]).to(here)
    x = torch.randn(64, 64).to(here)
    model = profiled(plain, step_on(x), blocks="blocks", **HOST)
    follow(model, all_away(5))
    model.writes = True
    with pytest.raises(RuntimeError, match="written over|modified by an inplace"):
        step_on(x)(model)
    model.writes = False
    assert_equal(outcome(model, step_on(x)), outcome(plain, step_on(x)))


def test_graphs_that_are_thrown_away_leave_memory_alone(here):
    """What they have begun to copy arrives in nobody else's memory."""
    plain = nn.Sequential(*[Mlp(64, dropout=0.0) for _ in range(6)]).to(here)
    x = torch.randn(64, 64).to(here)
    model = profiled(plain, step_on(x), **HOST)
    follow(model, all_away(6))
    expected = outcome(plain, step_on(x))
    pool = model.stowage._chain._pool
    for number in range(8):
        out = model(x.clone().requires_grad_())
        if number % 2:  # in the middle of the backward, where memory is on its way back
            out.register_hook(lambda _: None)
            hooked = next(iter(model[2].parameters()))
            handle = hooked.register_hook(lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                out.sum().backward()
            handle.remove()
        del out
        gc.collect()
        others = [torch.full((64, 64), float(i), device=here) for i in range(8)]
        assert_equal(outcome(model, step_on(x)), expected)
        assert all(torch.equal(other.cpu(), torch.full((64, 64), float(i))) for i, other in enumerate(others))
    assert pool.free_bytes == pool._held_bytes > 0


def test_the_link_is_that_of_the_streams(here):
    link = _copying.copies_of(device_of([torch.zeros(1, device=here)])).measured_link(1000)
    assert link["duplex"] == "DUPLEX_FULL" and link["host_memory_bytes"] == 1000
    assert all(link[f"{way}_bytes_per_second"] > 0 and link[f"{way}_latency_ns"] > 0 for way in ("to_host", "to_device"))


class Runtime:
    """As torch.cuda.cudart(): what is locked, by address."""

    def __init__(self, result):
        self.result, self.asked, self.locked = result, 0, {}

    def cudaHostRegister(self, address, size_bytes, flags):
        self.asked += 1
        if self.result == 0:
            self.locked[address] = size_bytes
        return self.result

    def cudaHostUnregister(self, address):
        del self.locked[address]


@pytest.mark.parametrize("result", [0, 2])
def test_memory_is_locked_while_it_is_there_and_refusals_are_not_repeated(result, monkeypatch):
    there, runtime = device.test_device(), Runtime(result)
    monkeypatch.setattr(getattr(torch, device.NAME), "cudart", lambda: runtime, raising=False)
    copies = _copying.copies_of(device_of([torch.zeros(1, device=there)]))
    kept = [copies.host_memory(size_bytes) for size_bytes in (5000, 0, 70)]
    assert sorted(runtime.locked.values()) == ([70, 5000] if result == 0 else []) and runtime.asked == (2 if result == 0 else 1)
    assert [memory.numel() for memory in kept] == [5000, 0, 70]
    del kept
    gc.collect()
    assert not runtime.locked


def test_a_device_without_streams_is_refused(monkeypatch):
    there = device.test_device()
    monkeypatch.delattr(getattr(torch, device.NAME), "Stream")
    with pytest.raises(stowage.InvalidArgument, match=f"PyTorch has no {device.NAME}.Stream"):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)).to(there), "60%", **HOST)
    stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)).to(there), "60%")
