"""What blocks run on: its memory, its clock, its random numbers, its autocast."""

from __future__ import annotations

import time
from typing import Any, Callable, ContextManager, Dict, Iterable, Optional, Tuple

import torch

from stowage._versions import Autocast, storage_bytes, storage_id
from stowage.errors import FailedPrecondition, InvalidArgument

try:
    from stowage import _torch
except ImportError:
    _torch = None  # type: ignore[assignment]

COSTS_VERSION = 3  # of how blocks are measured: costs of another version are not to be compared

RandomState = Tuple[Any, ...]  # one of each generator, the CPU's first


def _is_for_this_torch() -> bool:
    """Whether what is built in C++ is of the PyTorch that is here."""
    return _torch is not None and bool(torch.__version__.split(".")[:2] == _torch.BUILT_WITH.split(".")[:2])


def _tensor_of_state(before: Optional[torch.Tensor] = None) -> torch.Tensor:
    state = torch.get_rng_state()
    return before if before is not None and torch.equal(before, state) else state


# Of the CPU's generator: its state, which is the one before where nothing was drawn since; as it is put back.
_cpu_state: Callable[..., Any] = _torch.random_state if _is_for_this_torch() else _tensor_of_state
_put_cpu_state: Callable[[Any], None] = _torch.set_random_state if _is_for_this_torch() else torch.set_rng_state


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's, of a DTensor; else the tensor itself."""
    part: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return part


def own_bytes(tensor: torch.Tensor) -> int:
    """Of its elements, wherever they are; of a DTensor, this rank's."""
    tensor = local_part(tensor)
    return int(tensor.numel() * tensor.element_size())


class Device:
    """The CPU, whose bytes the allocator of ``stowage._torch`` counts."""

    measures_each_step = True

    def __init__(self, device: torch.device) -> None:
        self.type: str = device.type
        self._device = device

    @property
    def where(self) -> torch.device:
        return self._device

    def is_where(self, tensor: torch.Tensor) -> bool:
        """Whether it is on this device, and no other one of its kind."""
        return bool(tensor.device == self._device)

    def require_meter(self) -> None:
        """Raises FailedPrecondition where nothing counts the bytes of tensors."""
        if _torch is None:
            raise FailedPrecondition(
                "stowage was installed without its part that counts bytes: install it with --no-build-isolation, "
                "so that it is built for the PyTorch that is here"
            )
        if not _is_for_this_torch():
            raise FailedPrecondition(f"stowage was built for PyTorch {_torch.BUILT_WITH}, this is {torch.__version__}")
        _torch.install()

    def description(self) -> Dict[str, Any]:
        """Where blocks are measured, as profiles say it: all that decides which kernels run and what they save."""
        settings = {
            "threads": torch.get_num_threads(),
            "deterministic": int(torch.are_deterministic_algorithms_enabled()),
            "mkldnn": int(torch.backends.mkldnn.enabled) if hasattr(torch.backends.mkldnn, "enabled") else 1,
            "python_costs": COSTS_VERSION,
        }
        autocast = self.autocast()
        if autocast.enabled:
            settings["autocast"] = str(autocast.dtype)
        text = " ".join(f"{name}={value}" for name, value in settings.items())
        return {"model": self._model(), "framework": f"torch {torch.__version__}", "math_settings": text}

    def _model(self) -> str:
        return self.type

    def warm(self) -> None:
        """Has what matrix products make once in each thread, and keep, be made: no step takes it then."""

    def settle(self) -> None:
        """Waits for what may still let go of tensors of a backward that has ended."""

    def current_bytes(self) -> int:
        return _torch.current_bytes()

    def take_peak_bytes(self) -> int:
        """The most that was held since the last call."""
        return _torch.take_recent_peak_bytes()

    def thread_bytes(self) -> Optional[int]:
        """What this thread has allocated less what it has let go of, from some start on; None where all count as one."""
        return _torch.thread_bytes()

    def take_thread_peak_bytes(self) -> int:
        """The most of that since this thread's last call."""
        return _torch.take_thread_peak_bytes()

    def now_ns(self) -> int:
        """The time at which all work asked for so far is done."""
        return time.perf_counter_ns()

    def random_state(self, before: Optional[RandomState] = None) -> RandomState:
        """Of every generator that operations may draw from; ``before`` itself while nothing was drawn since."""
        if before is None:
            return (_cpu_state(),)
        state = _cpu_state(before[0])
        return before if state is before[0] else (state,)

    def set_random_state(self, state: RandomState) -> None:
        _put_cpu_state(state[0])

    def autocast(self) -> Autocast:
        """As it is set now."""
        return Autocast.now(self.type)

    def chosen(self) -> Optional[ContextManager[Any]]:
        """Where new tensors and kernels go to this device of its kind; None where there is one alone."""
        return None

    def bytes_of(self, tensors: Iterable[Any]) -> int:
        """What tensors among these take of the device, each storage counted once."""
        here = [local_part(t) for t in tensors if self.has(t)]
        return sum({storage_id(t): storage_bytes(t) for t in here}.values())

    def gradient_bytes(self, tensors: Iterable[Any]) -> int:
        """What their gradients will take of the device."""
        return sum(own_bytes(t) for t in tensors if self.has(t) and t.requires_grad)

    def has(self, value: Any) -> bool:
        """Whether it is a tensor there."""
        return isinstance(value, torch.Tensor) and value.device.type == self.type


