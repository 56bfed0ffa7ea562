"""Plans with copies to the host: the same gradients as plain training, and memory within the plan."""

import copy
import gc
import random

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import MODELS, ConvNorm, Decoder, InnerBackward, Mlp, Spectral, Tanh
from schedules import between_backwards, follow, random_schedule, recomputes, with_moves
from stowage import _copying, _moving, _steps
from stowage._device import Device
from torch import nn
from uses_test import retained
from wrapping_test import decoder_step

torch.set_num_threads(1)
CPU = Device(torch.device("cpu"))
HOST = {"host_budget": "1GiB"}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(8))
def test_random_schedules_with_copies(kind, seed):
    torch.manual_seed(seed)
    blocks, x = MODELS[kind](random.Random(seed), 5)
    plain = nn.Sequential(*blocks)
    step = step_on(x)
    model = profiled(plain, step, **HOST)
    moved = 0
    for number in range(6):
        schedule = with_moves(random_schedule(5, 100 * seed + number), 5, number)
        moved += sum(op == "offload-wait" for op, *_ in schedule)
        plan = follow(model, schedule)
        assert_equal(outcome(model, step), outcome(plain, step))
        assert all(a <= b for a, b in zip(model.stowage.recomputed, recomputes(schedule, 5)))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes
        assert model.stowage._chain.restarts == 0
    assert moved > 6


@pytest.mark.parametrize("kind", between_backwards())
def test_what_a_plan_does_between_backwards_is_done_there(kind):
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    step = step_on(torch.randn(32, 64))
    model = profiled(plain, step, **HOST)
    for _ in range(2):
        plan = follow(model, between_backwards()[kind])
        assert_equal(outcome(model, step), outcome(plain, step))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes


def test_keywords_and_tuples():
    torch.manual_seed(0)
    plain = Decoder()
    model = profiled(plain, decoder_step, **HOST)
    for seed in range(6):
        plan = follow(model, with_moves(random_schedule(4, seed), 4, seed))
        assert_equal(outcome(model, decoder_step), outcome(plain, decoder_step))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes


@pytest.mark.parametrize("budget", ["60%", "least"])
def test_a_training_by_the_planner(budget):
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    model = stowage.wrap(copy.deepcopy(plain), budget, **HOST)
    x = torch.randn(32, 64)
    optimizers = [torch.optim.Adam(m.parameters()) for m in (plain, model)]
    for number in range(4):
        assert_equal(outcome(model, step_on(x), number), outcome(plain, step_on(x), number))
        for optimizer in optimizers:
            optimizer.step()
    plan = model.stowage.plan
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes <= plan.budget_bytes
    prediction = plan.to_dict()["prediction"]
    # What is cheaper at 60% depends on the machine; the least that needs no copies is more than the least.
    assert budget != "least" or prediction["offloaded_bytes"] > 0
    assert prediction["host_peak_bytes"] <= 2**30


def test_host_memory_is_a_budget_too():
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    step = step_on(torch.randn(32, 64))
    for host_bytes in (40_000, 100_000):
        model = profiled(plain, step, "least", host_budget=host_bytes)
        assert model.stowage.plan.to_dict()["prediction"]["host_peak_bytes"] <= host_bytes
        assert_equal(outcome(model, step), outcome(plain, step))
        assert 0 < model.stowage._chain._pool.free_bytes <= host_bytes


