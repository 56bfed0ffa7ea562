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


def _module():
    module = types.ModuleType(f"torch.{NAME}")
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.device = lambda _: contextlib.nullcontext()
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
