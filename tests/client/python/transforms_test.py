"""Other ways to take gradients than by a backward: what cannot be planned is plain training, and said once."""

import warnings

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import Mlp
from torch import nn
from torch.autograd import forward_ad

torch.set_num_threads(1)


def under_functional_call(model, kind=torch.Tensor):
    call = torch.func.functional_call if hasattr(torch, "func") else torch.nn.utils.stateless.functional_call
    others = {name: kind(p.detach() * 0.5).requires_grad_() for name, p in model.named_parameters()}
    loss = call(model, others, (torch.full((3, 8), 0.4),)).square().sum()
    loss.backward()
    return [loss, *(p.grad for p in others.values())]


def under_functional_call_with_parameters(model):
    return under_functional_call(model, nn.Parameter)


def under_forward_mode(model):
    x = torch.full((3, 8), 0.4)
    with forward_ad.dual_level():
        out = model(forward_ad.make_dual(x, torch.ones_like(x)))
        return list(forward_ad.unpack_dual(out))


def under_forward_over_reverse(model):
    x = torch.full((3, 8), 0.4)
    with forward_ad.dual_level():
        loss = model(forward_ad.make_dual(x, torch.ones_like(x))).square().sum()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        return [part for g in gradients for part in forward_ad.unpack_dual(g) if part is not None]


def under_grad(model):
    own = {name: p.detach().clone() for name, p in model.named_parameters()}
    x = torch.full((3, 8), 0.4)
    return list(torch.func.grad(lambda p: torch.func.functional_call(model, p, (x,)).square().sum())(own).values())


def under_grad_of_the_input(model):
    return [torch.func.grad(lambda x: model(x).square().sum())(torch.full((3, 8), 0.4))]


def under_vmap(model):
    out = torch.func.vmap(model, randomness="different")(torch.full((3, 2, 8), 0.4))
    out.square().sum().backward()
    return [out]


def under_jvp(model):
    x = torch.full((3, 8), 0.4)
    return list(torch.func.jvp(model, (x,), (torch.ones_like(x),)))


OF_TORCH_FUNC = [under_grad, under_grad_of_the_input, under_vmap, under_jvp]
LEFT_ALONE = [
    under_functional_call,
    under_functional_call_with_parameters,
    under_forward_mode,
    under_forward_over_reverse,
    *OF_TORCH_FUNC,
]
_needs_func = pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch before 2.0 has no torch.func")


@pytest.mark.parametrize(
    "use",
    [pytest.param(use, marks=[_needs_func] if use in OF_TORCH_FUNC else [], id=use.__name__) for use in LEFT_ALONE],
)
def test_what_is_left_alone_is_plain_training_and_said_once(use):
    torch.manual_seed(5)
    plain = nn.Sequential(*[Mlp(8) for _ in range(5)])
    step = step_on(torch.full((3, 8), 0.2))
    model = profiled(plain, step, "least")
    with pytest.warns(UserWarning, match="not planned"):
        assert_equal(outcome(model, use), outcome(plain, use))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_equal(outcome(model, use), outcome(plain, use))
        for _ in range(2):
            assert_equal(outcome(model, step), outcome(plain, step))
    assert len(model.stowage.notes) == 1 and len(model.stowage._chain.books) == 1  # nothing is measured anew
    assert sum(model.stowage.recomputed) == model.stowage.plan.recomputed_forwards > 0


@_needs_func
def test_a_block_alone_under_a_transform_is_refused():
    torch.manual_seed(5)
    plain = nn.Sequential(*[Mlp(8) for _ in range(5)])
    step = step_on(torch.full((3, 8), 0.2))
    model = profiled(plain, step, "least")
    y = model[0](torch.full((3, 8), 0.4))
    for transformed in (torch.func.vmap(model[1], randomness="different"), torch.func.grad(lambda t: model[1](t).sum())):
        y = model[0](torch.full((3, 8), 0.4))
        with pytest.raises(stowage.ExecutionError, match="block 2 is called within a transform"):
            transformed(y)
    del y
    assert_equal(outcome(model, step), outcome(plain, step))
