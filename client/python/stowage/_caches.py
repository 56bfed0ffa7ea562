"""Caches of keys and values, which models of Transformers hand to their blocks.

A block writes into its cache, so that a recompute would write a second time. In training an empty cache is of no use to
the step itself, but it decides which kernels attention takes: each run of a block gets an empty one of its own.
"""

from __future__ import annotations

import copy
import sys
from typing import Any, Callable, Dict, Optional


class FilledCache(Exception):
    """A block reads what an earlier forward has left: it cannot run a second time."""


def with_own_caches(function: Callable[..., Any], args: Any, kwargs: Dict[str, Any]) -> Optional[Callable[..., Any]]:
    """The function with an empty cache in each call; None where no cache is among the arguments. Raises FilledCache."""
    module = sys.modules.get("transformers.cache_utils")
    if module is None:
        return None
    kind = module.Cache
    caches = [a for a in (*args, *kwargs.values()) if isinstance(a, kind)]
    if not caches:
        return None
    if any(cache.get_seq_length() != 0 for cache in caches):
        raise FilledCache

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*(_own(a, kind) for a in args), **{name: _own(a, kind) for name, a in kwargs.items()})

    return call


def _own(argument: Any, kind: type) -> Any:
    """Copies of what a cache is made of; their tensors, of which an empty one has none, are made by writing."""
    if not isinstance(argument, kind):
        return argument
    own = copy.copy(argument)
    for name, value in vars(argument).items():
        if isinstance(value, list):
            setattr(own, name, [copy.copy(layer) for layer in value])
        elif isinstance(value, dict):
            setattr(own, name, dict(value))
        else:
            setattr(own, name, _own(value, kind))
    return own
