"""Whole models as profiles, op by op, traced and not run."""

import doctest
import logging
import os
import pathlib
import subprocess
import sys

import pytest
import stowage
import torch
from joint_models import SMALL, Case, gpt2, mlp, resnet50
from stowage import _joint_version

needs_joint_graphs = pytest.mark.skipif(not _joint_version.is_here(), reason="joint graphs need PyTorch 2.11")


def exported(case: Case, **options) -> stowage.Profile:
    return stowage.export(case.model, *case.args, **case.kwargs, **options)


@pytest.mark.skipif(_joint_version.is_here(), reason="of an older PyTorch")
@pytest.mark.parametrize("name", ["export", "Roofline"])
def test_an_older_pytorch_is_told_the_least_version(name):
    with pytest.raises(stowage.FailedPrecondition, match=f"stowage.{name} needs PyTorch 2.11 or later, this is"):
        getattr(stowage, name)


@needs_joint_graphs
def test_the_examples_hold():
    from stowage import _op_costs, exporting

    assert doctest.testmod(exporting).failed == doctest.testmod(_op_costs).failed == 0


@needs_joint_graphs
def test_bytes_are_those_of_the_tensors():
    torch.manual_seed(0)
    a, b = torch.nn.Linear(8, 16, bias=False), torch.nn.Linear(16, 4, bias=False)
    nodes = stowage.export(lambda x: b(torch.tanh(a(x))).sum(), torch.zeros(32, 8)).to_dict()["dag"]["nodes"]
    made = {node["name"]: node["output_bytes"] for node in nodes}
    assert made["mm"] == made["tanh"] == 32 * 16 * 4
    assert made["mm_1"] == 32 * 4 * 4
    assert {"view", "t", "primals_1"}.isdisjoint(made)  # views and what is there before the step have no bytes
    results = sorted(node["output_bytes"] for node in nodes if node["result"])
    assert results == sorted([4, 4, 8 * 16 * 4, 16 * 4 * 4])  # the loss and its gradient, the gradients of two weights
    assert sum(node["must_keep"] for node in nodes) >= 4


