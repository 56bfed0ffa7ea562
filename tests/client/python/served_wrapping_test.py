"""Models trained by plans of a service."""

import copy
import queue
import socket
import subprocess
import sys
import threading
import time
import types

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, step_on
from networks import Mlp
from rpc_test import BIN, Stowaged
from stowage import _chain, rpc
from torch import nn

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def stowaged():
    with Stowaged() as server:
        yield server


def patient(server):
    """With all the time that a busy machine takes: by default this process would plan by itself after a second."""
    return rpc.Server(server.address, patience_s=60.0)


def listed(server, key):
    command = [BIN / "stowage", "cache", "get", f"--key={key}", f"--server={server.address}", "--format=json"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_training_by_a_services_plan(stowaged, monkeypatch):
    monkeypatch.setattr(_chain, "REPORTED_STEPS", 3)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    model = stowage.wrap(copy.deepcopy(plain), "60%", server=patient(stowaged))
    step = step_on(torch.randn(32, 64))
    for number in range(5):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    training = model.stowage
    assert training.source == "solved" and training.measured_peak_bytes <= training.plan.peak_bytes
    assert sum(training.recomputed) == training.plan.recomputed_forwards > 0
    key = training.profile.key(recompute_only=True)
    until = time.monotonic() + 20
    while '"reports": 1' not in listed(stowaged, key) and time.monotonic() < until:
        time.sleep(0.05)
    assert '"reports": 1' in listed(stowaged, key) and not training.notes


def test_a_report_is_of_the_span_that_the_plan_was_asked_in(stowaged, monkeypatch):
    context = types.SimpleNamespace(is_valid=True, trace_id=0xAB, span_id=0xCD, trace_flags=1)
    none = types.SimpleNamespace(is_valid=False)
    mine = threading.get_ident()  # as opentelemetry-api, which has a current span for each thread
    span = types.SimpleNamespace(get_span_context=lambda: context if threading.get_ident() == mine else none)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", types.SimpleNamespace(get_current_span=lambda: span))
    monkeypatch.setattr(_chain, "REPORTED_STEPS", 1)
    sent = queue.Queue()
    report = rpc.PlanService.report

    def note(service, answer, **how):
        verdict = report(service, answer, **how)
        sent.put((threading.get_ident(), how["traceparent"]))
        return verdict

    monkeypatch.setattr(rpc.PlanService, "report", note)
    model = stowage.wrap(nn.Sequential(*[Mlp(64) for _ in range(3)]), "80%", server=patient(stowaged))
    step = step_on(torch.randn(16, 64))
    for _ in range(2):
        step(model)
    sender, traceparent = sent.get(timeout=60)
    assert sender != mine and traceparent == f"00-{'ab':>032}-{'cd':>016}-01"


def test_the_next_job_of_the_same_model_has_it_from_the_cache(stowaged):
    """A process of its own: nothing that is measured anew is in the key."""
    program = f"""
import stowage.rpc, torch
from networks import Mlp
torch.set_num_threads(1)
server = stowage.rpc.Server({stowaged.address!r}, patience_s=60.0)
model = stowage.wrap(torch.nn.Sequential(*[Mlp(64) for _ in range(6)]), "60%", server=server)
for _ in range(2):
    model(torch.randn(32, 64)).square().mean().backward()
print(model.stowage.source, model.stowage.profile.key(), model.stowage.plan.budget_bytes)
"""
    said = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250).stdout.split()
        for _ in range(2)
    ]
    assert [words[0] for words in said] == ["solved", "cache"] and said[0][1:] == said[1][1:]


def test_a_services_plan_may_copy_to_the_host(stowaged):
    plain = nn.Sequential(*[Mlp(64) for _ in range(5)])
    model = stowage.wrap(copy.deepcopy(plain), "least", host_budget="1GiB", server=patient(stowaged))
    step = step_on(torch.randn(32, 64))
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    training = model.stowage
    assert training.source == "solved" and training.measured_peak_bytes <= training.plan.peak_bytes
    assert any(instruction.op == "offload-wait" for instruction in training.plan.schedule())


