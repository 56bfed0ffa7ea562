"""Accelerate: ``model, optimizer, loader = prepare(accelerator, model, optimizer, loader, budget="60%")``."""

from __future__ import annotations

from typing import Any

from stowage.adapters import with_optimizer
from stowage.wrapping import wrap


def prepare(accelerator: Any, model: Any, *others: Any, **arguments: Any) -> Any:
    """What ``accelerator.prepare(model, *others)`` returns, its model wrapped; the keywords are the arguments of wrap."""
    prepared = accelerator.prepare(model, *others)
    first, rest = (prepared[0], prepared[1:]) if others else (prepared, ())
    wrap(accelerator.unwrap_model(first), **with_optimizer(arguments, rest))
    return prepared
