"""How a block calls its chain: in place of its forward, compiled where the block was, and gone from copies and pickles."""

from __future__ import annotations

import copy
import functools
import types
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

import torch

from stowage._versions import compiler_of, hidden_from_dynamo

if TYPE_CHECKING:
    from stowage._chain import Chain


class PlannedForward:
    """A block's ``forward`` while its model is wrapped. Copies and pickles of the block have their own forward.

    What ``block.compile()`` has compiled, with the block's hooks, is compiled here without them: they stay outside of the plan.
    """

    _torchdynamo_disable = True  # which torch.compile asks of the forwards of modules that it has made

    def __init__(self, chain: Chain, module: torch.nn.Module) -> None:
        self._chain = chain
        self._module = weakref.ref(module)
        self.own: Optional[Callable[..., Any]] = module.__dict__.get("forward")
        self._runs: Optional[Callable[..., Any]] = self.own  # in place of the forward of the block's class
        self._compiled_call: Optional[Callable[..., Any]] = None
        compiled_call = module.__dict__.get("_compiled_call_impl")
        self.compiler = compiler_of(compiled_call)
        if self.compiler is not None:
            self._runs, self._compiled_call = self.compiler(self.__wrapped__), compiled_call
        self.is_compiled = self._compiled_call is not None or hasattr(self.own, "_torchdynamo_orig_callable")

    def put_in(self) -> None:
        """Into the block."""
        block = self._block()
        block.__dict__["forward"] = self
        if self._compiled_call is not None:
            del block.__dict__["_compiled_call_impl"]

    def take_out(self) -> None:
        block = self._block()
        del block.__dict__["forward"]
        if self.own is not None:
            block.__dict__["forward"] = self.own
        if self._compiled_call is not None:
            block.__dict__.setdefault("_compiled_call_impl", self._compiled_call)

    @hidden_from_dynamo("stowage plans this block: compile each block, then wrap the model")
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._chain.enter(self._block(), self.__wrapped__, args, kwargs)

    def _block(self) -> torch.nn.Module:
        module = self._module()
        assert module is not None  # it holds this object
        return module

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The block's forward without a plan; inspect.signature finds it by this name."""
        if self._runs is not None:
            return self._runs
        module = self._block()
        return types.MethodType(type(module).forward, module)

    def __deepcopy__(self, memo: Dict[int, Any]) -> Any:
        copied = memo.get(id(self._module()))
        if self.own is not None or copied is None:
            return copy.deepcopy(self.own, memo)
        return types.MethodType(type(copied).forward, copied)

    def __reduce__(self) -> Tuple[Any, ...]:
        if self.own is not None:
            return functools.partial, (self.own,)
        return getattr, (self._module(), "forward")
