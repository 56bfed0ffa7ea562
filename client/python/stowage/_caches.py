"""Caches of keys and values, which models of Transformers hand to their blocks.

A block writes into its cache, so that a recompute would write a second time. In training an empty cache is of no use to
the step itself: the block gets None, as it does from Transformers' own gradient checkpointing.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Tuple


class FilledCache(Exception):
    """A block reads what an earlier forward has left: it cannot run a second time."""


def without_caches(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments with None for caches that are empty, themselves where there are none. Raises FilledCache."""
    module = sys.modules.get("transformers.cache_utils")
    if module is None:
        return args, kwargs
    kind = module.Cache
    if not any(isinstance(a, kind) for a in args) and not any(isinstance(a, kind) for a in kwargs.values()):
        return args, kwargs

    def empty(argument: Any) -> Any:
        if not isinstance(argument, kind):
            return argument
        if argument.get_seq_length() != 0:
            raise FilledCache
        return None

    return tuple(empty(a) for a in args), {name: empty(a) for name, a in kwargs.items()}