class _Products(torch.autograd.Function):  # type: ignore[misc]
    """Matrix products, with a bias and without, in the forward and in the backward, as where a block runs again there."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a)
        return _products_of(a)

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> torch.Tensor:
        return _products_of(ctx.saved_tensors[0])


def _products_of(a: torch.Tensor) -> torch.Tensor:
    return a @ a + torch.nn.functional.linear(a, a, a[0])


class Accelerator(Device):
    """A device with a module of PyTorch's own (torch.cuda), which counts bytes.

    Its work is asked for before it runs. Peaks are the allocator's own, which starts them anew when they are taken: that
    is not done in each step, so that those that the job asks for stay right.
    """

    measures_each_step = False

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.module: Any = getattr(torch, device.type, None)
        self._is_warm = False
        self._probe: Optional[Tuple[torch.Tensor, torch.Tensor]] = None

    def require_meter(self) -> None:
        for needed in ("device", "get_rng_state", "memory_stats", "reset_peak_memory_stats", "set_rng_state", "synchronize"):
            if not hasattr(self.module, needed):
                raise InvalidArgument(f"blocks are on {self._device}, of which PyTorch has no {self.type}.{needed}")
        if self._counted(self.module.memory_stats(self._device)) is None:
            raise InvalidArgument(f"blocks are on {self._device}, whose {self.type}.memory_stats counts no bytes of tensors")

    def description(self) -> Dict[str, Any]:
        return {**super().description(), "allocation_granularity_bytes": 512}

    def _model(self) -> str:
        name = getattr(self.module, "get_device_name", None)
        return self.type if name is None else str(name(self._device))

    def settle(self) -> None:
        # Autograd's thread for the device lets go of a backward after the caller goes on; a next one comes after that.
        # This one makes no tensor.
        if self._probe is None:
            self._probe = torch.zeros(1, device=self._device).requires_grad_(), torch.ones(1, device=self._device)
        source, gradient = self._probe
        torch.autograd.grad(source.view(1), source, gradient)

    def warm(self) -> None:
        if self._is_warm:
            return
        self._is_warm = True
        with torch.enable_grad():
            a = torch.zeros(16, 16, device=self._device).requires_grad_()
            torch.autograd.grad(_Products.apply(a).sum(), a)

    def current_bytes(self) -> int:
        return self._stat("current")

    def take_peak_bytes(self) -> int:
        peak = self._stat("peak")
        self.module.reset_peak_memory_stats(self._device)
        return peak

    def thread_bytes(self) -> Optional[int]:
        return None

    def now_ns(self) -> int:
        self.module.synchronize(self._device)
        return super().now_ns()

    def random_state(self, before: Optional[RandomState] = None) -> RandomState:
        own = self.module.get_rng_state(self._device)
        if before is None:
            return _cpu_state(), own
        state = _cpu_state(before[0])
        return before if state is before[0] and torch.equal(own, before[1]) else (state, own)

    def set_random_state(self, state: RandomState) -> None:
        super().set_random_state(state)
        self.module.set_rng_state(state[1], self._device)

    def chosen(self) -> Optional[ContextManager[Any]]:
        scope: ContextManager[Any] = self.module.device(self._device)
        return scope

    def _stat(self, which: str) -> int:
        stats = self.module.memory_stats(self._device)
        return int(stats[f"{self._counted(stats)}.all.{which}"])

    @staticmethod
    def _counted(stats: Dict[str, Any]) -> Optional[str]:
        """What tensors asked for; before PyTorch 2.1, the blocks that they were given."""
        return next((name for name in ("requested_bytes", "allocated_bytes") if f"{name}.all.peak" in stats), None)


def device_of(tensors: Iterable[torch.Tensor]) -> Device:
    """The one device that all these are on; the CPU where there are none. Raises InvalidArgument where there are several."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise InvalidArgument(f"the blocks are on several devices ({', '.join(sorted(map(str, devices)))}), must be one")
    device = devices.pop() if devices else torch.device("cpu")
    if device.type == "meta":
        raise InvalidArgument("the blocks are on the meta device, where nothing runs")
    return Device(device) if device.type == "cpu" else Accelerator(device)
