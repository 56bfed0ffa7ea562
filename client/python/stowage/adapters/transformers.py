"""Transformers: ``Trainer(..., callbacks=[StowageCallback(budget="60%")])``."""

from __future__ import annotations

from typing import Any

import torch
from transformers import TrainerCallback

from stowage.adapters import with_optimizer
from stowage.errors import InvalidArgument
from stowage.wrapping import unwrap, wrap


class StowageCallback(TrainerCallback):
    """The trainer's model is wrapped while it trains; the arguments are those of wrap. Logs have the step's peak in bytes.

    Raises InvalidArgument beside ``gradient_checkpointing=True``, which recomputes every block whatever the plan says.
    """

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        if args.gradient_checkpointing:
            raise InvalidArgument("gradient_checkpointing = True: must be off, or every block is recomputed beside the plan")
        if model.__dict__.get("stowage") is not None:  # of a training that an error has ended, or that has a smaller batch now
            unwrap(model)
        wrap(model, **with_optimizer(self._arguments, [optimizer]))

    def on_log(self, args: Any, state: Any, control: Any, model: Any = None, logs: Any = None, **_: Any) -> None:
        if logs is not None and isinstance(model, torch.nn.Module) and model.__dict__.get("stowage") is not None:
            logs["stowage_peak_bytes"] = model.stowage.measured_peak_bytes

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        unwrap(model)