@needs_joint_graphs
@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_plans_and_frontiers_are_what_the_evaluator_accepts(make):
    torch.manual_seed(0)
    profile = exported(make())
    assert profile.kind == "compute DAG" and profile.plan("100%").makespan_ns == profile.ideal_time_ns
    frontier = profile.frontier(recompute_only=True)
    assert len(frontier.points) > 3
    for point in frontier.points[:: max(1, len(frontier.points) // 4)]:
        plan = frontier.plan_at(point.peak_bytes)
        again = profile.plan_of(plan.schedule())
        assert (again.peak_bytes, again.makespan_ns) == (plan.peak_bytes, plan.makespan_ns) == point
    least = frontier.points[0]
    assert least.peak_bytes < 0.8 * profile.store_all_peak_bytes and least.makespan_ns > profile.ideal_time_ns


@needs_joint_graphs
@pytest.mark.parametrize("make", [lambda: gpt2(4, 256, 2000), lambda: resnet50(8, 128)], ids=["gpt2", "resnet50"])
def test_a_whole_model_is_planned_op_by_op_without_memory(make):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        profile = exported(make())
    assert len(profile.labels) > 350
    plan = profile.plan("60%", deadline_s=60)
    assert plan.peak_bytes <= plan.budget_bytes
    assert profile.plan_of(plan.schedule()).peak_bytes == plan.peak_bytes
    assert plan.makespan_ns < 1.3 * profile.ideal_time_ns


@needs_joint_graphs
def test_the_profile_file_is_planned_by_the_command(tmp_path):
    command = pathlib.Path(os.environ.get("STOWAGE_BIN", ""), "stowage")
    if not command.is_file():
        pytest.skip("there is no command in STOWAGE_BIN")
    profile = exported(mlp())
    file = tmp_path / "profile.json"
    file.write_text(profile.to_json())
    printed = subprocess.run(
        [command, "plan", f"--profile={file}", "--budget=70%", "--format=json"], capture_output=True, text=True
    )
    assert printed.returncode == 0, printed.stderr
    plan = profile.plan_from_json(printed.stdout)
    assert plan.peak_bytes <= profile.budget_bytes("70%") and plan.digest == profile.plan("70%").digest


KEY = "import stowage, torch, exporting_test as t; torch.manual_seed(1); print(t.exported(t.SMALL['attention']()).key())"


@needs_joint_graphs
def test_the_key_is_the_same_in_another_process():
    keys = {exported(SMALL["attention"]()).key()}
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        keys.add(
            subprocess.run(
                [sys.executable, "-c", KEY], capture_output=True, text=True, env=environment, check=True
            ).stdout.strip()
        )
    assert len(keys) == 1
    assert exported(mlp(3)).key() not in keys


@needs_joint_graphs
def test_times_are_estimated_from_the_figures_given():
    case = mlp(1)
    slow, fast = (exported(case, times=stowage.Roofline(speed, speed, 0)) for speed in (1e9, 1e12))
    assert slow.ideal_time_ns == pytest.approx(1000 * fast.ideal_time_ns, rel=1e-3)
    assert slow.key() == fast.key() and slow.to_dict()["cost_source"] == "COST_SOURCE_MODELLED"
    products = 3 * 2 * 2 * 256 * 64 * 256 - 2 * 256 * 64 * 256  # three of each of two weights, the first has no input's
    assert exported(case, times=stowage.Roofline(1e9, 1e30, 0)).ideal_time_ns == pytest.approx(products, abs=100)


@needs_joint_graphs
def test_measured_ops_have_times_and_workspaces_and_draw_nothing():
    torch.manual_seed(0)
    case = SMALL["convolutions"]()
    state = torch.get_rng_state()
    profile = exported(case, times="measured")
    assert torch.equal(state, torch.get_rng_state())
    fields = profile.to_dict()
    assert fields["cost_source"] == "COST_SOURCE_MEASURED"
    ops = [node for node in fields["dag"]["nodes"] if node["op_kind"] == "aten.convolution.default"]
    assert ops and all(node["time_ns"] > 0 for node in ops)
    assert profile.key() == exported(case).key()


WORKSPACES = """
import sys, torch, stowage, exporting_test as t
torch.manual_seed(0)
if sys.argv[1] == "wrapped":
    stowage.wrap(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), "100%")
nodes = t.exported(t.SMALL["convolutions"](), times="measured").to_dict()["dag"]["nodes"]
print([node["workspace_bytes"] for node in nodes])
"""


@needs_joint_graphs
def test_workspaces_are_the_same_where_wrap_counts_bytes():
    """By its allocator: the profiler does not see what that one hands out."""
    printed = [
        subprocess.run([sys.executable, "-c", WORKSPACES, how], capture_output=True, text=True, check=True).stdout.split("\n")[
            -2
        ]
        for how in ("plain", "wrapped")
    ]
    assert printed[0] == printed[1] and sum(map(int, printed[0].strip("[]").split(","))) > 0


@needs_joint_graphs
def test_dropout_is_made_again_from_its_mask():
    nodes = exported(SMALL["attention"]()).to_dict()["dag"]["nodes"]
    masks = [node for node in nodes if node["op_kind"] == "aten.native_dropout.default[1]"]
    outputs = [node for node in nodes if node["op_kind"] == "aten.native_dropout.default"]
    assert len(masks) == len(outputs) == 6
    assert all(mask["must_keep"] for mask in masks)
    assert all(out["random"] and not out["must_keep"] and mask["id"] in out["inputs"] for out, mask in zip(outputs, masks))


LOGGER = logging.getLogger("of a model")


class Logging(torch.nn.Module):
    def forward(self, x):
        LOGGER.warning("said in each step")
        return (x * x).sum()


@needs_joint_graphs
def test_a_line_that_a_model_logs_is_of_no_account_and_nothing_is_logged_about_it(caplog):
    assert stowage.export(Logging(), torch.ones(3, requires_grad=True)).kind == "compute DAG"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


class FlowOfData(torch.nn.Module):
    def forward(self, x):
        return x.sum() if x.sum() > 0 else x.mean()


@needs_joint_graphs
@pytest.mark.parametrize(
    ("module", "sample", "message"),
    [
        (FlowOfData(), torch.ones(3, requires_grad=True), "does not trace as one graph"),
        (torch.nn.ReLU(), torch.ones(3), "has a gradient"),
        (torch.nn.Linear(3, 3), torch.ones(4), "does not trace as one graph"),
    ],
)
def test_what_has_no_joint_graph_is_refused(module, sample, message):
    with pytest.raises(stowage.InvalidArgument, match=message):
        stowage.export(module, sample)


@needs_joint_graphs
@pytest.mark.parametrize("times", ["fast", 3, None])
def test_times_that_are_none_are_refused(times):
    if times is None:
        assert exported(mlp(1), times=None).ideal_time_ns > 0
        return
    with pytest.raises(stowage.InvalidArgument, match="times"):
        exported(mlp(1), times=times)
