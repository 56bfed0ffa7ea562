"""Plans from a cluster's service (stowaged), or from this process while it is away.

    service = stowage.rpc.PlanService("plans:7070")
    answer = service.plan(profile, "60%")

Needs grpcio, protobuf and googleapis-common-protos: ``pip install --no-build-isolation "./client/python[rpc]"``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

from stowage import _core
from stowage.errors import (
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    Infeasible,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    StowageError,
    Unavailable,
)
from stowage.planning import Budget, Plan, Profile

try:
    from stowage import _channel, _messages, _replicas
except ModuleNotFoundError as missing:
    if (missing.name or "").split(".")[:2] == ["stowage", "v1"]:
        raise FailedPrecondition(
            "stowage was installed without its part for services: that needs protoc and grpc_python_plugin, "
            "or grpcio-tools, where it is built"
        ) from None
    raise FailedPrecondition(
        f"stowage.rpc needs the module {missing.name}: pip install --no-build-isolation './client/python[rpc]'"
    ) from None

KNOWN_PATIENCE_S = 0.1  # where a plan is there already
MOST_ASKED = 4  # of one key, within ever less, before the service is to solve
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
LONGEST_JOB = 128


@dataclasses.dataclass(frozen=True)
class Server:
    """How to reach a service, and as whom.

    ``address``: "host:port" or "unix:/path"; "dns:///name:port" stands for all addresses of the name,
    "ipv4:HOST:PORT,HOST:PORT" for these: each key has its server among them, the same for all clients that know them by the
    same addresses, and goes to the next while that one is away. ``tls``: PEM files of the authorities that may have signed its
    certificate (``ca_file``, else gRPC's own list), of the client's own certificate and key where it asks for one, and the
    name that its certificate is for, where that is not the address's. ``token`` or ``token_file``: of the bearer, sent over TLS
    and unix sockets alone. Files are read for every plan and report.

    ``patience_s``: how long the service has to itself; then this process solves beside it, and who is first wins.
    ``timeout_s``: for all that is asked for one plan; a report has two seconds.

    Raises InvalidArgument for what contradicts itself.
    """

    address: str
    tls: bool = False
    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    server_name: Optional[str] = None
    token: Optional[str] = dataclasses.field(default=None, repr=False)
    token_file: Optional[str] = None
    patience_s: float = 1.0
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not self.address:
            raise InvalidArgument(f"address = {self.address!r}: must name a server")
        if (self.cert_file is None) != (self.key_file is None):
            raise InvalidArgument("cert_file and key_file: both or neither")
        if not self.tls and (self.ca_file or self.cert_file or self.server_name):
            raise InvalidArgument("tls = False: must be True for ca_file, cert_file and server_name to count")
        if self.token is not None and self.token_file is not None:
            raise InvalidArgument("token and token_file: at most one of them")
        has_token = self.token is not None or self.token_file is not None
        if has_token and not self.tls and not self.address.startswith(("unix:", "unix-abstract:")):
            raise InvalidArgument(
                f"address = {self.address!r}: must be reached over TLS, or be a unix socket, for a token to be sent: "
                "anybody on the way could read it"
            )
        for name in ("patience_s", "timeout_s"):
            if not 0 < getattr(self, name) < 1e9:
                raise InvalidArgument(f"{name} = {getattr(self, name)!r}: must be a positive number of seconds")


class Answer(NamedTuple):
    """A plan that the evaluator has accepted under the caller's own profile, and where it comes from.

    ``source``: "cache", "solved" or "shared" (solved for an identical request) of a service, or "local". ``key``: the service
    keeps it under; None of a local one. ``profile_wanted``: the service has not been sent costs that it would like to have;
    plan sends them.
    """

    plan: Plan
    source: str
    key: Optional[str] = None
    profile_wanted: bool = False


class PlanService:
    """Plans of a service. Thread-safe. Nothing is open between calls.

    ``job``: whose plans they are, the same for all ranks and restarts, at most 128 bytes; left out, what the launcher says.
    """

    def __init__(self, server: Union[str, Server], *, job: Optional[str] = None) -> None:
        self.server = Server(server) if isinstance(server, str) else server
        if not isinstance(self.server, Server):
            raise InvalidArgument(f"server = {server!r}: must be an address or a stowage.rpc.Server")
        self.job = (job or job_name())[:LONGEST_JOB]
        self._tenant: Optional[str] = None
        self._replicas = _replicas.Replicas(self.server.address)
        self._absence = _Absence()
        self._said = False

    def plan(
        self,
        profile: Profile,
        budget: Budget,
        *,
        solver: str = "",
        slots: int = 0,
        recompute_only: bool = False,
        deadline_s: Optional[float] = None,
        known: Optional[Plan] = None,
        traceparent: Optional[str] = None,
    ) -> Answer:
        """The service's plan; this process's own while the service is away, or slower than that.

        Asks by the key first, sends the profile if nothing that fits is cached or it is wanted, and accepts what the evaluator
        accepts under this profile. Waits at most ``patience_s`` longer than a solve here takes; a service that was away is
        left alone for a while. ``deadline_s``: seconds for a solve here. ``known``: a plan for this profile and budget that
        the caller has: nothing is solved here then, and the service has a tenth of a second, in which it does not send again
        a schedule that is this one's. ``traceparent``: of the span that the calls are below, as W3C writes it; left out, that
        of OpenTelemetry's current span, where the process uses it. Raises what Profile.plan raises;
        PermissionDenied and other errors of a service that answers; InternalError for an answer that breaks the contract.

        >>> stage = {"forward_time_ns": 10, "backward_time_ns": 20, "output_bytes": 100,
        ...          "output_gradient_bytes": 100, "saved_bytes": 300}
        >>> profile = Profile.of_chain([stage] * 8, input_bytes=100)
        >>> service = PlanService(Server("127.0.0.1:9", patience_s=0.1))  # where nobody listens
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # which say so, once
        ...     answer = service.plan(profile, "60%")
        >>> answer.source, answer.plan.peak_bytes <= answer.plan.budget_bytes
        ('local', True)
        """
        options = _messages.Options(solver, slots, recompute_only)
        arguments: Dict[str, Any] = options._asdict()
        budget_bytes = profile.budget_bytes(budget, solver=solver, recompute_only=recompute_only)
        trace = _traceparent(traceparent)
        question = _Question(lambda: self._ask(profile, budget_bytes, options, known, trace), deadline_s)
        if not self._absence.is_over():
            plan = profile.plan(budget_bytes, deadline_s=deadline_s, **arguments) if known is None else known
            return Answer(plan, "local")
        question.ask(self.server.patience_s if known is None else min(KNOWN_PATIENCE_S, self.server.patience_s))
        if not question.settled and known is not None:
            self._say(question.failure, "the plan of before is used")
            return Answer(known, "local")
        if not question.settled:
            try:
                plan = profile._solve(budget_bytes, question.stop, **arguments)
            except Cancelled:
                assert question.settled
            except Infeasible:
                if not question.settled:
                    raise
            else:
                if not question.settled:
                    self._say(question.failure, "planned here")
                    return Answer(plan, "local")
        return question.answer()

    def report(
        self,
        answer: Answer,
        *,
        steps: int,
        step_time_ns: int,
        peak_bytes: int,
        offloaded_bytes: int = 0,
        prefetched_bytes: int = 0,
        traceparent: Optional[str] = None,
    ) -> str:
        """What steps by a plan took: medians over ``steps`` of them, >= 1, and what the last one copied to the host and back.

        Returns "accepted", "outlier" or "absurd". ``traceparent``: as of plan.

        A job's later report replaces its earlier one. Raises FailedPrecondition for a plan that no service keeps.
        """
        if answer.key is None:
            raise FailedPrecondition("this plan was made here: no service keeps it")
        took = {
            "steps": steps,
            "measured_step_time_ns": step_time_ns,
            "measured_peak_bytes": peak_bytes,
            "offloaded_bytes": offloaded_bytes,
            "prefetched_bytes": prefetched_bytes,
        }
        request = _messages.report_request(answer.plan, answer.key, self.job, took)
        with _channel.Channel(self.server, self._replicas, _traceparent(traceparent)) as channel:
            return _messages.verdict(channel.call("ReportExecution", request, time.monotonic() + 2.0, key=answer.key))

    def _ask(
        self, profile: Profile, budget_bytes: int, options: _messages.Options, known: Optional[Plan], trace: str
    ) -> Answer:
        """What the service says, judged."""
        by = time.monotonic() + self.server.timeout_s
        reach_by = time.monotonic() + self.server.patience_s
        try:
            with _channel.Channel(self.server, self._replicas, trace) as channel:

                def call(method: str, request: Any, key: Optional[str] = None) -> Any:
                    return channel.call(method, request, by, reach_by, key)

                key = profile.key(**options._asdict(), tenant=self._tenant_of(call))
                answer = self._cached(call, key, profile, budget_bytes, options, known)
                if answer is None or answer.profile_wanted:  # the profile is here already
                    request = _messages.compute_plan_request(profile, budget_bytes, options, self.job)
                    reply = _messages.computed_plan(call("ComputePlan", request, key))
                    answer = _judged(reply, profile, budget_bytes, options)
        except Unavailable:
            self._absence.missed()
            raise
        self._absence.heard()
        return answer

    def _tenant_of(self, call: Callable[..., Any]) -> str:
        if self._tenant is None:
            self._tenant = str(call("GetCapabilities", _messages.capabilities_request()).tenant)
        return self._tenant

    def _cached(
        self,
        call: Callable[..., Any],
        key: str,
        profile: Profile,
        budget_bytes: int,
        options: _messages.Options,
        known: Optional[Plan],
    ) -> Optional[Answer]:
        """The plan of the cache, if it has one that holds under this profile."""
        within = budget_bytes
        for _ in range(MOST_ASKED):
            try:
                request = _messages.get_plan_request(key, within, self.job, known)
                reply = _messages.cached_plan(call("GetPlan", request, key), known)
            except NotFound:
                return None
            if reply.key != key:
                raise _messages.broken_contract("a plan under a key that was not asked for")
            try:
                return _judged(reply, profile, budget_bytes, options)
            except StowageError:
                # Somebody else's costs. What nobody has measured may be off by the workspaces: then within that much less.
                beyond = _beyond_prediction(reply, profile, options) if reply.profile_wanted else 0
                within = min(within - 1, budget_bytes - beyond)
                if beyond == 0 or within <= 0:
                    return None
        return None

    def _say(self, failure: Optional[StowageError], instead: str) -> None:
        if not self._said:
            self._said = True
            why = "it has not answered yet" if failure is None else str(failure)
            warnings.warn(f"stowage: no plan of the service at {self.server.address} ({why}): {instead}", stacklevel=3)


def _judged(reply: _messages.Reply, profile: Profile, budget_bytes: int, options: _messages.Options) -> Answer:
    """What was sent as a plan for this profile and budget, whatever it says of itself."""
    fields = dict(reply.fields, budget_bytes=budget_bytes)
    if reply.source == "cache":  # for the costs of another job: what was proven there is not proven here
        fields["bounds"] = dict(fields.get("bounds", {}), proven_optimal=False, least_budget_bytes=0)
    try:
        plan = profile.plan_from_dict(fields, recompute_only=options.recompute_only)
    except (FailedPrecondition, InvalidArgument) as error:
        raise _messages.refused(error) from None
    return Answer(plan, reply.source, reply.key or None, reply.profile_wanted)


def _beyond_prediction(reply: _messages.Reply, profile: Profile, options: _messages.Options) -> int:
    """How much more the schedule takes under this profile than was predicted; 0 if it is none for it."""
    try:
        own = _judged(reply, profile, 2**61, options).plan
    except StowageError:
        return 0
    return max(0, own.peak_bytes - int(reply.fields.get("prediction", {}).get("peak_bytes", 0)))


class _Question:
    """What is asked on a thread of its own, and what came of it. ``stop`` ends a solve when it is settled."""

    def __init__(self, ask: Callable[[], Answer], deadline_s: Optional[float]) -> None:
        self._ask = ask
        self._over = threading.Event()
        self._answer: Optional[Answer] = None
        self._error: Optional[BaseException] = None
        self.failure: Optional[StowageError] = None  # one for which this process plans itself
        self.settled = False
        self.stop = _core.Stop(deadline_s)

    def ask(self, seconds: float) -> None:
        """Starts, and waits so long at most."""
        threading.Thread(target=self._run, name="stowage-plan", daemon=True).start()
        self._over.wait(seconds)

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except (DeadlineExceeded, Infeasible, Unavailable) as error:  # that nothing fits, this process finds out itself
            self.failure = error
        except ResourceExhausted as error:
            if error.retry_delay_s is None:
                self._error = error
            else:
                self.failure = error  # it is busy, longer than it was asked
        except BaseException as error:
            self._error = error
        if self.failure is None:
            self.settled = True
            self.stop.request()
        self._over.set()

    def answer(self) -> Answer:
        """Of a question that is settled."""
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer


class _Absence:
    """Whether a service is asked: one that was away is left alone for a while, which grows."""

    def __init__(self) -> None:
        self._until = 0.0
        self._pause_s = 0.0

    def is_over(self) -> bool:
        return time.monotonic() >= self._until

    def heard(self) -> None:
        self._pause_s = 0.0

    def missed(self) -> None:
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) or FIRST_PAUSE_S
        self._until = time.monotonic() + self._pause_s


_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def _traceparent(given: Optional[str]) -> str:
    """What is given; else that of OpenTelemetry's current span; "" for none."""
    if given is None:
        return current_traceparent()
    if not _TRACEPARENT.fullmatch(given):
        raise InvalidArgument(f"traceparent = {given!r}: must be as W3C's Trace Context writes it, 00-...-...-01")
    return given


def current_traceparent() -> str:
    """Of the span that OpenTelemetry has in force in this thread, as W3C writes it; "" for none."""
    trace = sys.modules.get("opentelemetry.trace")  # whoever has a span has imported it
    if trace is None:
        return ""
    context = trace.get_current_span().get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}" if context.is_valid else ""