def test_while_the_service_is_away_a_model_trains_by_its_own_plan():
    model = stowage.wrap(nn.Sequential(*[Mlp(64) for _ in range(6)]), "60%", server="unix:/nobody/is/here")
    step = step_on(torch.randn(32, 64))
    outcome(model, step)
    with pytest.warns(UserWarning, match="planned here"):
        outcome(model, step)
    assert model.stowage.source == "local" and model.stowage.plan.recomputed_forwards > 0


def test_what_is_no_server_is_refused_at_once():
    for server in ("", 7070):
        with pytest.raises(stowage.InvalidArgument, match="server"):
            stowage.wrap(nn.Sequential(Mlp(8), Mlp(8)), "60%", server=server)


FIRST_STEP = """
import sys, copy, stowage, stowage.rpc, torch
from comparing import assert_equal, outcome, step_on
from networks import Mlp
torch.set_num_threads(1)
torch.manual_seed(0)
stowage.rpc.KNOWN_PATIENCE_S = 60.0  # the service's answer, however busy the machine is
plain = torch.nn.Sequential(*[Mlp(64) for _ in range(6)])
server = stowage.rpc.Server(sys.argv[1], patience_s=60.0)
model = stowage.wrap(copy.deepcopy(plain), "60%", server=server, cache=sys.argv[2])
for number in range(int(sys.argv[3])):
    assert_equal(outcome(model, step_on(torch.ones(32, 64)), number), outcome(plain, step_on(torch.ones(32, 64)), number))
training = model.stowage
print(training.source, training.is_measured_here, training.plan.digest)
assert sum(training.recomputed) == training.plan.recomputed_forwards > 0
assert training.measured_peak_bytes <= training.plan.peak_bytes and not training.notes
"""


def test_a_second_process_trains_by_the_plan_from_its_first_step_on(stowaged, tmp_path):
    said = []
    for steps in (2, 1):
        command = [sys.executable, "-c", FIRST_STEP, stowaged.address, tmp_path, str(steps)]
        said.append(subprocess.run(command, capture_output=True, text=True, timeout=250, check=True).stdout.split())
    assert said[0][1] == "True" and said[1][:2] == ["cache", "False"]
    assert said[0][2] == said[1][2]  # the schedule


def test_where_the_service_does_not_answer_the_first_step_takes_the_recorded_plan(stowaged, tmp_path):
    """It would wait for an hour otherwise, and then solve."""
    plain, step = nn.Sequential(*[Mlp(64) for _ in range(6)]), step_on(torch.randn(32, 64))
    first = stowage.wrap(copy.deepcopy(plain), "60%", server=patient(stowaged), cache=tmp_path)
    for number in range(2):
        assert_equal(outcome(first, step, number), outcome(plain, step, number))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = rpc.Server(f"127.0.0.1:{silent.getsockname()[1]}", patience_s=3600.0, timeout_s=3600.0)
        model = stowage.wrap(copy.deepcopy(plain), "60%", server=server, cache=tmp_path)
        with pytest.warns(UserWarning, match="has not answered yet.: the plan of before is used"):
            assert_equal(outcome(model, step), outcome(plain, step))
    training = model.stowage
    assert training.source == "local" and not training.is_measured_here
    assert training.plan.digest == first.stowage.plan.digest
    assert sum(training.recomputed) == training.plan.recomputed_forwards > 0
    assert training.measured_peak_bytes <= training.plan.peak_bytes


class Counting(nn.Module):
    forwards = 0

    def __init__(self):
        super().__init__()
        self.mlp = Mlp(64)

    def forward(self, x):
        Counting.forwards += 1
        return self.mlp(x)


def test_the_first_step_by_a_cached_plan_runs_no_block_more_often_than_the_plan(stowaged, tmp_path, monkeypatch):
    """So that it takes what any step takes, and one answer of the service."""
    monkeypatch.setattr(rpc, "KNOWN_PATIENCE_S", 60.0)  # the service's answer, however busy the machine is
    server = patient(stowaged)
    torch.manual_seed(0)
    plain, step = nn.Sequential(*[Counting() for _ in range(6)]), step_on(torch.randn(32, 64))
    for number in range(2):
        model = stowage.wrap(copy.deepcopy(plain), "60%", server=server, cache=tmp_path)
        for _ in range(2 - number):
            Counting.forwards = 0
            outcome(model, step)
    assert model.stowage.source == "cache"
    assert Counting.forwards == 6 + model.stowage.plan.recomputed_forwards
