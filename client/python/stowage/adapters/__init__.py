"""Training frameworks: each module needs the package that it is called after.

``stowage.adapters.transformers.StowageCallback``, ``stowage.adapters.lightning.StowageCallback`` and
``stowage.adapters.accelerate.prepare`` take the arguments of ``stowage.wrap``. A loop of one's own needs none of them.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable


def with_optimizer(arguments: Dict[str, Any], candidates: Iterable[Any]) -> Dict[str, Any]:
    """The arguments of wrap, with the first optimizer of these where a device's memory is planned."""
    optimizers = [each for each in candidates if hasattr(each, "param_groups")]
    if "device_budget" not in arguments or "optimizer" in arguments or not optimizers:
        return arguments
    # Wrappers of optimizers hand on what they do not have; what a step creates is the optimizer's own.
    return {**arguments, "optimizer": getattr(optimizers[0], "optimizer", optimizers[0])}
