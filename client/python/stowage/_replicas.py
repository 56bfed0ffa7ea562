"""Which of several servers is asked for a key: the same one by every client, of C++ (client/rpc/rendezvous.h) and of Python."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from stowage.errors import InvalidArgument, Unavailable

REFRESH_S = 5.0  # a server that is new is used within seconds
REST_S = 5.0  # how long one that is away is left alone
_64_BITS = (1 << 64) - 1


def is_spread(address: str) -> bool:
    """Whether it is a name or a list of addresses that calls are spread over here. What names its own resolver is gRPC's."""
    if address.startswith("dns://") and not address.startswith("dns:///"):
        return False
    return address.startswith(("dns:", "ipv4:", "ipv6:"))


def host_of(address: str) -> str:
    """Of "dns:name:port" and "dns:///name:port"."""
    return _host_and_port(address, _without_scheme(address))[0]


def score(digest: bytes, address: str) -> int:
    """The server with the highest is the key's, then the next. Never changes: programs of all versions ask the same ones."""
    hashed = 0xCBF29CE484222325  # FNV-1a
    for byte in address.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & _64_BITS
    return _mix(int.from_bytes(digest[:8], "big") ^ _mix(hashed))


def _mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return x ^ (x >> 31)


class Replicas:
    """The servers that an address stands for, and which of them were away lately. Thread-safe.

    Raises InvalidArgument for an address that is none.
    """

    def __init__(self, address: str, now: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._now = now
        self._keyless = os.urandom(32)  # so that what has no key is spread over processes
        self._lock = threading.Lock()
        self._rests_until: Dict[str, float] = {}
        self._known: List[str] = []
        self._looked_up = -REFRESH_S
        if not is_spread(address):
            self._known = [address]
        elif address.startswith("dns:"):
            host_of(address)
        else:
            self._known = sorted(set(_listed(address)))

    def next(self, key: Optional[str], asked: Sequence[str]) -> Optional[str]:
        """Whom a call for the key (its digits) asks that has asked these; None: nobody is left.

        Those that rest come at the end. One call after each rest finds out whether a server is back. Looks a name up where
        that was long ago. Raises Unavailable while a name is unknown.
        """
        addresses = self._addresses()
        digest = self._keyless if key is None else bytes.fromhex(key)
        order = sorted((one for one in addresses if one not in asked), key=lambda one: (-score(digest, one), one))
        for address in order:
            if self._is_awake(address):
                return address
        return order[0] if order else None

    def heard(self, address: str, away: bool) -> None:
        """What came of a call to it."""
        with self._lock:
            if away:
                self._rests_until[address] = self._now() + REST_S
            else:
                self._rests_until.pop(address, None)

    def _is_awake(self, address: str) -> bool:
        with self._lock:
            until = self._rests_until.get(address)
            if until is None:
                return True
            if self._now() < until:
                return False
            self._rests_until[address] = self._now() + REST_S  # the others wait for what this one finds
            return True

    def _addresses(self) -> List[str]:
        if not is_spread(self._address) or not self._address.startswith("dns:"):
            return self._known
        with self._lock:
            if self._known and self._now() < self._looked_up + REFRESH_S:
                return self._known
        try:
            found = _looked_up(self._address)
        except OSError as error:
            if not self._known:
                raise Unavailable(f"cannot look up {host_of(self._address)}: {error.strerror or error}") from None
            found = self._known
        with self._lock:
            self._known, self._looked_up = found, self._now()
            return self._known


def _looked_up(address: str) -> List[str]:
    host, port = _host_and_port(address, _without_scheme(address))
    found: List[str] = []
    for _, _, _, _, name in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        ip, at = str(name[0]), int(name[1])
        numeric = f"[{ip}]:{at}" if ":" in ip else f"{ip}:{at}"
        if numeric not in found:
            found.append(numeric)
    return found


def _listed(address: str) -> List[str]:
    listed = address[address.index(":") + 1 :].split(",")
    for one in listed:
        _host_and_port(address, one)
    return listed


def _without_scheme(address: str) -> str:
    rest = address[len("dns:") :]
    return rest[3:] if rest.startswith("///") else rest


def _host_and_port(address: str, endpoint: str) -> Tuple[str, str]:
    host, _, port = endpoint.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not host or not port or (":" in host and not in_brackets):
        raise InvalidArgument(f'address = {address!r}: must end with a port, as in "host:7070"')
    return (host[1:-1] if in_brackets else host), port
