"""Training by plans on a device that is not the CPU: work that runs later, memory in blocks, random numbers of its own."""

import copy
import functools
import random
import subprocess
import sys

import device
import pytest
import stowage
import torch
from comparing import assert_equal, outcome, step_on
from comparing import profiled as profiled_by
from networks import MODELS, ConvNorm, InnerBackward, Lstm, Mlp, WritesInput
from schedules import follow, random_schedule, recomputes
from torch import nn
from uses_test import accumulated, double, from_another_thread, interleaved, retained

torch.set_num_threads(1)


def copied(model):
    """By way of the host: PyTorch 1.13 copies no storage of a device that is not its own."""
    there = device.test_device()
    twin = copy.deepcopy(model.to("cpu")).to(there)
    model.to(there)
    return twin


profiled = functools.partial(profiled_by, copied=copied)


@pytest.fixture
def here():
    return device.test_device()


def seeded(call):
    """The call, with the device's random numbers from a start, and where they are at its end."""

    def step(model):
        device.seed(11)
        return [*call(model), device.random_state()]

    return step


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_random_schedules_of_random_blocks(kind, seed, here):
    torch.manual_seed(seed)
    blocks, x = MODELS[kind](random.Random(seed), 5)
    plain = nn.Sequential(*blocks).to(here)
    step = seeded(step_on(x.to(here)))
    model = profiled(plain, step)
    assert not model.stowage.kept
    for number in range(4):
        schedule = random_schedule(5, 100 * seed + number)
        plan = follow(model, schedule)
        assert_equal(outcome(model, step), outcome(plain, step))
        assert all(done <= planned for done, planned in zip(model.stowage.recomputed, recomputes(schedule, 5)))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes


def test_a_model_that_is_moved_is_to_be_wrapped_anew(here):
    model = stowage.wrap(nn.Sequential(Mlp(16), Mlp(16)), "100%")
    model(torch.randn(4, 16)).sum().backward()
    model.to(here)
    with pytest.raises(stowage.FailedPrecondition, match="now, and were on cpu"):
        model(torch.randn(4, 16).to(here))
    stowage.wrap(stowage.unwrap(model), "100%")
    for _ in range(2):
        model(torch.randn(4, 16).to(here)).sum().backward()
    assert model.stowage.plan is not None


@pytest.mark.parametrize("budget", ["100%", "80%", "60%", "least"])
def test_a_training_by_the_planner(budget, here):
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)]).to(here)
    model = stowage.wrap(copied(plain), budget)
    step = seeded(step_on(torch.randn(32, 64).to(here)))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (plain, model)]
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
        for optimizer in optimizers:
            optimizer.step()
    plan, training = model.stowage.plan, model.stowage
    assert training.measured_peak_bytes <= plan.peak_bytes <= plan.budget_bytes
    assert sum(training.recomputed) == plan.recomputed_forwards
    assert plan.recomputed_forwards == 0 if budget == "100%" else plan.recomputed_forwards > 0


FRESH = """
import device, stowage, torch
from comparing import step_on
from networks import Mlp

torch.set_num_threads(1)
here = device.test_device()
overheads = []
for _ in range(2):
    torch.manual_seed(1)
    model = stowage.wrap(torch.nn.Sequential(*[Mlp(64) for _ in range(4)]).to(here), "70%")
    for _ in range(2):
        step_on(torch.randn(32, 64).to(here))(model)
    stages = model.stowage.profile.to_dict()["chain"]["stages"]
    overheads.append([{key: stage[key] for key in stage if key.endswith("_bytes")} for stage in stages])
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes
assert overheads[0] == overheads[1], overheads
print("alike", flush=True)
os._exit(0)  # the device's threads run on
"""


def test_what_the_first_step_of_a_process_makes_for_good_is_in_no_profile(here):
    """The workspace that the first matrix product on autograd's thread takes, and keeps."""
    done = subprocess.run([sys.executable, "-c", "import os" + FRESH], text=True, capture_output=True, timeout=300)
    assert done.stdout == "alike\n", done.stderr


RECORDED = """
import device, os, stowage, sys, torch
from comparing import step_on
from networks import Mlp

torch.set_num_threads(1)
here = device.test_device()
torch.manual_seed(1)
model = stowage.wrap(torch.nn.Sequential(*[Mlp(64) for _ in range(4)]).to(here), "60%", cache=sys.argv[1])
for _ in range(3):
    step_on(torch.randn(32, 64).to(here))(model)
print([event.kind for event in model.stowage.events], model.stowage.notes, flush=True)
os._exit(0)
"""


def test_a_record_holds_in_a_fresh_process(here, tmp_path):
    """Which takes its workspaces in the step that the record is on trial in."""
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", RECORDED, tmp_path], text=True, capture_output=True, timeout=300)
        said.append(done.stdout)
        assert done.returncode == 0, done.stderr
    assert said == ["['measured', 'planned'] []\n", "['recorded', 'planned'] []\n"]


class Move(nn.Module):
    """Puts what comes from the host on the device. Saves nothing."""

    def __init__(self, to):
        super().__init__()
        self.to_device = to

    def forward(self, x):
        return x.to(self.to_device)


@pytest.mark.parametrize("use", [retained, double, interleaved, accumulated, from_another_thread], ids=lambda use: use.__name__)
def test_uses_of_a_forward(use, here):
    torch.manual_seed(5)
    plain = nn.Sequential(Move(here), nn.Sequential(*[Mlp(8) for _ in range(4)]).to(here))
    call = seeded(use)
    model = profiled(plain, call, blocks="1")
    for seed in range(6):
        follow(model, random_schedule(4, seed))
        assert_equal(outcome(model, call), outcome(plain, call))


