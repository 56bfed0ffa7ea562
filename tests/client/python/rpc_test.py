"""Plans of a service: a stowaged of the build tree, and one between that alters what it answers."""

import concurrent.futures
import hashlib
import importlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import types
import warnings

import pytest
import stowage
from profiles import STAGE, chain

grpc = pytest.importorskip("grpc")
status_pb2 = pytest.importorskip("google.rpc.status_pb2")
error_details_pb2 = pytest.importorskip("google.rpc.error_details_pb2")
plan_pb2 = pytest.importorskip("stowage.v1.plan_pb2")
plan_service_pb2 = pytest.importorskip("stowage.v1.plan_service_pb2")
plan_service_pb2_grpc = pytest.importorskip("stowage.v1.plan_service_pb2_grpc")
rpc, _messages, _replicas = (importlib.import_module(f"stowage.{name}") for name in ("rpc", "_messages", "_replicas"))
if "STOWAGE_BIN" not in os.environ:
    pytest.skip("STOWAGE_BIN, the folder of stowaged, is not set", allow_module_level=True)
BIN = pathlib.Path(os.environ["STOWAGE_BIN"])
DATA = pathlib.Path(__file__).parents[2] / "data"


class Stowaged:
    def __init__(self, *flags):
        command = [BIN / "stowaged", "--store=memory", "--listen=127.0.0.1:0", "--metrics_listen=", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.address = re.match(r"listening on (127\.0\.0\.1:\d+|unix:[^,]+),", line).group(1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        assert self.process.wait(20) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def stowaged():
    with Stowaged() as server:
        yield server


def service_of(address, job=None, **how):
    """Which has all the time that a busy machine takes: by default this process would plan by itself after a second."""
    return rpc.PlanService(rpc.Server(address, **{"patience_s": 60.0, **how}), job=job)


@pytest.fixture(autouse=True)
def own_keys(request, monkeypatch):
    """Tests share a server: each has stages of a kind of its own, and with them keys of its own."""
    monkeypatch.setitem(STAGE, "op_kind", request.node.name)


def test_what_one_job_has_solved_another_one_finds(stowaged):
    first = service_of(stowaged.address, job="one").plan(chain(), "60%")
    again = service_of(stowaged.address, job="two").plan(chain(), "60%")
    assert (first.source, again.source) == ("solved", "cache")
    assert first.key == again.key == chain().key()
    assert first.plan.digest == again.plan.digest == chain().plan("60%").digest
    assert again.plan.peak_bytes <= again.plan.budget_bytes == chain().budget_bytes("60%")
    assert (again.plan.makespan_ns, again.plan.revision) == (first.plan.makespan_ns, 1)


def test_the_key_is_that_of_the_command(stowaged, tmp_path):
    """Which plans by the C++ library, and sends the profile of the same file."""
    fields = json.loads((DATA / "profile_chain.json").read_text())
    fields["chain"]["stages"][0]["op_kind"] = "of the command"
    (tmp_path / "p.json").write_text(json.dumps(fields))
    profile = stowage.Profile.load(tmp_path / "p.json")
    command = [BIN / "stowage", "plan", f"--profile={tmp_path / 'p.json'}", "--budget=100%", "--recompute_only"]
    subprocess.run([*command, f"--server={stowaged.address}"], check=True, capture_output=True)
    answer = service_of(stowaged.address).plan(profile, "100%", recompute_only=True)
    assert answer.source == "cache" and answer.key == profile.key(recompute_only=True) != profile.key()
    assert service_of(stowaged.address).plan(profile, "100%").source == "solved"


def test_graphs_and_options_go_to_the_service(stowaged):
    profile = stowage.Profile.load(DATA / "profile_graph.json")
    answer = service_of(stowaged.address).plan(profile, "90%")
    assert answer.source == "solved" and answer.plan.schedule() == profile.plan("90%").schedule()
    service = service_of(stowaged.address)
    chosen = service.plan(chain(), "60%", solver="revolve", slots=100)
    assert chosen.plan.solver == "revolve" and chosen.key == chain().key(solver="revolve", slots=100)
    with pytest.raises(stowage.StowageError, match="none"):
        service.plan(chain(), "60%", solver="none")


def test_a_service_says_what_is_wrong(stowaged):
    service = service_of(stowaged.address)
    with pytest.raises(stowage.Infeasible) as raised:
        service.plan(chain(), 400)
    assert raised.value.least_bytes == chain().budget_bytes("least") and raised.value.proven
    answer = service.plan(chain(), "60%")
    with pytest.raises(stowage.InvalidArgument) as raised:
        service.report(answer, steps=-1, step_time_ns=1, peak_bytes=1)
    assert raised.value.field == "steps" and raised.value.value == "-1" and raised.value.rule


def test_another_jobs_plan_that_does_not_hold_here_is_not_taken(stowaged):
    """The keys are equal, workspaces are not in them."""
    service = service_of(stowaged.address)
    budget = chain().store_all_peak_bytes
    assert service.plan(chain(), budget).plan.recomputed_forwards == 0
    greedy = chain(backward_overhead_bytes=300)
    assert greedy.key() == chain().key() and greedy.store_all_peak_bytes > budget
    answer = service.plan(greedy, budget)
    assert answer.source == "solved" and answer.plan.peak_bytes <= budget and answer.plan.recomputed_forwards > 0


def test_a_profile_that_is_wanted_is_sent(stowaged):
    """Three jobs say that steps take twice as long as predicted."""
    for number in range(3):
        service = service_of(stowaged.address, job=f"slow {number}")
        answer = service.plan(chain(), "60%")
        service.report(answer, steps=20, step_time_ns=2 * answer.plan.makespan_ns, peak_bytes=answer.plan.peak_bytes)
    with grpc.insecure_channel(stowaged.address) as channel:
        stub = plan_service_pb2_grpc.PlanServiceStub(channel)
        request = _messages.get_plan_request(chain().key(), chain().budget_bytes("60%"), "")
        assert stub.GetPlan(request).profile_wanted
        answer = service_of(stowaged.address, job="measures").plan(chain(), "60%")
        assert answer.key == chain().key() and not answer.profile_wanted
        until = time.monotonic() + 20
        while stub.GetPlan(request).profile_wanted:  # a service answers before it has learned
            assert time.monotonic() < until
            time.sleep(0.02)


def test_reports_are_taken(stowaged):
    service = service_of(stowaged.address, job="reporting")
    answer = service.plan(chain(), "60%")
    took = {"steps": 20, "step_time_ns": answer.plan.makespan_ns, "peak_bytes": answer.plan.peak_bytes}
    assert service.report(answer, **took) == "accepted"
    assert service.report(answer, **{**took, "peak_bytes": 2**61}) == "absurd"
    listed = subprocess.run(
        [BIN / "stowage", "cache", "get", f"--key={answer.key}", f"--server={stowaged.address}", "--format=json"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert '"reports": 1' in listed.stdout
    with pytest.raises(stowage.FailedPrecondition):
        service.report(rpc.Answer(chain().plan("60%"), "local"), **took)


def test_tenants_have_keys_of_their_own(tmp_path):
    (tmp_path / "tokens").write_text("secret-of-tenant-a a planner\nsecret-of-tenant-b b planner\n")
    (tmp_path / "token").write_text("secret-of-tenant-a\n")
    with Stowaged(f"--listen=unix:{tmp_path / 's'}", f"--token_file={tmp_path / 'tokens'}") as server:
        of_a = service_of(server.address, token_file=str(tmp_path / "token")).plan(chain(), "60%")
        of_b = service_of(server.address, token="secret-of-tenant-b").plan(chain(), "60%")
        assert (of_a.source, of_b.source) == ("solved", "solved")
        assert (of_a.key, of_b.key) == (chain().key(tenant="a"), chain().key(tenant="b"))
        assert service_of(server.address, token="secret-of-tenant-a").plan(chain(), "60%").source == "cache"
        for token in (None, "another-secret-token"):
            with pytest.raises(stowage.PermissionDenied, match="token"):
                service_of(server.address, token=token).plan(chain(), "60%")


def certificates(folder):
    """A CA, and of it a certificate for localhost and one for a client."""
    run = lambda *arguments: subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: E731
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text("subjectAltName=DNS:plans.example\n")
        run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{name}.ext", "-days", "2"]
        run("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return {name: str(folder / name) for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")}


def test_tls_with_certificates_of_both_sides(tmp_path):
    of = certificates(tmp_path)
    flags = [f"--tls_cert={of['server.pem']}", f"--tls_key={of['server.key']}", f"--tls_client_ca={of['ca.pem']}"]
    with Stowaged(*flags, "--allow_san=plans.example") as server:
        tls = {"tls": True, "ca_file": of["ca.pem"], "server_name": "plans.example"}
        mine = service_of(server.address, **tls, cert_file=of["client.pem"], key_file=of["client.key"])
        assert mine.plan(chain(), "60%").source == "solved"
        for other in (rpc.Server(server.address), rpc.Server(server.address, **tls)):
            with pytest.warns(UserWarning, match="planned here"):
                assert rpc.PlanService(other).plan(chain(), "60%").source == "local"


@pytest.mark.parametrize(
    "arguments",
    [
        {"address": ""},
        {"ca_file": "ca.pem"},
        {"tls": True, "cert_file": "client.pem"},
        {"token": "secret"},
        {"tls": True, "token": "secret", "token_file": "file"},
        {"patience_s": 0},
    ],
)
def test_what_contradicts_itself_is_refused(arguments):
    with pytest.raises(stowage.InvalidArgument) as raised:
        rpc.Server(**{"address": "plans:7070", **arguments})
    assert "secret" not in str(raised.value) and "secret" not in repr(rpc.Server("unix:/s", token="secret"))


def test_while_a_service_is_away_this_process_plans(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        service = rpc.PlanService("127.0.0.1:%d" % taken.getsockname()[1])
        with pytest.warns(UserWarning, match="is stowaged running at"):
            answer = service.plan(chain(), "60%")
        assert answer.source == "local" and answer.key is None and answer.plan.digest == chain().plan("60%").digest
        asked = []
        monkeypatch.setattr(service, "_ask", lambda *arguments: asked.append(arguments))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # said once
            assert service.plan(chain(), "60%").source == "local"
        assert not asked  # left alone for a while


def test_a_service_that_does_not_answer_is_not_waited_for():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        service = rpc.PlanService(rpc.Server("127.0.0.1:%d" % silent.getsockname()[1], patience_s=0.2, timeout_s=600))
        with pytest.warns(UserWarning, match="has not answered yet"):
            assert service.plan(chain(), "60%").source == "local"


class Between(plan_service_pb2_grpc.PlanServiceServicer):
    """Hands calls on to a stowaged, and its answers back altered."""

    def __init__(self, address, alter):
        self._channel = grpc.insecure_channel(address)
        self._stub = plan_service_pb2_grpc.PlanServiceStub(self._channel)
        self._alter = alter
        self.asked = []  # of GetPlan: requests, and what came with them

    def __enter__(self):
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        plan_service_pb2_grpc.add_PlanServiceServicer_to_server(self, self._server)
        self.address = "127.0.0.1:%d" % self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return self

    def __exit__(self, *error):
        self._server.stop(None).wait()
        self._channel.close()

    def GetCapabilities(self, request, context):
        return self._stub.GetCapabilities(request)

    def GetPlan(self, request, context):
        self.asked.append((request, dict(context.invocation_metadata())))
        return self._hand_on(self._stub.GetPlan, request, context)

    def ComputePlan(self, request, context):
        return self._hand_on(self._stub.ComputePlan, request, context)

    def _hand_on(self, call, request, context):
        try:
            response = call(request)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        self._alter(response, context)
        return response


def shorter(response, context):
    del response.plan.schedule.instructions[-1]


def other_digest(response, context):
    response.plan.digest = bytes(32)


def no_op(response, context):
    response.plan.schedule.instructions[0].op = 99


def none(response, context):
    response.plan.CopyFrom(plan_pb2.Plan())


def other_key(response, context):
    response.key.digest = bytes(32)


def no_key(response, context):
    response.key.digest = b"short"


def no_source(response, context):
    if isinstance(response, plan_service_pb2.ComputePlanResponse):
        response.source = 0


@pytest.mark.parametrize("alter", [shorter, other_digest, no_op, none, no_key, no_source])
def test_an_answer_that_is_no_plan_is_refused(stowaged, alter):
    with Between(stowaged.address, alter) as server:
        with pytest.raises(stowage.InternalError, match="server"):
            service_of(server.address).plan(chain(), "60%")


def test_a_plan_under_a_key_that_was_not_asked_for_is_refused(stowaged):
    service_of(stowaged.address).plan(chain(), "60%")
    with Between(stowaged.address, other_key) as server:
        with pytest.raises(stowage.InternalError, match="key"):
            service_of(server.address).plan(chain(), "60%")


def test_a_plan_above_the_budget_is_refused(stowaged):
    """One that holds, of a larger budget."""
    plain = service_of(stowaged.address).plan(chain(), "100%")

    def another(response, context):
        for instructions in [response.plan.schedule.instructions]:
            del instructions[:]
            for i in plain.plan.schedule():
                instructions.add(op="OP_" + i.op.upper().replace("-", "_"), stage=i.stage, stream="STREAM_COMPUTE")
        response.plan.digest = bytes.fromhex(plain.plan.digest)

    with Between(stowaged.address, another) as server:
        with pytest.raises(stowage.InternalError, match="exceeds the budget"):
            service_of(server.address).plan(chain(), "60%")


def as_it_is(response, context):
    pass


# As of client/rpc/rendezvous.h: tests/client/rpc/rendezvous_test.cc has the same.
SCORES = {
    ("resnet50", "10.0.0.1:7070"): 0xF6C8567438DF99BF,
    ("resnet50", "10.0.0.2:7070"): 0xEBAAEC915A8137BE,
    ("resnet50", "[::1]:7070"): 0xAE8F9DDCBF3511B7,
    ("decoder", "10.0.0.1:7070"): 0x1B5694B232D16875,
    ("decoder", "10.0.0.2:7070"): 0x91C20C349382737B,
    ("decoder", "[::1]:7070"): 0xB6369366BA856AFB,
}


@pytest.mark.parametrize("name, address", SCORES)
def test_keys_have_the_servers_that_they_have_for_other_clients(name, address):
    assert _replicas.score(hashlib.sha256(name.encode()).digest(), address) == SCORES[name, address]


def spread(*addresses):
    return "ipv4:" + ",".join(addresses)


def in_order(key, *addresses):
    return sorted(addresses, key=lambda address: -_replicas.score(bytes.fromhex(key), address))


def test_each_key_is_asked_for_at_its_own_server():
    with Stowaged() as one, Stowaged() as two, Stowaged() as three:
        addresses = [server.address for server in (one, two, three)]
        everyone = spread(*addresses)
        asked = set()
        for output_bytes in range(100, 200, 8):
            profile = chain(output_bytes=output_bytes)
            answer = service_of(everyone).plan(profile, "60%")
            assert answer.source == "solved"
            first = in_order(answer.key, *addresses)[0]
            asked.add(first)
            for address in addresses:
                listed = subprocess.run(
                    [BIN / "stowage", "cache", "ls", f"--key={answer.key}", f"--server={address}", "--format=json"],
                    check=True, capture_output=True, text=True)
                assert (answer.key in listed.stdout) == (address == first)
            # The command is a client of C++.
            command = [BIN / "stowage", "cache", "get", f"--key={answer.key}", f"--server={everyone}", "--format=json"]
            assert answer.key in subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert len(asked) > 1


def test_while_a_keys_server_is_away_the_next_one_answers():
    with Stowaged() as one, Stowaged() as two:
        servers = {server.address: server for server in (one, two)}
        service = service_of(spread(*servers))
        answer = service.plan(chain(), "60%")
        first, second = in_order(answer.key, *servers)
        servers[first].process.terminate()
        servers[first].process.wait(20)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            away = service.plan(chain(), "60%")
        assert away.source == "solved" and away.key == answer.key
        assert service.plan(chain(), "60%").source == "cache"
        rest = service._replicas
        assert rest.next(answer.key, []) == second and rest.next(answer.key, [second]) == first


def test_a_server_that_is_silent_leaves_the_next_one_time():
    with Stowaged() as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        addresses = [server.address, "127.0.0.1:%d" % silent.getsockname()[1]]
        first = addresses[1]
        made = (chain(output_bytes=size) for size in range(100, 900, 8))
        profile = next(one for one in made if in_order(one.key(), *addresses)[0] == first)
        service = rpc.PlanService(rpc.Server(spread(*addresses), patience_s=5))
        assert service.plan(profile, "60%").source == "solved"
        assert service._replicas.next(profile.key(), []) == server.address


def test_one_call_after_a_rest_finds_out_whether_a_server_is_back():
    now = [0.0]
    replicas = _replicas.Replicas("ipv4:10.0.0.1:7070,10.0.0.2:7070", now=lambda: now[0])
    key = hashlib.sha256(b"resnet50").hexdigest()
    first, second = in_order(key, "10.0.0.1:7070", "10.0.0.2:7070")
    assert replicas.next(key, []) == first and replicas.next(key, [first]) == second
    assert replicas.next(key, [first, second]) is None
    replicas.heard(first, away=True)
    assert replicas.next(key, []) == second
    now[0] += _replicas.REST_S
    assert replicas.next(key, []) == first  # this call
    assert replicas.next(key, []) == second  # and not the next
    replicas.heard(first, away=False)
    assert replicas.next(key, []) == first
    for address in (first, second):
        replicas.heard(address, away=True)
    assert replicas.next(key, []) == first  # where all rest


def test_a_name_stands_for_all_of_its_addresses(monkeypatch):
    found = [[(0, 0, 0, "", ("10.0.0.2", 7070)), (0, 0, 0, "", ("::1", 7070, 0, 0))]]

    def look_up(host, port, type):
        assert (host, port) == ("plans.example", "7070")
        if not found:
            raise socket.gaierror(-2, "Name or service not known")
        return found.pop()

    now = [0.0]
    monkeypatch.setattr(_replicas.socket, "getaddrinfo", look_up)
    replicas = _replicas.Replicas("dns:///plans.example:7070", now=lambda: now[0])
    asked = [replicas.next(None, [])]
    asked.append(replicas.next(None, asked))
    assert sorted(asked) == ["10.0.0.2:7070", "[::1]:7070"] and replicas.next(None, asked) is None
    now[0] += _replicas.REFRESH_S
    assert replicas.next(None, []) in asked  # while lookups fail
    with pytest.raises(stowage.Unavailable, match="cannot look up plans.example"):
        _replicas.Replicas("dns:plans.example:7070").next(None, [])
    for wrong in ("ipv4:10.0.0.1", "ipv4:10.0.0.1:7070,", "dns:///plans", "ipv6:::1:7070"):
        with pytest.raises(stowage.InvalidArgument, match="must end with a port"):
            _replicas.Replicas(wrong)


def test_a_schedule_that_is_held_is_not_sent_again(stowaged, monkeypatch):
    monkeypatch.setattr(rpc, "KNOWN_PATIENCE_S", 60.0)
    sizes = []
    with Between(stowaged.address, lambda response, context: sizes.append(response.ByteSize())) as server:
        service = service_of(server.address)
        solved = service.plan(chain(), "60%")
        known = service.plan(chain(), "60%", known=solved.plan)
        assert (known.source, known.plan.digest) == ("cache", solved.plan.digest)
        assert known.plan.to_dict()["schedule"] == solved.plan.to_dict()["schedule"]
        assert [request.held_digest.hex() for request, _ in server.asked] == ["", solved.plan.digest]
        service.plan(chain(), "60%")
        assert sizes[-2] < sizes[-1] - 2 * len(solved.plan.to_dict()["schedule"]["instructions"])


def unchanged(response, context):
    response.unchanged = True


def test_a_plan_that_nobody_holds_is_refused(stowaged):
    service_of(stowaged.address).plan(chain(), "60%")
    with Between(stowaged.address, unchanged) as server:
        with pytest.raises(stowage.InternalError, match="said to hold"):
            service_of(server.address).plan(chain(), "60%")


def test_calls_are_part_of_their_callers_trace(stowaged, monkeypatch):
    with Between(stowaged.address, as_it_is) as server:
        service = service_of(server.address)
        given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        service.plan(chain(), "60%", traceparent=given)
        service.plan(chain(), "60%")
        # As opentelemetry-api has it.
        context = types.SimpleNamespace(is_valid=True, trace_id=0xAB, span_id=0xCD, trace_flags=1)
        span = types.SimpleNamespace(get_span_context=lambda: context)
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", types.SimpleNamespace(get_current_span=lambda: span))
        service.plan(chain(), "60%")
        context.is_valid = False
        service.plan(chain(), "60%")
        seen = [metadata.get("traceparent") for _, metadata in server.asked]
        assert seen == [given, None, f"00-{'ab':>032}-{'cd':>016}-01", None]
        for wrong in ("", given.upper(), given[:-1], "ff" + given[2:], f"00-{'0' * 32}{given[35:]}"):
            with pytest.raises(stowage.InvalidArgument, match="traceparent"):
                service.plan(chain(), "60%", traceparent=wrong)


def test_that_nothing_fits_is_not_taken_on_trust(stowaged):
    def infeasible(response, context):
        request = _messages.compute_plan_request(chain(), 400, _messages.Options(), "")
        response.plan.CopyFrom(server._stub.ComputePlan(request).plan)
        assert response.plan.status == plan_pb2.PLAN_STATUS_PROVEN_INFEASIBLE

    with Between(stowaged.address, infeasible) as server:
        with pytest.warns(UserWarning, match="planned here"):
            assert service_of(server.address).plan(chain(), "60%").source == "local"


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_a_service_that_ends_is_asked_again(stowaged, code):
    refused = []

    def first_busy(response, context):
        if not refused:
            refused.append(response)
            context.abort(code, "draining")

    with Between(stowaged.address, first_busy) as server:
        assert service_of(server.address).plan(chain(), "60%").source in ("solved", "cache")
    assert refused


def sheds(retry_after_s, calls):
    """What refuses every plan, as a server that is busy does, or, without a time, a limit; and notes that."""

    def shed(response, context):
        calls.append(response)
        rich = status_pb2.Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], message="8 calls are waiting")
        if retry_after_s is not None:
            delay = error_details_pb2.RetryInfo()
            delay.retry_delay.FromMilliseconds(int(1000 * retry_after_s))
            rich.details.add().Pack(delay)
        context.set_trailing_metadata((("grpc-status-details-bin", rich.SerializeToString()),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, rich.message)

    return shed


@pytest.mark.parametrize("retry_after_s, timeout_s", [(0.001, 60.0), (60, 5.0)])
def test_while_a_service_is_busy_this_process_plans(stowaged, retry_after_s, timeout_s):
    calls = []
    with Between(stowaged.address, sheds(retry_after_s, calls)) as server:
        with pytest.warns(UserWarning, match="8 calls are waiting.*planned here"):
            answer = service_of(server.address, timeout_s=timeout_s).plan(chain(), "60%")
        assert answer.source == "local" and answer.plan.digest == chain().plan("60%").digest
        assert len(calls) == (4 if retry_after_s < 1 else 1)


def test_a_limit_of_the_service_is_an_error(stowaged):
    with Between(stowaged.address, sheds(None, [])) as server:
        with pytest.raises(stowage.ResourceExhausted, match="8 calls are waiting") as raised:
            service_of(server.address).plan(chain(), "60%")
    assert raised.value.retry_delay_s is None


def test_a_slow_service_is_overtaken_and_still_learns_the_plan(stowaged):
    asked, overtaken = threading.Event(), threading.Event()

    def slow(response, context):
        asked.set()  # and stowaged has the plan
        overtaken.wait(60)

    with Between(stowaged.address, slow) as server:
        with pytest.warns(UserWarning, match="has not answered yet"):
            answer = rpc.PlanService(rpc.Server(server.address, patience_s=0.1)).plan(chain(), "60%")
        assert answer.source == "local"
        assert asked.wait(60)
        overtaken.set()
    assert service_of(stowaged.address).plan(chain(), "60%").source == "cache"


def test_a_long_solve_here_ends_when_the_service_answers(stowaged):
    profile = stowage.Profile.load(DATA / "chain_gpt_339.json")
    arguments = {"solver": "non_persistent", "slots": 500}  # seconds of this process
    service_of(stowaged.address).plan(profile, "70%", **arguments)
    with Between(stowaged.address, as_it_is) as server:
        answer = rpc.PlanService(rpc.Server(server.address, patience_s=0.001)).plan(profile, "70%", **arguments)
    assert answer.source == "cache"


def test_children_that_were_forked_are_told(stowaged):
    program = f"""
import os, stowage
from stowage import rpc
profile = stowage.Profile.of_chain([{STAGE!r}] * 8)
service = rpc.PlanService(rpc.Server({stowaged.address!r}, patience_s=60.0))
service.plan(profile, "60%")
child = os.fork()
if child == 0:
    try:
        service.plan(profile, "60%")
    except stowage.FailedPrecondition as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), service.plan(profile, "60%").source)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.stdout.split() == ["7", "cache"], ran.stderr


def test_what_the_page_shows(stowaged, capsys):
    page = pathlib.Path(__file__).parents[3] / "client/python/README.md"
    block = page.read_text().split("```python\n")[-1].split("```")[0]
    assert "plans:7070" in block
    exec(block.replace("plans:7070", stowaged.address), {"profile": chain()})
    assert capsys.readouterr().out.startswith("solved " + chain().key())


def test_a_job_is_called_what_its_launcher_says(monkeypatch):
    for name in ("STOWAGE_JOB", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    assert rpc.job_name().endswith(f":{os.getpid()}")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert rpc.job_name().endswith(f":{os.getpid()}")
    monkeypatch.setenv("LSB_JOBID", "12")
    monkeypatch.setenv("LSB_JOBINDEX", "3")
    assert rpc.job_name() == "lsf:12.3"
    monkeypatch.setenv("STOWAGE_JOB", "x" * 200)
    assert rpc.job_name() == "x" * 128


def test_without_torch_a_service_is_asked_all_the_same(stowaged):
    program = f"""
import sys
sys.modules["torch"] = None
import stowage
from stowage import rpc
profile = stowage.Profile.of_chain([{STAGE!r}] * 8, input_bytes=100)
service = rpc.PlanService(rpc.Server({stowaged.address!r}, patience_s=60.0))
answers = [service.plan(profile, "60%") for _ in range(2)]
for answer in answers:
    print(answer.source, answer.key, answer.plan.digest)
plan = answers[1].plan
print(service.report(answers[1], steps=20, step_time_ns=plan.makespan_ns, peak_bytes=plan.peak_bytes))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    same = f"{chain().key()} {chain().plan('60%').digest}"
    assert ran.stdout.splitlines() == [f"solved {same}", f"cache {same}", "accepted"], ran.stderr


def test_without_grpc_the_rest_works_and_this_says_what_is_missing():
    program = """
import sys
sys.modules["grpc"] = None
import stowage
try:
    import stowage.rpc
except stowage.FailedPrecondition as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    said = "stowage.rpc needs the module grpc: pip install --no-build-isolation './client/python[rpc]'"
    assert ran.stdout.strip() == said, ran.stderr
