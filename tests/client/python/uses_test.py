"""What a user may do between forward and backward, each by many schedules: gradients are those of plain training."""

import gc
import threading

import pytest
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import Mlp
from schedules import follow, random_schedule
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)


def retained(model):
    x = torch.linspace(-1, 1, 24).view(3, 8).requires_grad_()
    loss = model(x).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return [x.grad]


def double(model):
    x = torch.linspace(-1, 1, 24).view(3, 8).requires_grad_()
    y = model(x).square().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (g.square().sum() + y).backward()
    return [x.grad, g]


def interleaved(model):
    a, b = (torch.full((3, 8), v).requires_grad_() for v in (0.3, -0.7))
    first, second = model(a), model(b)
    first.square().sum().backward()
    second.sum().backward()
    return [a.grad, b.grad]


def interleaved_backwards(model):
    a, b = (torch.full((3, 8), v).requires_grad_() for v in (0.3, -0.7))
    first, second = model(a), model(b)
    second.sum().backward()
    first.square().sum().backward()
    return [a.grad, b.grad]


def joint(model):
    a, b = (torch.full((3, 8), v).requires_grad_() for v in (0.3, -0.7))
    (model(a).square().sum() + model(model(b)).sum()).backward()
    return [a.grad, b.grad]


def accumulated(model):
    for value in (0.1, 0.5, -0.9):
        model(torch.full((3, 8), value)).square().sum().backward()
    return []


def some_gradients(model):
    parameters = list(model[-1].parameters()) + list(model[1].parameters())
    return list(torch.autograd.grad(model(torch.full((3, 8), 0.2)).square().sum(), parameters))


def looked_at(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    y = model(x)
    seen, todo, done = [], [y.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in done:
            continue
        done.add(node)
        for name in ("_saved_mat1", "_saved_self"):
            value = getattr(node, name, None)
            if isinstance(value, torch.Tensor):
                seen.append(value.detach().clone())
        todo += [following for following, _ in node.next_functions]
    y.square().sum().backward()
    return [*seen, x.grad]


def evaluated_between(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    y = model(x)
    with torch.no_grad():
        other = model(x * 2)
    y.square().sum().backward()
    return [other, x.grad]


def from_another_thread(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    y = model(x).square().sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    return [x.grad]


def frozen(model):
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    try:
        model(torch.full((3, 8), 0.4)).square().sum().backward()
    finally:
        for parameter in model[0].parameters():
            parameter.requires_grad_(True)
    return []


def in_checkpoint(model, use_reentrant=False):
    x = torch.full((3, 8), 0.4).requires_grad_()
    checkpoint(lambda y: model(y.sin()) * 2, x, use_reentrant=use_reentrant).square().sum().backward()
    return [x.grad]


def in_reentrant_checkpoint(model):
    return in_checkpoint(model, use_reentrant=True)


def each_block_in_checkpoint(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    y = x
    for block in model:
        y = checkpoint(block, y, use_reentrant=False)
    y.square().sum().backward()
    return [x.grad]


def saved_on_cpu(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        loss = model(x.sin()).square().sum()
        loss.backward()
    return [x.grad]


def backward_in_a_hook(model):
    """Of another forward, while the third block's backward is yet to come."""
    x, a, seen = torch.full((3, 8), 0.4).requires_grad_(), torch.full((3, 8), 0.3).requires_grad_(), []
    other = model(a).square().sum()
    handle = model[2].register_forward_hook(lambda _, __, out: seen.append(out))
    y = model(x)
    handle.remove()
    seen[0].register_hook(lambda _: other.backward())
    y.square().sum().backward()
    return [x.grad, a.grad]


def step_in_a_hook(model):
    x, a, seen = torch.full((3, 8), 0.4).requires_grad_(), torch.full((3, 8), 0.3).requires_grad_(), []
    handle = model[2].register_forward_hook(lambda _, __, out: seen.append(out))
    y = model(x)
    handle.remove()

    def step(_):
        with torch.enable_grad():
            model(a).square().sum().backward()

    seen[0].register_hook(step)
    y.square().sum().backward()
    return [x.grad, a.grad]


def under_anomaly_mode(model):
    x = torch.full((3, 8), 0.4).requires_grad_()
    with torch.autograd.detect_anomaly():
        model(x).square().sum().backward()
    return [x.grad]


USES = [
    in_checkpoint,
    in_reentrant_checkpoint,
    each_block_in_checkpoint,
    saved_on_cpu,
    backward_in_a_hook,
    step_in_a_hook,
    under_anomaly_mode,
    retained,
    double,
    interleaved,
    interleaved_backwards,
    joint,
    accumulated,
    some_gradients,
    looked_at,
    evaluated_between,
    from_another_thread,
    frozen,
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:stowage. Mlp was called out of order")
def test_uses_of_a_forward(use):
    torch.manual_seed(5)
    plain = nn.Sequential(*[Mlp(8) for _ in range(5)])
    step = step_on(torch.full((3, 8), 0.2))
    model = profiled(plain, use if use is not each_block_in_checkpoint else step)
    for seed in range(16):
        follow(model, random_schedule(5, seed))
        assert_equal(outcome(model, use), outcome(plain, use))
    assert not [run for run in model.stowage._chain.runs if any(run.activations.values())]
    assert_equal(outcome(model, step), outcome(plain, step))


def test_a_wrapped_model_in_checkpoint_leaves_nothing_behind():
    from stowage import _torch

    torch.manual_seed(0)
    for use in (in_checkpoint, in_reentrant_checkpoint, saved_on_cpu, backward_in_a_hook, step_in_a_hook):
        model = profiled(nn.Sequential(*[Mlp(8) for _ in range(4)]), step_on(torch.ones(3, 8)), "least")
        gc.collect()
        gc.disable()
        try:
            held = [outcome(model, use) and _torch.current_bytes() for _ in range(8)]
        finally:
            gc.enable()
        assert len(set(held[3:])) == 1, use


def test_a_second_backward_without_retain_graph_is_pytorchs_error():
    model = profiled(nn.Sequential(Mlp(8), Mlp(8)), step_on(torch.ones(2, 8)), "least")
    loss = model(torch.ones(2, 8)).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