def test_the_input_never_moves():
    stage = {"forward_time_ns": 1000, "backward_time_ns": 2000, "output_bytes": 100, "saved_bytes": 300}
    link = {"to_host_bytes_per_second": 10**12, "to_device_bytes_per_second": 10**12, "host_memory_bytes": 10**6}
    chain = {"stages": [stage] * 6, "input_bytes": 10_000}
    profile = stowage.Profile.from_dict({"chain": chain, "device": {**link, "duplex": "DUPLEX_HALF"}})
    asked = []

    def ask(without, budget, beside_bytes):
        asked.append(without)
        schedule = without.plan(budget).schedule()
        moves = [(f"{way}-{end}", 0, "activation") for way in ("offload", "prefetch") for end in ("start", "wait")]
        return without.plan_of([schedule[0], *moves, *schedule[1:]])

    assert any(i.stage == 0 for i in profile.plan("least").schedule())
    plan = _moving.plan_beside_input(profile, "least", ask)
    assert asked[0].to_dict()["chain"]["input_bytes"] == 0
    assert not any(i.stage == 0 for i in plan.schedule()) and any(i.op == "offload-wait" for i in plan.schedule())
    assert plan.peak_bytes <= plan.budget_bytes == asked[0].plan("least").peak_bytes + 10_000
    with pytest.raises(stowage.Infeasible, match="beside an input of 10000 bytes") as raised:
        _moving.plan_beside_input(profile, plan.budget_bytes - 1, lambda without, budget, _: without.plan(budget))
    assert raised.value.least_bytes == plan.budget_bytes


def test_memory_of_the_host_is_used_again_within_its_limit():
    pool = _copying.HostPool(100, _copying.Copies(CPU))
    assert pool.take(0).numel() == 0
    first = pool.take(60)
    address = first.data_ptr()
    pool.give(first)
    assert pool.take(60).data_ptr() == address and pool.free_bytes == 0
    pool.give(first)
    assert pool.free_bytes == 60
    pool.take(50)
    assert pool.free_bytes == 0


def test_a_graph_that_is_thrown_away_leaves_its_memory():
    model = profiled(nn.Sequential(*[Mlp(16) for _ in range(5)]), step_on(torch.randn(4, 16)), **HOST)
    follow(model, all_away(5))
    pool = model.stowage._chain._pool
    before = pool.free_bytes
    out = model(torch.randn(4, 16, requires_grad=True))
    assert pool.free_bytes < before or before == 0
    del out
    gc.collect()
    assert pool.free_bytes == pool._held_bytes > 0


def all_away(length):
    """Every block's saved tensors go away after its forward, and come back for its backward."""
    schedule = []
    for block in range(1, length + 1):
        schedule += [(_steps.SAVE, block)]
        if block > 1:
            schedule += [("offload-start", block - 1, "saved"), ("offload-wait", block - 1, "saved")]
    schedule += [(_steps.SAVE, length + 1), (_steps.BACKWARD, length + 1)]
    for block in range(length, 0, -1):
        if block > 1:
            schedule += [("prefetch-start", block - 1, "saved"), ("prefetch-wait", block - 1, "saved")]
        schedule += [(_steps.BACKWARD, block)]
    return schedule


def test_what_is_away_takes_no_memory_of_the_device():
    plain = nn.Sequential(*[Mlp(64, dropout=0.0) for _ in range(8)])
    step = step_on(torch.randn(256, 64))
    model = profiled(plain, step, **HOST)
    everything = model.stowage.plan.store_all_peak_bytes
    plan = follow(model, all_away(8))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes < 0.6 * everything
    assert model.stowage.offloaded_bytes == model.stowage._chain.copied["prefetched_bytes"]
    assert 0 < model.stowage.offloaded_bytes <= plan.to_dict()["prediction"]["offloaded_bytes"]
    assert not any(model.stowage.recomputed)


def test_uses_of_a_graph_that_is_partly_away():
    plain = nn.Sequential(*[Mlp(8) for _ in range(4)])
    model = profiled(plain, step_on(torch.randn(3, 8)), **HOST)
    profiled_call = outcome(model, retained), outcome(plain, retained)
    assert_equal(*profiled_call)
    follow(model, all_away(4))
    assert_equal(outcome(model, retained), outcome(plain, retained))
    assert model.stowage._chain.restarts == 1


