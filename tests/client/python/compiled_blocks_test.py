"""torch.compile beside plans: of a wrapped model, of the blocks before it is wrapped, and of the autograd."""

import copy
import pickle
import subprocess
import sys
import warnings

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import Decoder, Mlp
from schedules import random_schedule
from stowage import _joint_version, _steps
from torch import nn

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch before 2.0 has no torch.compile")
BACKENDS = ["aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def _no_compiled_graphs():
    if hasattr(torch, "compile"):
        torch._dynamo.reset()
    torch.manual_seed(1)


def compiled_in_place(model, backend):
    for block in model:
        block.compile(backend=backend)
    return model


def compiled_blocks(model, backend):
    return nn.Sequential(*[torch.compile(block, backend=backend) for block in model])


def assert_planned(model):
    training = model.stowage
    assert training.measured_peak_bytes <= training.plan.peak_bytes <= training.plan.budget_bytes
    assert sum(training.recomputed) == training.plan.recomputed_forwards > 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compiled", [compiled_in_place, compiled_blocks])
def test_blocks_compiled_before_they_are_wrapped_run_compiled_and_planned(compiled, backend):
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    baseline = compiled(copy.deepcopy(plain), backend)
    model = stowage.wrap(compiled(copy.deepcopy(plain), backend), "60%")
    step = step_on(torch.randn(256, 64))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="stowage")
        for number in range(4):
            assert_equal(outcome(model, step, number), outcome(baseline, step, number))
    assert_planned(model)
    assert not model.stowage.notes and not model.stowage.kept
    stowage.unwrap(model)
    assert_equal(outcome(model, step), outcome(baseline, step))
    assert compiled is compiled_blocks or all(block._compiled_call_impl is not None for block in model)


@pytest.mark.parametrize("compiled", [compiled_in_place, compiled_blocks])
def test_random_schedules_of_compiled_blocks(compiled):
    plain = nn.Sequential(*[Mlp(8) for _ in range(5)])
    baseline, step = compiled(copy.deepcopy(plain), "aot_eager"), step_on(torch.randn(4, 8))
    model = profiled(plain, step, copied=lambda of: compiled(copy.deepcopy(of), "aot_eager"))
    for seed in range(8):
        book = model.stowage._chain.last_book
        plan = book.profile.plan_of(random_schedule(5, seed))
        book.steps = _steps.Steps(random_schedule(5, seed), 5)
        book.was_watched = False
        assert_equal(outcome(model, step), outcome(baseline, step))
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes


def test_hooks_of_a_compiled_block_run_once():
    model = compiled_in_place(nn.Sequential(*[Mlp(8) for _ in range(4)]), "aot_eager")
    seen = []
    stowage.wrap(model, "least")
    handle = model[1].register_forward_hook(lambda *_: seen.append("forward"))
    for _ in range(3):
        seen.clear()
        outcome(model, step_on(torch.ones(2, 8)))
        assert seen == ["forward"]
    assert model.stowage.recomputed[1] > 0
    handle.remove()
    copied = pickle.loads(pickle.dumps(model))
    assert copied.stowage is None and copied[0]._compiled_call_impl is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_compile_around_a_wrapped_model_leaves_the_blocks_to_the_plan(backend):
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    wrapped = stowage.wrap(copy.deepcopy(plain), "60%")
    model = torch.compile(wrapped, backend=backend)
    step = step_on(torch.randn(256, 64))
    with pytest.warns(UserWarning, match="run uncompiled: compile each block, then wrap"):
        assert_equal(outcome(model, step), outcome(plain, step))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="stowage")
        for number in range(3):
            assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert_planned(wrapped)


@pytest.mark.parametrize("compiled", [compiled_in_place, compiled_blocks])
def test_torch_compile_around_a_wrapped_model_of_compiled_blocks(compiled):
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    baseline = compiled(copy.deepcopy(plain), "aot_eager")
    wrapped = stowage.wrap(compiled(copy.deepcopy(plain), "aot_eager"), "60%")
    model = torch.compile(wrapped, backend="aot_eager")
    step = step_on(torch.randn(256, 64))
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(baseline, step, number))
    assert_planned(wrapped)
    assert not wrapped.stowage.notes


def decoder_step(model):
    words = torch.arange(12).view(2, 6) % 20
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    loss.backward()
    return [loss]


def test_what_is_beside_the_blocks_is_compiled():
    plain = Decoder()
    baseline = torch.compile(copy.deepcopy(plain), backend="aot_eager")
    wrapped = stowage.wrap(copy.deepcopy(plain), "least")
    model = torch.compile(wrapped, backend="aot_eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(3):
            assert_equal(outcome(model, decoder_step, number), outcome(baseline, decoder_step, number))
    assert sum(wrapped.stowage.recomputed) == wrapped.stowage.plan.recomputed_forwards > 0


def test_one_model_has_one_budget():
    model = stowage.wrap(nn.Sequential(*[Mlp(8) for _ in range(3)]), "60%")
    with pytest.raises(stowage.FailedPrecondition, match="wrapped already|belongs to another"):
        stowage.wrap(torch.compile(model, backend="aot_eager"), "60%")
    if not _joint_version.is_here():
        return
    with pytest.raises(stowage.FailedPrecondition, match="trains by another plan"):
        stowage.compile(model, "60%")
    with pytest.raises(stowage.FailedPrecondition, match="stowage.compile, which plans all of it"):
        stowage.wrap(stowage.compile(stowage.unwrap(model), "60%"), "60%")


def test_a_whole_graph_of_a_wrapped_model_is_refused():
    model = stowage.wrap(nn.Sequential(*[Mlp(8) for _ in range(3)]), "60%")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="compile each block, then wrap the model"):
        torch.compile(model, backend="aot_eager", fullgraph=True)(torch.ones(2, 8))


def test_a_block_compiled_after_it_was_wrapped_is_planned_and_that_is_said():
    plain = nn.Sequential(*[Mlp(8) for _ in range(4)])
    model = compiled_in_place(stowage.wrap(copy.deepcopy(plain), "least"), "aot_eager")
    step = step_on(torch.ones(2, 8))
    with pytest.warns(UserWarning, match="run uncompiled: compile each block, then wrap"):
        assert_equal(outcome(model, step), outcome(plain, step))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert sum(model.stowage.recomputed) > 0


def test_compiled_autograd():
    from torch._dynamo import compiled_autograd

    def use(model):
        x = torch.full((3, 8), 0.4).requires_grad_()
        loss = model(x).square().sum()
        with compiled_autograd._enable(torch.compile(backend="eager")):
            loss.backward()
        return [x.grad]

    plain = nn.Sequential(*[Mlp(8) for _ in range(2)])
    step = step_on(torch.full((3, 8), 0.4))
    model = profiled(plain, step, "least")
    assert_equal(outcome(model, use), outcome(plain, use))
    assert sum(model.stowage.recomputed) > 0
    assert_equal(outcome(model, step), outcome(plain, step))
    assert not len(model.stowage._chain.runs)


def test_importing_and_wrapping_imports_no_dynamo():
    words = """
import sys, torch, stowage
before = "torch._dynamo" in sys.modules
model = stowage.wrap(torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(3)]), "100%")
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
assert model.stowage.plan is not None and (before or "torch._dynamo" not in sys.modules)
"""
    subprocess.run([sys.executable, "-c", words], check=True)
