"""What Stowage raises. Every exception of its own is a StowageError; those that have an equal in Python are that, too."""

from __future__ import annotations

from typing import Optional, Tuple


class StowageError(Exception):
    """Any error of Stowage."""


class InvalidArgument(StowageError, ValueError):
    """A value breaks a rule. ``field``, ``value`` and ``rule`` say which, where one field is to blame."""

    field: Optional[str] = None
    value: Optional[str] = None
    rule: Optional[str] = None


class Infeasible(StowageError):
    """Nothing fits the budget.

    ``budget_bytes`` is what was asked for, ``least_bytes`` what is needed (0: not known), ``proven`` whether nothing
    below that can fit or a search only found nothing.
    """

    def __init__(self, message: str, budget_bytes: int, least_bytes: int, proven: bool) -> None:
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.least_bytes = least_bytes
        self.proven = proven

    def __reduce__(self) -> Tuple[object, ...]:
        return type(self), (str(self), self.budget_bytes, self.least_bytes, self.proven)


class NotFound(StowageError, LookupError):
    """What was named is not there."""


class FailedPrecondition(StowageError):
    """Something else must hold, or be done, before."""


class ResourceExhausted(StowageError):
    """A solve needs more memory than it may take, a request is larger than a limit, or the service is busy.

    ``retry_delay_s``: how long a service that is busy asks to be left alone; None of a limit, which stays.
    """

    retry_delay_s: Optional[float] = None


class DeadlineExceeded(StowageError, TimeoutError):
    """The deadline passed before there was an answer."""


class Cancelled(StowageError):
    """A solve was stopped."""


class Unavailable(StowageError, ConnectionError):
    """The service is away, or cannot do it at this moment."""


class PermissionDenied(StowageError):
    """The service does not know the caller, or does not let it do this."""


class InternalError(StowageError):
    """A fault of Stowage's own, or an answer of a service that breaks the contract."""


class ExecutionError(StowageError, RuntimeError):
    """A planned step cannot go on: a block did other things in a recompute than in its forward, say."""


_OF_CODE = {
    "INVALID_ARGUMENT": InvalidArgument,
    "OUT_OF_RANGE": InvalidArgument,
    "NOT_FOUND": NotFound,
    "FAILED_PRECONDITION": FailedPrecondition,
    "RESOURCE_EXHAUSTED": ResourceExhausted,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "CANCELLED": Cancelled,
    "PERMISSION_DENIED": PermissionDenied,
    "UNAUTHENTICATED": PermissionDenied,
    "UNAVAILABLE": Unavailable,
}


def of_status(code: str, message: str, violation: Optional[Tuple[str, str, str]]) -> StowageError:
    """The exception for a status of the C++ library or of a service, by the name of its code."""
    error = _OF_CODE.get(code, InternalError)(message)
    if violation is not None and isinstance(error, InvalidArgument):
        error.field, error.value, error.rule = violation
    return error
