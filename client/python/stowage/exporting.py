"""A profile of a whole model, op by op, without running it: ``stowage.export``.

    profile = stowage.export(model, input_ids=ids, labels=ids)
    print(profile.plan("60%").summary())

The step is traced with tensors that have sizes and no memory. The model and the sample may be such tensors, too: made
within ``torch._subclasses.fake_tensor.FakeTensorMode()``, a model of any size fits.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.utils import _pytree as pytree

from stowage._joint import JointGraph
from stowage._op_costs import Roofline, Times
from stowage.errors import InvalidArgument
from stowage.planning import Profile

_LOGGING = ("debug", "info", "warning", "warning_once", "error", "critical", "exception", "log")


class _Captured(Exception):
    """Ends a compilation when its joint graph is there."""


def export(module: Callable[..., Any], *sample: Any, times: Optional[Times] = None, name: str = "", **kwargs: Any) -> Profile:
    """What a training step of ``module(*sample, **kwargs)`` takes, op by op, as a compute DAG.

    The backward starts at the first tensor that the module returns, if that is a single number (a loss), else at all that
    it returns. Bytes are exact. They leave out what is there before the step: parameters, buffers, the sample. Gradients
    of parameters, what the module returns, and gradients that come from outside are held to the end of the step. Bytes
    are rounded up to 512 on a GPU.

    ``times``: a ``stowage.Roofline`` with a device's figures, by which times are estimated, the default one if left out;
    nothing is computed and no tensor has memory. ``times="measured"``: each kind of op runs alone, four times, on tensors
    made for it, which gives its time and its workspace. Times are for whole steps without fused kernels.
    ``name``: the profile's; a module's class if left out.

    Raises FailedPrecondition on a PyTorch before 2.11, InvalidArgument for a module that does not trace as one graph
    (its flow depends on data, or ``print``) or that nothing can be differentiated in.

    >>> import stowage, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    >>> profile = stowage.export(model, torch.zeros(16, 8))
    >>> profile.kind, profile.store_all_peak_bytes > 16 * 32 * 4
    ('compute DAG', True)
    """
    asked = Roofline() if times is None else times
    graph, forward_outputs = _joint_graph(module, sample, kwargs)
    return JointGraph(graph, forward_outputs, asked).profile(name or type(module).__name__, asked)


def _joint_graph(module: Callable[..., Any], sample: Tuple[Any, ...], kwargs: Any) -> Tuple[torch.fx.GraphModule, int]:
    captured: List[Tuple[torch.fx.GraphModule, int]] = []

    def partition(graph: torch.fx.GraphModule, _: Any, *, num_fwd_outputs: int, **__: Any) -> None:
        captured.append((graph, num_fwd_outputs))
        raise _Captured

    def refuse(*_: Any) -> None:
        raise _Captured

    def step(*args: Any, **keywords: Any) -> Any:
        leaves = [leaf for leaf in pytree.tree_leaves(module(*args, **keywords)) if isinstance(leaf, torch.Tensor)]
        if leaves and leaves[0].dim() == 0:
            return (leaves[0], *(leaf.detach() for leaf in leaves[1:]))
        return leaves

    backend = aot_autograd(fw_compiler=refuse, partition_fn=partition, keep_inference_input_mutations=True)
    try:
        with torch._dynamo.config.patch(ignore_logging_functions=_logging_methods()):
            torch.compile(step, backend=backend, fullgraph=True, dynamic=False)(*sample, **kwargs)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        if not captured and isinstance(error.inner_exception, _Captured):
            raise InvalidArgument("module: nothing that it returns has a gradient, so there is no step to plan") from None
        if not captured:
            raise
    except torch._dynamo.exc.TorchDynamoException as error:
        raise InvalidArgument(f"module: it does not trace as one graph: {error}") from error
    if not captured:
        raise InvalidArgument("module: it runs no op, so there is no step to plan")
    return captured[0]


class _Functions(Dict[str, Any]):
    """An empty dict that has functions in it: 2.11 writes its settings to a log as JSON, which takes no set of functions."""

    def __init__(self, functions: Set[Any]) -> None:
        super().__init__()
        self._functions = functions

    def __contains__(self, function: object) -> bool:
        return function in self._functions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._functions)


def _logging_methods() -> Any:
    """What writes lines to a log: of no account for a graph."""
    methods = {getattr(logging.Logger, method) for method in _LOGGING if hasattr(logging.Logger, method)}
    return _Functions(methods.union(torch._dynamo.config.ignore_logging_functions))