# Schedulers come before what they start; the second variable tells the elements of an array apart, which have one id.
_LAUNCHERS: Tuple[Tuple[str, str, Optional[str]], ...] = (
    ("slurm", "SLURM_JOB_ID", None),
    ("pbs", "PBS_JOBID", None),
    ("lsf", "LSB_JOBID", "LSB_JOBINDEX"),
    ("torchelastic", "TORCHELASTIC_RUN_ID", None),
    ("pmix", "PMIX_NAMESPACE", None),
    ("openmpi", "OMPI_MCA_ess_base_jobid", None),
)


def job_name() -> str:
    """What the environment calls this job, the same for all of its ranks and restarts: STOWAGE_JOB, or the launcher's id;
    else this process."""

    def said(name: Optional[str]) -> str:
        text = os.environ.get(name, "") if name else ""
        return "" if text == "none" else text  # as torchrun calls a run without an id

    if said("STOWAGE_JOB"):
        return said("STOWAGE_JOB")[:LONGEST_JOB]
    for kind, name, part in _LAUNCHERS:
        if said(name):
            return f"{kind}:{said(name)}{'.' + said(part) if said(part) else ''}"[:LONGEST_JOB]
    return f"{socket.gethostname()}:{os.getpid()}"[-LONGEST_JOB:]
