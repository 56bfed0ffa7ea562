"""Stowage: train within a memory budget.

Planning needs nothing but this package: a ``Profile`` says what the stages of a step take, ``Profile.plan`` which of
them to keep and which to recompute.
"""

from __future__ import annotations

from stowage.errors import (
    Cancelled,
    DeadlineExceeded,
    ExecutionError,
    FailedPrecondition,
    Infeasible,
    InternalError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    StowageError,
)
from stowage.planning import Frontier, FrontierPoint, Instruction, Plan, Profile, __version__, solvers

__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "ExecutionError",
    "FailedPrecondition",
    "Frontier",
    "FrontierPoint",
    "Infeasible",
    "Instruction",
    "InternalError",
    "InvalidArgument",
    "NotFound",
    "Plan",
    "Profile",
    "ResourceExhausted",
    "StowageError",
    "__version__",
    "solvers",
]