def test_steps_leave_nothing():
    model = profiled(nn.Sequential(*[Mlp(16) for _ in range(5)]), step_on(torch.randn(4, 16)), **HOST)
    follow(model, all_away(5))
    x = torch.randn(4, 16)
    live = []
    for _ in range(6):
        outcome(model, step_on(x))
        gc.collect()
        live.append(CPU.current_bytes())
    assert live[2] == live[-1]
    assert not model.stowage._chain.runs or all(not run.moves._copies for run in model.stowage._chain.runs)


def test_an_error_between_leaves_nothing_away():
    model = profiled(nn.Sequential(*[Mlp(16) for _ in range(5)]), step_on(torch.randn(4, 16)), **HOST)
    follow(model, all_away(5))
    out = model(torch.randn(4, 16, requires_grad=True))
    out.register_hook(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        out.sum().backward()
    del out
    assert_equal(outcome(model, step_on(torch.ones(4, 16))), outcome(copy.deepcopy(model), step_on(torch.ones(4, 16))))


class HoldsMore(nn.Module):
    """Its graph holds a tensor that autograd's hooks do not see."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mine = x * 2
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.mine

    def forward(self, x):
        return HoldsMore.Function.apply(x)


def test_what_hooks_do_not_see_stays_and_is_counted():
    plain = nn.Sequential(Mlp(16), HoldsMore(), *[Mlp(16) for _ in range(3)])
    step = step_on(torch.randn(4, 16))
    model = profiled(plain, step, **HOST)
    plan = follow(model, all_away(5))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes


@pytest.mark.parametrize(
    ("kinds", "seed"),
    [((Mlp, *[Spectral] * 4), 803), ((Mlp, Mlp, *[Spectral] * 3), 1701), ((Mlp, Spectral, Spectral, Tanh, Mlp), 603)],
)
def test_what_modules_hold_on_to_is_counted_while_the_rest_is_away(kinds, seed):
    torch.manual_seed(0)
    plain = nn.Sequential(*[kind() if kind is Tanh else kind(8) for kind in kinds])
    step = step_on(torch.randn(2, 4, 8))
    model = profiled(plain, step, **HOST)
    plan = follow(model, with_moves(random_schedule(5, seed), 5, seed % 100))
    assert_equal(outcome(model, step), outcome(plain, step))
    weight_bytes = 4 * 8 * 8
    assert model.stowage._chain.last_book.staying_bytes == kinds.count(Spectral) * weight_bytes
    assert model.stowage.measured_peak_bytes <= plan.peak_bytes


def test_a_block_that_must_be_kept_is_said_and_nothing_moves():
    plain = nn.Sequential(Mlp(16), InnerBackward(16), *[Mlp(16) for _ in range(4)])
    model = stowage.wrap(copy.deepcopy(plain), "least", **HOST)
    step = step_on(torch.randn(4, 16))
    with pytest.warns(UserWarning, match="block 2.*nothing goes to the host"):
        outcome(model, step)
    assert_equal(outcome(model, step), outcome(plain, step))
    assert not any(i.op.startswith("offload") for i in model.stowage.plan.schedule())
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


def test_buffers_change_once():
    plain = nn.Sequential(*[ConvNorm(4) for _ in range(4)])
    step = step_on(torch.randn(2, 4, 6, 6))
    model = stowage.wrap(copy.deepcopy(plain), "least", **HOST)
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))


@pytest.mark.parametrize("host", ["60%", "least", "much", -1, True])
def test_what_is_no_host_budget_is_refused(host):
    with pytest.raises(stowage.InvalidArgument):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)), "60%", host_budget=host)


@pytest.mark.parametrize(
    "instruction", [("offload-start", 0, "activation"), ("offload-start", 1, "saved", "to-host", 1), ("copy", 1)]
)
def test_instructions_that_are_not_followed(instruction):
    with pytest.raises(stowage.InvalidArgument):
        _steps.Steps([("forward-save", 1), instruction], 1)
    with pytest.raises(stowage.InvalidArgument, match="kept"):
        _steps.Steps(all_away(3), 3, kept=[2])
