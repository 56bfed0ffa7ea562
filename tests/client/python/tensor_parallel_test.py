"""Blocks whose weights ranks share as DTensors (tensor parallel): they communicate in their forwards, and run once."""

import warnings

import pytest
import stowage
import torch
import torch.distributed as dist
from ddp_test import loss_of, same
from networks import Mlp
from processes import together
from stowage import _joint_version
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


def steps_of(model, steps):
    results = []
    for step in range(steps):
        torch.manual_seed(step)  # the same batch on all ranks
        model.zero_grad()
        loss = loss_of(model(torch.randn(32, WIDTH)))
        loss.backward()
        gradients = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in model.parameters()]
        results.append([loss.detach(), *(gradient.clone() for gradient in gradients)])
    return results


def shared(rank, given, budget):
    warnings.simplefilter("ignore")
    how = {"process_group": dist.group.WORLD} if given else {}
    expected = steps_of(model_of(rank), 4)
    model = stowage.wrap(model_of(rank), budget, **how)
    got = steps_of(model, 4)
    training = model.stowage
    return same(got, expected), training.ranks, training.plan.digest, training.kept, training.recomputed


@pytest.mark.parametrize("given", [True, False])
def test_blocks_that_ranks_share_run_once(given):
    first, second = together(2, shared, given, "least")
    assert first == second and first[0] and first[1] == 2
    assert first[3] == {block: "it communicates with other ranks" for block in (1, 3, 5)}
    assert sum(first[4][0::2]) == 0 and sum(first[4][1::2]) > 0
