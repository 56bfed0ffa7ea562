"""Which PyTorch has the joint graphs that ``export`` and ``compile`` plan."""

from __future__ import annotations

import torch

from stowage.errors import FailedPrecondition

LEAST = (2, 11)


def is_here() -> bool:
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= LEAST


def require(name: str) -> None:
    """Raises FailedPrecondition where PyTorch is older."""
    if not is_here():
        least = ".".join(map(str, LEAST))
        raise FailedPrecondition(f"stowage.{name} needs PyTorch {least} or later, this is {torch.__version__}")
