"""What was measured of a model's blocks, in files: the next process trains by a plan from its first step on.

A file is found by a key of what the model is before anything runs: its modules with their settings, sources, parameters and
buffers, the first block's arguments, and what they run on. The first step by a record is checked; one that does not hold is
removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

import torch

from stowage import _core
from stowage.errors import InvalidArgument

RECORD_VERSION = 3
_DEEPEST = 4  # into settings that are objects: configurations, hooks
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OF_EVERY_MODULE = set(vars(torch.nn.Module())) - {"training", *_HOOKS}


class Records:
    """A folder of records. Several processes may use it at once."""

    def __init__(self, folder: Union[str, os.PathLike[str]]) -> None:
        try:
            self._folder = Path(folder).expanduser()
            self._folder.mkdir(parents=True, exist_ok=True)
        except (OSError, TypeError, ValueError) as error:
            raise InvalidArgument(f"cache = {folder!r}: must be a folder, or one that can be made ({error})") from None

    def read(self, key: str) -> Optional[Dict[str, Any]]:
        """None where there is none that can be read."""
        try:
            record = json.loads(self._file(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def write(self, key: str, record: Dict[str, Any]) -> None:
        """In place of what was there; readers see one or the other. A folder that cannot be written to is left as it is."""
        try:
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".new")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(record, file)
            os.replace(name, self._file(key))
        except OSError:
            pass

    def remove(self, key: str) -> None:
        try:
            self._file(key).unlink()
        except OSError:
            pass

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def key_of(
    model: torch.nn.Module, blocks: Sequence[Any], args: Any, kwargs: Any, device: Dict[str, Any], settings: Any
) -> str:
    """64 digits, the same in each process that trains the same model on the same kind of device."""
    digest = hashlib.sha256()

    def add(*values: Any) -> None:
        digest.update(repr(values).encode())

    add(RECORD_VERSION, _core.VERSION, sorted(device.items()), str(settings), _told(args, _DEEPEST), _told(kwargs, _DEEPEST))
    places = {id(module): place for place, module in enumerate(model.modules())}
    add([places.get(id(block)) for block in blocks])
    sources: Dict[str, str] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        add(name, places[id(module)], _source_of(type(module), sources))
        own = {field: value for field, value in vars(module).items() if field not in _OF_EVERY_MODULE and field != "stowage"}
        add(sorted((field, _told(value, 0 if field == "forward" else _DEEPEST)) for field, value in own.items()))
        for tensors in (module._parameters, module._buffers):
            add([(field, _told(tensor, 0)) for field, tensor in tensors.items()])
    return digest.hexdigest()


def _told(value: Any, deepest: int) -> Any:
    """A value in words that are the same in each process: no addresses, no numbers of tensors."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if isinstance(value, torch.Tensor):
        strides = value.stride() if value.layout == torch.strided else ()
        return "tensor", tuple(value.shape), strides, str(value.dtype), value.device.type, value.requires_grad
    if isinstance(value, torch.nn.Module):
        return "module", type(value).__qualname__
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return value.__qualname__, _told_code(value.__code__)
    if isinstance(value, type):
        return value.__module__, value.__qualname__
    own = getattr(value, "own", None)
    if type(value).__name__ == "PlannedForward":
        how = None if own is None else _told(own, 0)
        return how if value.compiler is None else (how, _told(value.compiler, _DEEPEST))
    name = type(value).__qualname__
    if deepest == 0 or isinstance(value, (torch.dtype, torch.device)):
        return name, str(value) if isinstance(value, (torch.dtype, torch.device)) else ""
    if isinstance(value, dict):
        # Handles of hooks, which are numbered by process, count by their order.
        entries = [(k if isinstance(k, str) else "", _told(v, deepest - 1)) for k, v in value.items()]
        return name, entries
    if isinstance(value, (set, frozenset)):
        return name, sorted(repr(_told(entry, deepest - 1)) for entry in value)
    if isinstance(value, (list, tuple)):
        return name, [_told(entry, deepest - 1) for entry in value]
    return name, sorted((field, repr(_told(entry, deepest - 1))) for field, entry in getattr(value, "__dict__", {}).items())


def _told_code(code: types.CodeType) -> str:
    constants = [c for c in code.co_consts if not isinstance(c, frozenset)]  # whose order is the process's
    told = [_told_code(c) if isinstance(c, types.CodeType) else repr(c) for c in constants]
    return hashlib.sha256(repr((code.co_code, told, code.co_names)).encode()).hexdigest()


def _source_of(kind: type, known: Dict[str, str]) -> List[Any]:
    """A module's type with the files that it and its bases are written in. PyTorch's own are told by its version."""
    told: List[Any] = []
    for base in kind.__mro__[: kind.__mro__.index(torch.nn.Module)]:
        told.append((base.__module__, base.__qualname__))
        if base.__module__.startswith("torch."):
            continue
        if base.__module__ not in known:
            known[base.__module__] = _digest_of(getattr(sys.modules.get(base.__module__), "__file__", None))
        told.append(known[base.__module__])
        if not known[base.__module__]:
            told += _codes_of(vars(base).values())
    return told


def _digest_of(file: Optional[str]) -> str:
    try:
        return hashlib.sha256(Path(file or "").read_bytes()).hexdigest()
    except OSError:
        return ""


def _codes_of(values: Iterable[Any]) -> List[str]:
    return [_told_code(value.__code__) for value in values if isinstance(value, types.FunctionType)]
