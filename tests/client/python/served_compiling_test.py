"""Compiled models that train by plans of a service."""

import json
import os
import subprocess
import sys

import pytest
import stowage
import torch
from joint_models import mlp
from rpc_test import BIN, Stowaged
from stowage import _joint_version

pytestmark = [
    pytest.mark.skipif(not _joint_version.is_here(), reason="joint graphs need PyTorch 2.11"),
    pytest.mark.skipif(not (BIN / "stowaged").exists(), reason=f"there is no stowaged in {BIN}"),
]

STEP = """
import json, sys
import stowage, torch
from joint_models import attention
from stowage import rpc
torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[2]))
case = attention()
model = stowage.compile(case.model, "60%", backend="aot_eager", server=rpc.Server(sys.argv[1], patience_s=60))
model(*case.args).backward()
(planned,) = model.stowage.planned
print(json.dumps([planned.source, planned.profile.key(recompute_only=True), planned.plan.digest, planned.repeated_ops]))
"""


@pytest.fixture(scope="module")
def stowaged():
    with Stowaged() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_compiled_graphs():
    if _joint_version.is_here():
        torch._dynamo.reset()


def trained(server, seed, rank):
    """What a process prints of its plan: with weights, hashes and times of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "RANK": str(rank), "LOCAL_RANK": str(rank)}
    done = subprocess.run(
        [sys.executable, "-c", STEP, server.address, str(seed)], capture_output=True, text=True, env=environment, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_one_process_has_solved_the_ranks_of_another_job_find(stowaged):
    first = trained(stowaged, seed=1, rank=0)
    assert first[0] == "solved" and first[3] > 0
    for rank in (0, 1):
        again = trained(stowaged, seed=2 + rank, rank=rank)
        assert again == ["cache", *first[1:]]


def test_a_budget_that_nothing_fits_is_refused_beside_a_service(stowaged):
    case = mlp(2)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        stowage.compile(case.model, 1000, backend="aot_eager", server=stowaged.address)(*case.args)
    error = raised.value.inner_exception
    assert isinstance(error, stowage.Infeasible) and error.least_bytes > 1000


def test_while_the_service_is_away_a_model_trains_by_its_own_plan():
    case = mlp(3)
    model = stowage.compile(case.model, "70%", backend="aot_eager", server="unix:/nobody/is/here")
    with pytest.warns(UserWarning, match="planned here"):
        model(*case.args).backward()
    (planned,) = model.stowage.planned
    assert planned.source == "local" and planned.predicted_peak_bytes <= planned.budget_bytes and planned.repeated_ops > 0


def test_what_is_no_server_is_refused_at_once(stowaged):
    for server in ("", 7070):
        with pytest.raises(stowage.InvalidArgument, match="server|address"):
            stowage.compile(torch.nn.Linear(2, 2), "60%", server=server)
    with pytest.raises(stowage.InvalidArgument, match="server"):
        stowage.compile(torch.nn.Linear(2, 2), stowage.Partitioner("60%"), server=stowaged.address)
