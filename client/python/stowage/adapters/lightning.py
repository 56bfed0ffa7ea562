"""Lightning: ``Trainer(..., callbacks=[StowageCallback(budget="60%")])``."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

from stowage.adapters import with_optimizer
from stowage.wrapping import unwrap, wrap


class StowageCallback(Callback):
    """The module is wrapped while it is fitted; the arguments are those of wrap. ``path``: of the part that has the blocks, as
    "net.encoder"; left out, the module itself."""

    def __init__(self, path: str = "", **arguments: Any) -> None:
        self._path = path
        self._arguments = arguments

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        wrap(pl_module.get_submodule(self._path), **with_optimizer(self._arguments, trainer.optimizers))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        unwrap(pl_module.get_submodule(self._path))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        part = pl_module.get_submodule(self._path)
        if part.__dict__.get("stowage") is not None:
            unwrap(part)