class Ramp(nn.Linear):
    """Adds what it makes wherever the caller has new tensors go."""

    def forward(self, x):
        return super().forward(x).tanh() + torch.arange(self.out_features, dtype=x.dtype)


@pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="PyTorch before 2.0 has no default device")
def test_new_tensors_of_a_recompute_go_where_those_of_its_forward_went(here):
    """Though autograd's thread for the device runs it, and the backward is called elsewhere."""
    torch.manual_seed(6)
    plain = nn.Sequential(*[Ramp(8, 8) for _ in range(4)]).to(here)
    x = torch.randn(2, 8).to(here)

    def call(model):
        with here:
            loss = model(x).square().mean()
        loss.backward()
        return [loss]

    step = seeded(call)
    model = profiled(plain, step, "least")
    assert_equal(outcome(model, step), outcome(plain, step))
    assert sum(model.stowage.recomputed) > 0


@pytest.mark.parametrize("budget", ["100%", "least"])
def test_a_planned_step_waits_no_more_than_a_plain_one(budget, here):
    torch.manual_seed(2)
    plain = nn.Sequential(ConvNorm(4), ConvNorm(4), ConvNorm(4)).to(here)
    step = step_on(torch.randn(2, 4, 6, 6).to(here))
    model = profiled(plain, step, budget)
    step(model)  # the first by the plan is measured

    def waits(of):
        before = device.waits()
        step(of)
        return device.waits() - before

    assert waits(model) == waits(plain)


def test_peaks_that_the_job_asks_for_stay_right(here):
    step = step_on(torch.randn(32, 64).to(here))
    model = profiled(nn.Sequential(*[Mlp(64) for _ in range(4)]).to(here), step, "least")
    step(model)  # the first by the plan is measured, and starts peaks anew
    spike = torch.empty(1 << 22, device=here)
    del spike
    peak = device.peak_bytes()
    step(model)
    assert device.peak_bytes() == peak


def test_a_larger_batch_is_measured_by_one_block_of_those_that_took_the_same(here):
    torch.manual_seed(2)
    plain = nn.Sequential(*[Mlp(64) for _ in range(5)], nn.Tanh()).to(here)
    model = stowage.wrap(copied(plain), "60%")
    for number, rows in enumerate((32, 32, 32, 64, 64, 64)):
        step = seeded(step_on(torch.randn(rows, 64).to(here)))
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    training = model.stowage
    assert [event.kind for event in training.events] == ["measured", "planned"] * 2
    assert training.measured_peak_bytes <= training.plan.peak_bytes
    alone = profiled(plain, seeded(step_on(torch.ones(64, 64).to(here)))).stowage.profile.to_dict()["chain"]["stages"]
    for stage, expected in zip(training.profile.to_dict()["chain"]["stages"], alone):
        same = {name: value for name, value in expected.items() if not name.endswith("_ns")}
        assert {name: stage[name] for name in same} == same


def test_blocks_that_must_be_kept_are_found(here):
    torch.manual_seed(2)
    plain = nn.Sequential(Mlp(8), Mlp(8), WritesInput(8), Mlp(8), Mlp(8)).to(here)
    step = seeded(step_on(torch.randn(3, 8).to(here)))
    model = stowage.wrap(copied(plain), "least")
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert list(model.stowage.kept) == [3]


class WideAfterBackward(InnerBackward):
    """Most of its memory comes when it has let go of what its backward gave."""

    def forward(self, x):
        inner = x.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(torch.tanh(self.linear(inner)).square().sum(), inner)
        scale = gradient.mean()
        del gradient
        with torch.no_grad():
            wide = torch.cat([x] * 8).exp().mean()
        return self.linear(x) * scale + wide


def test_what_a_backward_in_a_forward_gives_is_counted_to_its_end(here):
    """Autograd's thread for the device may hold it that long."""
    torch.manual_seed(2)
    rows, width = 64, 128

    def overhead_bytes():
        plain = nn.Sequential(Mlp(width), WideAfterBackward(width), Mlp(width)).to(here)
        model = profiled(plain, seeded(step_on(torch.randn(rows, width).to(here))))
        assert list(model.stowage.kept) == [2]
        return model.stowage.profile.to_dict()["chain"]["stages"][1]["forward_saving_overhead_bytes"]

    # Two tensors of eight, and the gradient, beyond the output and the input.
    assert {overhead_bytes() for _ in range(6)} == {15 * 4 * rows * width}


def test_what_cannot_be_measured_is_refused(here):
    with pytest.raises(stowage.InvalidArgument, match="several devices"):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8).to(here)), "60%")
    with pytest.raises(stowage.InvalidArgument, match="meta device"):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)).to("meta"), "60%")


@pytest.mark.parametrize("lacking", ["memory_stats", "device"])
def test_a_device_that_pytorch_says_too_little_of_is_refused(lacking, here, monkeypatch):
    monkeypatch.delattr(getattr(torch, device.NAME), lacking)
    with pytest.raises(stowage.InvalidArgument, match=f"has no .*{lacking}"):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)).to(here), "60%")


def test_a_device_that_counts_no_bytes_is_refused(here, monkeypatch):
    monkeypatch.setattr(getattr(torch, device.NAME), "memory_stats", lambda _=None: {})
    with pytest.raises(stowage.InvalidArgument, match="counts no bytes"):
        stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)).to(here), "60%")


def test_recurrent_blocks(here):
    torch.manual_seed(4)
    plain = nn.Sequential(*[Lstm(16) for _ in range(3)]).to(here)
    step = step_on(torch.randn(2, 8, 16).to(here))
    model = profiled(plain, step)
    for seed in range(4):
        follow(model, random_schedule(3, seed))
        assert_equal(outcome(model, step), outcome(plain, step))
