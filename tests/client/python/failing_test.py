"""Steps that end in the middle, again and again, and steps of several threads: the others are right, and nothing is left."""

import copy
import gc
import signal
import threading

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import Mlp
from stowage import _torch
from torch import nn
from wrapping_test import adapters_put_in, quantised

torch.set_num_threads(1)


class Fuse(nn.Module):
    """Calls what it is given in one of its forwards."""

    left, call = 0, None

    def __init__(self, width):
        super().__init__()
        self.mlp = Mlp(width)

    def forward(self, x):
        Fuse.left -= 1
        if Fuse.left == 0:
            Fuse.call()
        return self.mlp(x)


def fused(count=5, width=16):
    torch.manual_seed(0)
    plain = nn.Sequential(*[Fuse(width) for _ in range(count)])
    step = step_on(torch.randn(32, width))
    return plain, profiled(plain, step, "least"), step


def raises():
    raise ValueError("blown")


def blown(model, step, at, call):
    """A step in which the block that runs as the ``at``-th calls ``call``. Returns the exception's text."""
    Fuse.left, Fuse.call = at, call
    try:
        step(model)
    except (KeyboardInterrupt, RuntimeError, ValueError) as error:
        return f"{type(error).__name__} {error}"
    finally:
        Fuse.left = 0
    return ""


@pytest.mark.parametrize("at", (1, 3, 5, 6, 9, 15, 16, 17))
def test_ctrl_c_ends_a_forward_and_a_recompute(at):
    plain, model, step = fused()
    count = 5 + model.stowage.plan.recomputed_forwards
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        said = blown(model, step, at, lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    # PyTorch 1.13 makes a RuntimeError of what a backward raises.
    assert ("KeyboardInterrupt" in said) == (at <= count)
    assert at > count or isinstance(model.stowage.last_failure, KeyboardInterrupt)
    assert not len(model.stowage._chain.runs)
    assert_equal(outcome(model, step), outcome(plain, step))


def test_fifty_steps_of_which_some_fail_leave_nothing():
    plain, model, step = fused()
    count = 5 + model.stowage.plan.recomputed_forwards
    gc.collect()
    gc.disable()
    try:
        held = []
        for number in range(50):
            if number % 3 == 1:
                assert "blown" in blown(model, step, 1 + number % count, raises)
            outcome(model, step, number)
            held.append(_torch.current_bytes())
        assert len(set(held[2:])) == 1
    finally:
        gc.enable()
    assert_equal(outcome(model, step), outcome(plain, step))


def never_fits(number):
    model = stowage.wrap(nn.Sequential(*[Fuse(16) for _ in range(5)]), 1)
    step = step_on(torch.randn(32, 16))
    for _ in range(2):  # the first step measures
        try:
            step(model)
        except stowage.Infeasible as error:
            assert error.budget_bytes == 1
            return
    raise AssertionError("it fits")


def refuses(number):
    with pytest.raises(stowage.InvalidArgument):
        stowage.wrap(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), "no budget")


LASTING = {}


def changes_shapes(number):
    if not LASTING:
        LASTING["model"] = stowage.wrap(nn.Sequential(*[Fuse(16) for _ in range(5)]), "80%")
    step_on(torch.randn(8 + number % 4, 16))(LASTING["model"])
    LASTING["model"].zero_grad(set_to_none=True)


def adapts(number):
    """LoRA put in after the first steps, whose plan is of other blocks."""
    if not LASTING:
        torch.manual_seed(0)
        plain = nn.Sequential(*[Mlp(16) for _ in range(5)])
        LASTING.update(plain=plain, model=stowage.wrap(copy.deepcopy(plain), "80%"))
    plain, model = LASTING["plain"], LASTING["model"]
    if number == 3:
        assert model.stowage.plan is not None
        adapters_put_in(plain)
        adapters_put_in(model)
    step = step_on(torch.ones(128, 16))
    assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert number < 5 or sum(model.stowage.recomputed) == model.stowage.plan.recomputed_forwards > 0
    clear(model, plain)


def has_weights_of_eight_bits(number):
    if not LASTING:
        plain = nn.Sequential(*[quantised("weight only", 16) for _ in range(5)])
        LASTING.update(plain=plain, model=stowage.wrap(copy.deepcopy(plain), "least"))
    plain, model, step = LASTING["plain"], LASTING["model"], step_on(torch.ones(128, 16))
    assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert number < 2 or sum(model.stowage.recomputed) == model.stowage.plan.recomputed_forwards > 0
    clear(model, plain)


def clear(*models):
    for model in models:
        model.zero_grad(set_to_none=True)


FIFTY = [never_fits, refuses, changes_shapes, adapts, has_weights_of_eight_bits]


@pytest.mark.parametrize("call", FIFTY, ids=lambda call: call.__name__)
@pytest.mark.filterwarnings("ignore")
def test_fifty_of_anything_leave_nothing(call):
    held = []
    for number in range(50):
        call(number)
        gc.collect()
        held.append(_torch.current_bytes())
    assert len(set(held[12:])) == 1, held
    LASTING.clear()


class Lines(torch.utils.data.Dataset):
    """Batches are made in a process that the loader forks."""

    def __len__(self):
        return 192

    def __getitem__(self, place):
        assert torch.utils.data.get_worker_info() is not None
        values = torch.linspace(-1, 1, 16) * (1 + place % 7)
        return values, values.sum().sin()


def test_a_loader_that_forks_trains_as_plainly():
    """Workers are there while steps measure, plan and train; the second epoch forks a process that has a plan."""
    torch.manual_seed(0)
    plain = nn.Sequential(*[Mlp(16) for _ in range(5)])
    models = [plain, stowage.wrap(copy.deepcopy(plain), "60%")]
    left = []
    for model in models:
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        gradients = []
        for _ in range(2):
            loader = torch.utils.data.DataLoader(
                Lines(), batch_size=64, shuffle=True, num_workers=1, multiprocessing_context="fork"
            )
            for values, wanted in loader:
                optimizer.zero_grad(set_to_none=True)
                (model(values).mean(1) - wanted).square().mean().backward()
                gradients += [parameter.grad.clone() for parameter in model.parameters()]
                optimizer.step()
        left.append([*gradients, *(parameter.detach() for parameter in model.parameters())])
    assert_equal(left[1], left[0])
    training = models[1].stowage
    assert sum(training.recomputed) == training.plan.recomputed_forwards > 0
    assert training.measured_peak_bytes <= training.plan.peak_bytes <= training.plan.budget_bytes


def in_threads(*calls):
    errors = []

    def run(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize("shared", [False, True])
def test_threads_train_at_once(shared):
    """Each a model of its own, or all the same one. Without dropout: its generator is one for all threads."""
    torch.manual_seed(0)
    plain = nn.Sequential(*[Mlp(16, dropout=0.0) for _ in range(5)])
    models = [stowage.wrap(copy.deepcopy(plain), "least") for _ in range(1 if shared else 3)] * (3 if shared else 1)
    inputs = [torch.randn(8, 16) for _ in models]

    def gradients(model, x):
        return torch.autograd.grad(model(x).square().mean(), list(model.parameters()))

    for model in models[:1] if shared else models:
        for _ in range(2):
            gradients(model, inputs[0])
    start = threading.Barrier(len(models))

    def train(model, x):
        expected = gradients(plain, x)
        start.wait()
        for _ in range(10):
            assert_equal(gradients(model, x), expected)

    in_threads(*[lambda model=model, x=x: train(model, x) for model, x in zip(models, inputs)])
    assert all(model.stowage.plan.recomputed_forwards > 0 for model in models)
