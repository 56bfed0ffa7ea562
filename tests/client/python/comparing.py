"""One training step of a model, and whether two of them left the same."""

import copy
import warnings

import pytest
import stowage
import torch


def outcome(model, call, seed=7):
    """Everything that a step leaves: what `call` returns, gradients, buffers, random state."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    returned = call(model)
    gradients = [p.grad.clone() if p.grad is not None else torch.zeros(()) for p in model.parameters()]
    return [
        *(t.detach().clone() for t in returned),
        *gradients,
        *(b.clone() for b in model.buffers()),
        torch.get_rng_state(),
    ]


def local(tensor):
    """This rank's part of a DTensor; of another tensor, all of it."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def assert_equal(got, expected):
    assert len(got) == len(expected)
    for place, (a, b) in enumerate(zip(got, expected)):
        assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num()), place


def step_on(x):
    def step(model):
        source = x.clone().requires_grad_()
        loss = model(source).float().square().mean()
        loss.backward()
        return [loss, source.grad]

    return step


def profiled(model, call, budget="100%", copied=copy.deepcopy, **how):
    """A twin of the model that is wrapped and has a plan; its state is the model's."""
    twin = stowage.wrap(copied(model), budget, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome(twin, call)
        outcome(twin, call)
    assert twin.stowage.plan is not None
    with torch.no_grad():
        for mine, theirs in zip([*twin.parameters(), *twin.buffers()], [*model.parameters(), *model.buffers()]):
            mine.copy_(theirs)
    return twin


def autocast_step(plain, x):
    """In bfloat16. Skips the test where plain training has none on this processor."""

    def step(model):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        return [loss]

    try:
        outcome(plain, step)
    except RuntimeError as error:
        pytest.skip(f"plain training has no bfloat16 on this processor: {error}")
    return step
