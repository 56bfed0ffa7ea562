"""A decoder and ResNet-50 on ranks of different budgets, over twenty steps: gradients are those without plans, all fit."""

import copy
import importlib.util
import warnings
import zlib

import ddp_test
import fsdp_test
import pytest
import stowage
import torch
import torch.distributed as dist
from processes import together
from stowage import _joint_version
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
STEPS = 20
DEADLINE_S = 800


def resnet50():
    import torchvision

    return torchvision.models.resnet50(num_classes=8)


def blocks_of_resnet50(model):
    return [block for layer in (model.layer1, model.layer2, model.layer3, model.layer4) for block in layer]


# With a batch, how fast it learns, and the most that a bucket of its gradients has in MiB.
NETWORKS = {
    "decoder": (*ddp_test.MODELS["decoder"], 0.05, 0.004),
    "resnet50": (resnet50, lambda step, rank: torch.randn(4, 3, 32, 32), 0.0001, 8.0),
}
needs_torchvision = pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="torchvision is not here")
EACH_NETWORK = [pytest.param(name, marks=[needs_torchvision] if name == "resnet50" else []) for name in NETWORKS]


def summed(results):
    """Those of a step, in few bytes."""
    return [torch.tensor([zlib.crc32(t.contiguous().view(-1).view(torch.uint8).numpy()) for t in results])]


def own_budget(rank, budget):
    return "100%" if rank == 1 else budget


def budgets_of(models):
    """All, halfway to the least, by what the first of the models was measured to take, and the least: workspaces of the
    machine's kernels are part of it."""
    yield "100%"
    profile = models[0].stowage.profile
    yield (profile.store_all_peak_bytes + profile.budget_bytes("least", recompute_only=True)) // 2
    yield "least"


def told(model, equal, peaks):
    plan = model.stowage.plan
    fits = len(peaks) > 0 and all(peak <= budget_bytes for peak, budget_bytes in peaks)
    return equal, fits, plan.digest, plan.budget_bytes, plan.recomputed_forwards


def by_ddp(rank, kind):
    warnings.simplefilter("ignore")
    make, batch, rate, bucket_mb = NETWORKS[kind]
    dist._DEFAULT_FIRST_BUCKET_BYTES = int(bucket_mb * (1 << 19))
    torch.manual_seed(3)
    plain = make()
    models = [copy.deepcopy(plain) for _ in range(3)]

    def trained(model):
        parallel = DistributedDataParallel(model, bucket_cap_mb=bucket_mb)
        return ddp_test.steps_of(parallel, model, batch, rank, STEPS, rate, summed)

    expected, buckets, _ = trained(plain)
    assert all(p.isfinite().all() for p in plain.parameters())
    found = []
    for budget, model in zip(budgets_of(models), models):
        got, planned_buckets, peaks = trained(stowage.wrap(model, own_budget(rank, budget)))
        found.append(told(model, ddp_test.same(got, expected) and buckets == planned_buckets, peaks))
    return found


def by_fsdp(rank, kind):
    warnings.simplefilter("ignore")
    make, batch, rate, _ = NETWORKS[kind]
    how = {"blocks": blocks_of_resnet50} if kind == "resnet50" else {}

    def trained(model):
        return fsdp_test.steps_of(model, batch, rank, STEPS, rate=rate, kept=summed)

    expected = trained(fsdp_test.sharded(make, **how))
    found, models = [], []
    for budget in budgets_of(models):
        model = stowage.wrap(fsdp_test.sharded(make, **how), own_budget(rank, budget))
        models.append(model)
        equal = ddp_test.same(trained(model), expected)
        found.append(told(model, equal, [(model.stowage.measured_peak_bytes, model.stowage.plan.budget_bytes)]))
    return found


def check(first, second):
    assert first == second
    equal, fits, _, budgets, recomputed = zip(*first)
    assert all(equal) and all(fits)
    assert budgets[0] > budgets[1] > budgets[2]
    assert recomputed[0] == 0 and 0 < recomputed[1] < recomputed[2]


@pytest.mark.parametrize("kind", EACH_NETWORK)
def test_distributed_data_parallel(kind):
    check(*together(2, by_ddp, kind, deadline_s=DEADLINE_S))


@pytest.mark.skipif(not _joint_version.is_here(), reason="fully_shard is tested on PyTorch from 2.11 on")
@pytest.mark.parametrize("kind", EACH_NETWORK)
def test_fully_shard(kind):
    check(*together(2, by_fsdp, kind, deadline_s=DEADLINE_S))
