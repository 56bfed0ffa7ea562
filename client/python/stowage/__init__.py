"""Stowage: train within a memory budget.

Planning needs nothing but this package: a ``Profile`` says what the stages of a step take, ``Profile.plan`` which of
them to keep and which to recompute. ``stowage.rpc`` has the plans of a cluster's service, and needs grpcio and
protobuf. ``stowage.wrap`` plans and trains a PyTorch model, and needs PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stowage.errors import (
    Cancelled,
    DeadlineExceeded,
    ExecutionError,
    FailedPrecondition,
    Infeasible,
    InternalError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    StowageError,
    Unavailable,
)
from stowage.planning import (
    Frontier,
    FrontierPoint,
    Instruction,
    PipelinePlan,
    PipelineStage,
    Plan,
    Profile,
    __version__,
    solvers,
)

if TYPE_CHECKING:
    from stowage._op_costs import Roofline
    from stowage._run import is_recomputing
    from stowage.compiling import Partitioner, compile
    from stowage.exporting import export
    from stowage.wrapping import Training, unwrap, wrap

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
    "PermissionDenied",
    "Partitioner",
    "PipelinePlan",
    "PipelineStage",
    "Plan",
    "Profile",
    "ResourceExhausted",
    "Roofline",
    "StowageError",
    "Training",
    "Unavailable",
    "__version__",
    "compile",
    "export",
    "is_recomputing",
    "solvers",
    "unwrap",
    "wrap",
]


_NEEDS_TORCH = {
    "Partitioner": "compiling",
    "Roofline": "_op_costs",
    "Training": "wrapping",
    "compile": "compiling",
    "export": "exporting",
    "is_recomputing": "_run",
    "unwrap": "wrapping",
    "wrap": "wrapping",
}
_NEEDS_JOINT_GRAPHS = ("Partitioner", "Roofline", "compile", "export")


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is asked for."""
    if name not in _NEEDS_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name in _NEEDS_JOINT_GRAPHS:
            import_module("stowage._joint_version").require(name)
        return getattr(import_module(f"stowage.{_NEEDS_TORCH[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise FailedPrecondition(f"stowage.{name} needs PyTorch, which is not installed here") from None
