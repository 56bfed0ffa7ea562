"""Values of this package as messages of the contract (stowage.v1), and back: here alone.

Profiles and plans have the names of the contract's JSON mapping on both sides.
"""

from __future__ import annotations

import base64
from typing import Any, Dict, NamedTuple, Optional, Tuple

import grpc
from google.protobuf.json_format import MessageToDict
from google.rpc import error_details_pb2, status_pb2

from stowage import _core, errors
from stowage.errors import InternalError, StowageError
from stowage.planning import Plan, Profile
from stowage.v1 import plan_service_pb2 as service
from stowage.v1 import profile_pb2

DIGEST_BYTES = 32
LONGEST_RETRY_DELAY_S = 86400.0  # what a broken server asks for is no wait


class Options(NamedTuple):
    """What decides which plan comes out, beside profile and budget. All of it is in the key."""

    solver: str = ""
    slots: int = 0
    recompute_only: bool = False


class Reply(NamedTuple):
    """What a service sent, unjudged: a plan as the dictionary that Profile.plan_from_dict takes, and its key's digits."""

    fields: Dict[str, Any]
    key: str
    source: str
    profile_wanted: bool


def _key(digits: str) -> service.PlanKey:
    return service.PlanKey(encoding_version=_core.KEY_ENCODING_VERSION, digest=bytes.fromhex(digits))


def _digits(key: service.PlanKey) -> str:
    if key.encoding_version < 1 or len(key.digest) != DIGEST_BYTES:
        raise broken_contract("a key that is none")
    return key.digest.hex() if key.encoding_version == _core.KEY_ENCODING_VERSION else ""


def capabilities_request() -> service.GetCapabilitiesRequest:
    return service.GetCapabilitiesRequest()


def get_plan_request(key: str, budget_bytes: int, job: str, held: Optional[Plan] = None) -> service.GetPlanRequest:
    """``held``: a plan that the caller has, whose schedule is not to be sent again."""
    digest = b"" if held is None else bytes.fromhex(held.digest)
    return service.GetPlanRequest(keys=[_key(key)], budget={"bytes": budget_bytes}, job=job, held_digest=digest)


def compute_plan_request(profile: Profile, budget_bytes: int, options: Options, job: str) -> service.ComputePlanRequest:
    return service.ComputePlanRequest(
        profile=profile_pb2.Profile(**profile.to_dict()),
        budget={"bytes": budget_bytes},
        options=service.PlanOptions(**options._asdict()),
        job=job,
    )


def report_request(plan: Plan, key: str, job: str, took: Dict[str, int]) -> service.ReportExecutionRequest:
    return service.ReportExecutionRequest(
        key=_key(key),
        plan_digest=bytes.fromhex(plan.digest),
        revision=plan.revision,
        budget_bytes=plan.budget_bytes,
        job=job,
        **took,
    )


_SOURCES = {
    service.PLAN_SOURCE_CACHE: "cache",
    service.PLAN_SOURCE_SOLVED: "solved",
    service.PLAN_SOURCE_SHARED: "shared",
}


def cached_plan(response: service.GetPlanResponse, held: Optional[Plan] = None) -> Reply:
    """``held``: the plan that was asked with."""
    fields = _fields(response.plan)
    if response.unchanged:
        if held is None:
            raise broken_contract("a plan that the caller is said to hold")
        fields["schedule"] = held.to_dict()["schedule"]
    return Reply(fields, _digits(response.key), "cache", response.profile_wanted)


def computed_plan(response: service.ComputePlanResponse) -> Reply:
    if response.source not in _SOURCES:
        raise broken_contract(f"source = {response.source}")
    return Reply(_fields(response.plan), _digits(response.key), _SOURCES[response.source], False)


def _fields(plan: Any) -> Dict[str, Any]:
    fields: Dict[str, Any] = MessageToDict(plan, preserving_proto_field_name=True)
    fields.setdefault("digest", base64.b64encode(b"").decode())
    return fields


_VERDICTS = {
    service.REPORT_VERDICT_ACCEPTED: "accepted",
    service.REPORT_VERDICT_OUTLIER: "outlier",
    service.REPORT_VERDICT_ABSURD: "absurd",
}


def verdict(response: service.ReportExecutionResponse) -> str:
    if response.verdict not in _VERDICTS:
        raise broken_contract(f"verdict = {response.verdict}")
    return _VERDICTS[response.verdict]


def broken_contract(what: str) -> InternalError:
    return InternalError(f"the server's answer breaks the contract: {what}")


class Failure(NamedTuple):
    """A call's error, and what the server calls it."""

    error: StowageError
    reason: str = ""  # what the server calls it; "": no server of ours has answered


def failure_of(error: grpc.RpcError, hint: str) -> Failure:
    """The error of a call, with the details that came with it (google.rpc.Status)."""
    details = _details(error)
    code, words = error.code().name, error.details()
    if code == "CANCELLED":  # not by the caller: gRPC's answer to a call that comes while a server shuts down
        code, words = "UNAVAILABLE", f"the server has ended the call: {words}"
    made = errors.of_status(code, f"{words}{hint}", _violation(details))
    if isinstance(made, errors.ResourceExhausted):
        made.retry_delay_s = _retry_delay_s(details)
    return Failure(made, _reason(details))


def _details(error: grpc.RpcError) -> status_pb2.Status:
    rich = status_pb2.Status()
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin":
            try:
                rich.ParseFromString(value)
            except Exception:  # protobuf's own, which has had several names; an error without details
                return status_pb2.Status()
    return rich


def _violation(rich: status_pb2.Status) -> Optional[Tuple[str, str, str]]:
    bad, info = error_details_pb2.BadRequest(), error_details_pb2.ErrorInfo()
    rule = ""
    for detail in rich.details:
        if detail.Unpack(info) and info.domain == "stowage":
            rule = info.metadata.get("rule", "")
    for detail in rich.details:
        if detail.Unpack(bad) and bad.field_violations:
            entry = bad.field_violations[0]
            value = entry.description[: -len(rule) - 2] if rule and entry.description.endswith(f": {rule}") else ""
            return entry.field, value, rule or entry.description
    return None


def _reason(rich: status_pb2.Status) -> str:
    info = error_details_pb2.ErrorInfo()
    for detail in rich.details:
        if detail.Unpack(info) and info.domain == "stowage":
            return str(info.reason)
    return ""


def _retry_delay_s(rich: status_pb2.Status) -> Optional[float]:
    info = error_details_pb2.RetryInfo()
    for detail in rich.details:
        if detail.Unpack(info):
            delay_s = float(info.retry_delay.seconds) + info.retry_delay.nanos * 1e-9
            return delay_s if 0 <= delay_s <= LONGEST_RETRY_DELAY_S else None
    return None


def refused(error: StowageError) -> InternalError:
    return InternalError(f"the server sent a plan that the evaluator refuses: {error}")
