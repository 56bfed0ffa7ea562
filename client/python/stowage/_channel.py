"""One conversation with a service: how it is reached, as whom, and what is tried again."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import grpc

from stowage import _core, _messages, _replicas
from stowage.errors import FailedPrecondition, InvalidArgument, ResourceExhausted, Unavailable
from stowage.v1 import plan_service_pb2_grpc

if TYPE_CHECKING:
    from stowage._replicas import Replicas
    from stowage.rpc import Server

MESSAGE_LIMIT_BYTES = 64 << 20
MOST_ATTEMPTS = 4
FIRST_BACKOFF_S, BACKOFF_GROWTH, LONGEST_BACKOFF_S = 0.1, 2.0, 2.0
LONGEST_SERVER_DELAY_S = 10.0
JITTER = 0.3  # so that a fleet does not come back in step
LONGEST_REACH_S = 5.0  # then a call goes on to no further server
_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.primary_user_agent", f"python stowage/{_core.VERSION}"),
    ("grpc.use_local_subchannel_pool", 1),  # another channel's backoff is none of this one's
    ("grpc.keepalive_time_ms", 20000),  # a peer that is gone without a word is noticed within a solve of minutes
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),  # a planner is a neighbour
    ("grpc.service_config_disable_resolution", 1),
)
_ROUND_ROBIN = '{"loadBalancingConfig":[{"round_robin":{}}]}'

_first_process: Optional[int] = None


def _check_process() -> None:
    """Threads and locks of gRPC do not exist in a child of the process that used it first."""
    global _first_process
    if _first_process is None:
        _first_process = os.getpid()
    elif _first_process != os.getpid():
        raise FailedPrecondition("this process was forked from one that had used gRPC already: ask for plans after forking")


class Channel:
    """Opened for one plan or one report, and closed: what a process has open when it forks is its children's trouble.

    Of several servers a call asks the one that its key belongs to, and the next while that one is away. ``traceparent``:
    W3C's, of the span that the calls are below; "" for none. Raises InvalidArgument for files that cannot be read,
    FailedPrecondition in a forked child.
    """

    def __init__(self, server: Server, replicas: Replicas, traceparent: str = "") -> None:
        _check_process()
        self._server = server
        self._replicas = replicas
        token = _token(server)
        self._sends_token = bool(token)
        said = {"authorization": f"Bearer {token}" if token else "", "traceparent": traceparent}
        self._metadata = tuple((name, value) for name, value in said.items() if value)
        self._credentials = _credentials(server) if server.tls else None
        self._open: Dict[str, grpc.Channel] = {}

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *error: Any) -> None:
        for channel in self._open.values():
            channel.close()

    def _to(self, address: str) -> Any:
        """The methods of one server."""
        if address not in self._open:
            server = self._server
            options: List[Tuple[str, Any]] = list(_OPTIONS)
            name = server.server_name
            if address.startswith("dns:"):  # what names its own resolver
                options.append(("grpc.service_config", _ROUND_ROBIN))
            elif name is None and server.tls and server.address.startswith("dns:"):
                name = _replicas.host_of(server.address)  # certificates are for the name, whichever address shows them
            if address != server.address:  # one that is silent leaves the next one time
                options.append(("grpc.min_reconnect_backoff_ms", max(10, int(server.patience_s * 500))))
            if name:
                options.append(("grpc.ssl_target_name_override", name))
            if self._credentials is not None:
                self._open[address] = grpc.secure_channel(address, self._credentials, options=options)
            else:
                self._open[address] = grpc.insecure_channel(address, options=options)
        return plan_service_pb2_grpc.PlanServiceStub(self._open[address])

    def call(self, method: str, request: Any, by: float, reach_by: Optional[float] = None, key: Optional[str] = None) -> Any:
        """The response, by that moment of time.monotonic(), of the server that the key (its digits) belongs to.

        A server that is away is tried again until ``reach_by``, one that is busy when it asks to be. All calls of this
        package may be made twice. Raises what errors.of_status makes of the last attempt's error.
        """
        if request.ByteSize() > MESSAGE_LIMIT_BYTES:
            raise ResourceExhausted(f"the request has {request.ByteSize()} bytes, the limit is {MESSAGE_LIMIT_BYTES}")
        backoff_s = FIRST_BACKOFF_S
        for attempt in range(1, MOST_ATTEMPTS + 1):
            response, failure = self._route(method, request, by, by if reach_by is None else min(by, reach_by), key)
            if failure is None:
                return response
            wait_s, limit = None, by
            if isinstance(failure.error, Unavailable):
                wait_s = backoff_s * random.uniform(1 - JITTER, 1 + JITTER)
                limit = by if reach_by is None else min(by, reach_by)
                backoff_s = min(backoff_s * BACKOFF_GROWTH, LONGEST_BACKOFF_S)
            elif isinstance(failure.error, ResourceExhausted) and failure.error.retry_delay_s is not None:
                wait_s = min(failure.error.retry_delay_s, LONGEST_SERVER_DELAY_S) * random.uniform(1, 1 + JITTER)
            if wait_s is None or attempt == MOST_ATTEMPTS or time.monotonic() + wait_s >= limit:
                raise failure.error
            time.sleep(wait_s)
        raise AssertionError  # the last attempt returns or raises

    def _route(
        self, method: str, request: Any, by: float, reach_by: float, key: Optional[str]
    ) -> Tuple[Any, Optional[_messages.Failure]]:
        """One attempt: at the key's server, and at the next ones while those before are away and there is time."""
        start = time.monotonic()
        asked: List[str] = []
        failure: Optional[_messages.Failure] = None
        while True:
            try:
                address = self._replicas.next(key, asked)
            except Unavailable as error:
                return None, failure or _messages.Failure(error)
            if address is None:
                assert failure is not None
                return None, failure
            asked.append(address)
            try:
                timeout_s = max(0.0, by - time.monotonic())
                response = getattr(self._to(address), method)(request, timeout=timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                failure = _messages.failure_of(error, self._hint(error))
            else:
                self._replicas.heard(address, away=False)
                return response, None
            self._replicas.heard(address, away=isinstance(failure.error, Unavailable) and failure.reason in ("", "DRAINING"))
            now = time.monotonic()
            if not isinstance(failure.error, Unavailable) or now >= reach_by or now >= start + LONGEST_REACH_S:
                return None, failure

    def _hint(self, error: grpc.RpcError) -> str:
        server, code = self._server, error.code()
        if code == grpc.StatusCode.UNAVAILABLE:
            how = "with TLS" if server.tls else "without TLS"
            return f" [tried {how}; is stowaged running at {server.address}? `stowage doctor` tells]"
        if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
            sent = [f"the client certificate {server.cert_file}"] if server.cert_file else []
            sent += [f"the bearer token of {server.token_file or 'the options'}"] if self._sends_token else []
            return f" [sent: {' and '.join(sent) or 'neither a client certificate nor a token'}]"
        return ""


def _read(field: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{field} = {path!r}: cannot be read ({error.strerror})") from None


def _pem(field: str, path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    text = _read(field, path)
    if b"-----BEGIN " not in text:
        raise InvalidArgument(f"{field} = {path!r}: must be a PEM file")
    return text


def _credentials(server: Server) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_pem("ca_file", server.ca_file),
        private_key=_pem("key_file", server.key_file),
        certificate_chain=_pem("cert_file", server.cert_file),
    )


def _token(server: Server) -> str:
    if server.token is None and server.token_file is None:
        return ""
    field, text = "token", server.token or ""
    if server.token_file is not None:
        field = f"token_file = {server.token_file!r}"
        text = _read("token_file", server.token_file).decode("ascii", "replace").rstrip()
    if not text or any(not "!" <= letter <= "~" for letter in text):
        raise InvalidArgument(f"{field}: must hold a token of visible ASCII characters")
    return text
