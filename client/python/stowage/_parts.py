"""What the blocks are of: parameters, modules, and buffers, which recomputes restore or must find as they were."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

import torch

from stowage import _moving
from stowage._sharding import is_sharded, parts_of_parameters
from stowage.errors import ExecutionError

if TYPE_CHECKING:
    from stowage._book import Book
    from stowage._run import Call


class Parts:
    """A block's parameters, and of what modules they are: adapters are put in, tensors are replaced, some are frozen."""

    def __init__(self, block: torch.nn.Module) -> None:
        self._is_sharded = is_sharded(block)  # its modules then have other tensors while they run
        self.parameters = parts_of_parameters(block) if self._is_sharded else list(block.parameters())
        self._trained = [parameter.requires_grad for parameter in self.parameters]
        self._entries: List[Tuple[Dict[str, Any], List[Any]]] = []
        self._modules = list(block.modules())
        self.buffers = [module._buffers for module in self._modules]
        self._own = [module._parameters for module in self._modules if module._parameters]
        for module in self._modules:
            for entries in (module._parameters, module._modules):  # buffers may be others after each forward
                if entries and not (self._is_sharded and entries is module._parameters):
                    self._entries.append((entries, list(entries.values())))

    def modes(self) -> List[bool]:
        """Of each module: a norm that does not train, a dropout that does not drop, saves other tensors."""
        return [module.training for module in self._modules]

    def lack(self, parameters: Iterable[Tuple[torch.Tensor, int]]) -> bool:
        """Whether one of these is none of the block's now."""
        if self._is_sharded:
            return False
        own = {id(parameter) for of in self._own for parameter in of.values()}
        return any([id(parameter) not in own for parameter, _ in parameters])

    def hold(self) -> bool:
        """Whether the block still is of them."""
        for entries, values in self._entries:
            if len(entries) != len(values) or not all(map(operator.is_, entries.values(), values)):
                return False
        return self._trained == [parameter.requires_grad for parameter in self.parameters]


class Buffer(NamedTuple):
    """One of a module's, as it was."""

    of: Dict[str, Any]
    name: str
    buffer: torch.Tensor
    version: int

    @property
    def is_replaced(self) -> bool:
        return self.of.get(self.name) is not self.buffer

    @property
    def is_written(self) -> bool:
        return bool(self.buffer._version != self.version)


class PartsOfBlocks:
    """Of all blocks of a chain. Which of their buffers forwards change is learned as they run."""

    def __init__(self) -> None:
        self._parts: Dict[int, Parts] = {}  # by the block's id
        self._changed: Dict[int, List[int]] = {}  # by the block's id: places of the buffers that its forward changes

    def read(self, blocks: Iterable[torch.nn.Module]) -> None:
        """Anew."""
        self._parts = {id(block): Parts(block) for block in blocks}

    def forget_changes(self) -> None:
        self._changed.clear()

    def parameters_of(self, block: torch.nn.Module) -> List[torch.Tensor]:
        return self._parts[id(block)].parameters

    def all_parameters(self) -> Iterable[torch.Tensor]:
        return (parameter for parts in self._parts.values() for parameter in parts.parameters)

    def hold(self) -> bool:
        return all(parts.hold() for parts in self._parts.values())

    def modes(self) -> List[bool]:
        return [mode for parts in self._parts.values() for mode in parts.modes()]

    def note_changed(self, block: Any, places: Iterable[int]) -> None:
        known = self._changed.setdefault(id(block), [])
        known.extend(place for place in places if place not in known)

    def changed_by(self, block: Any) -> List[int]:
        return self._changed.get(id(block), [])

    def copies_of_changed(self, module: torch.nn.Module) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        places = self._changed.get(id(module))
        if not places:
            return []
        buffers = list(module.buffers())
        return [(buffers[place], buffers[place].detach().clone()) for place in places]

    def copies_of_others(self, module: torch.nn.Module) -> List[Tuple[int, torch.Tensor]]:
        """Copies, which count nowhere, of the buffers that no forward is known to change, with their places."""
        known = self.changed_by(module)
        others = [(place, buffer) for place, buffer in enumerate(module.buffers()) if place not in known]
        return [(place, _moving.copy_on_host(buffer)) for place, buffer in others]

    def others_now(self, call: Call) -> List[Buffer]:
        """The buffers that no recompute of the call restores."""
        entries = [of for of in self._parts[id(call.module)].buffers if of]
        if not entries:
            return []
        restored = {id(buffer) for buffer, _ in call.buffers}
        others = []
        for of in entries:
            for name, buffer in of.items():
                if buffer is not None and id(buffer) not in restored:
                    others.append(Buffer(of, name, buffer, buffer._version))
        return others

    def check_others(self, block: int, call: Call, before: List[Buffer], say: Callable[[str], None]) -> None:
        """After a first forward; ``say`` warns. Raises ExecutionError where any was written: a recompute would read others."""
        for was in before:
            words = f"block {block} ({type(call.module).__name__})"
            if was.is_written:
                places = [place for place, buffer in enumerate(call.module.buffers()) if buffer is was.buffer]
                self.note_changed(call.module, places)
                words += f" writes to its buffer {was.name}, and did not when it was measured"
                raise ExecutionError(f"{words}: from the next forward on its recomputes restore it")
            if was.is_replaced:
                say(f"{words} has another buffer {was.name} than when it was measured: its recomputes read the new one")
        call.others = [was for was in before if not was.is_replaced]

    def check_same(self, block: int, call: Call) -> None:
        """Before a recompute. Raises ExecutionError where the block has other parameters or buffers than in its forward."""
        words = f"block {block} ({type(call.module).__name__}) has"
        if self._parts[id(call.module)].lack(call.parameters):
            raise ExecutionError(f"{words} other parameters now than in its forward: a recompute would read those")
        for was in call.others:
            if was.is_replaced:
                raise ExecutionError(f"{words} another buffer {was.name} now than in its forward: a recompute would read it")

    def check_trial(self, book: Book, call: Call, before: List[Tuple[int, torch.Tensor]], others: List[Buffer]) -> None:
        """After a forward on trial: what it has changed against the record is restored in its recomputes, too."""
        buffers = list(call.module.buffers())
        written = {id(was.buffer) for was in others if was.is_written}
        replaced = {id(was.of.get(was.name)) for was in others if was.is_replaced}
        changed = []
        for place, value in before:
            buffer = buffers[place]
            if id(buffer) in replaced:
                book.doubt = f"{type(call.module).__name__} has other buffers"
            elif id(buffer) in written or not _moving.is_copy(buffer, value):
                changed.append((place, value))
        if changed:
            book.doubt = f"{type(call.module).__name__} changes other buffers"
            self.note_changed(call.module, [place for place, _ in changed])
            call.buffers += [(buffers[place], _moving.copy_on_device(value, buffers[place])) for place, value in changed]
