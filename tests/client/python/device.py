"""The devices that tests of training are run on: the CPU, and the test device, as PyTorch's module of a GPU would be."""

import contextlib
import types

import pytest
import torch

try:
    import _test_device
except ImportError:
    _test_device = None

NAME = torch.device("privateuseone").type  # newer PyTorchs have the name that the device gives itself


class Stream:
    """As torch.cuda.Stream: what copies go to within ``stream``. Compute's is number 0."""

    def __init__(self, device=None, number=None):
        self._number = _test_device.new_stream() if number is None else number

    def record_event(self):
        return _test_device.record_event(self._number)

    def wait_event(self, event):
        _test_device.wait_event(self._number, event)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    @contextlib.contextmanager
    def chosen(self):
        before = _test_device.choose_stream(self._number)
        try:
            yield
        finally:
            _test_device.choose_stream(before)


def _module():
    module = types.ModuleType(f"torch.{NAME}")
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.device = lambda _: contextlib.nullcontext()
    module.Stream = Stream
    module.current_stream = lambda _=None: Stream(number=0)
    module.stream = Stream.chosen
    module.synchronize = lambda _=None: _test_device.synchronize()
    module.memory_stats = lambda _=None: _test_device.memory_stats()
    module.reset_peak_memory_stats = lambda _=None: _test_device.reset_peak_memory_stats()
    module.get_rng_state = lambda _=None: torch.frombuffer(bytearray(_test_device.get_rng_state()), dtype=torch.uint8)
    module.set_rng_state = lambda state, _=None: _test_device.set_rng_state(bytes(state.tolist()))
    module.manual_seed_all = _test_device.manual_seed
    module._is_in_bad_fork = lambda: False
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    return module


if _test_device is not None and not hasattr(torch, NAME):
    if hasattr(torch, "_register_device_module"):
        torch._register_device_module(NAME, _module())
    else:
        setattr(torch, NAME, _module())


def test_device():
    if _test_device is None:
        pytest.skip("the test device was not built")
    return torch.device(NAME)


def seed(number):
    _test_device.manual_seed(number)


def random_state():
    return getattr(torch, NAME).get_rng_state()


def peak_bytes():
    return getattr(torch, NAME).memory_stats()["requested_bytes.all.peak"]


def waits():
    """How often the host has waited for the test device."""
    return _test_device.waits()


def delay_copies(milliseconds):
    """Copies on streams take so much longer."""
    _test_device.delay_copies(milliseconds)
