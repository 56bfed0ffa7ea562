"""How memory of a device goes to the host and back, and the host memory that it is in meanwhile."""

from __future__ import annotations

import mmap
import warnings
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from stowage._device import Accelerator, Device
from stowage._versions import storage_bytes
from stowage.errors import InvalidArgument

Pairs = List[Tuple[torch.Tensor, torch.Tensor]]  # of memory that is written and memory that is read

SHORT_BYTES, LONG_BYTES = 4 << 10, 8 << 20  # of copies that are measured


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """All bytes of the tensor's storage."""
    count = storage_bytes(tensor) // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0).view(torch.uint8)


def system_memory(size_bytes: int) -> torch.Tensor:
    """That is no tensor's own: bytes of tensors, which budgets are of, do not count it."""
    if size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    return torch.frombuffer(mmap.mmap(-1, size_bytes), dtype=torch.uint8)


class Arrival:
    """Of copies that were begun together: what compute is asked for after ``join`` comes after them."""

    def join(self) -> None:
        pass


class Copies:
    """On the CPU copies are made when they start."""

    duplex = "DUPLEX_HALF"

    def __init__(self, device: Device) -> None:
        self._device = device

    def host_memory(self, size_bytes: int) -> torch.Tensor:
        return system_memory(size_bytes)

    def device_memory(self, size_bytes: int) -> torch.Tensor:
        return torch.empty(size_bytes, dtype=torch.uint8, device="cpu")

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether it is on the device, and so may go to the host."""
        return bool(tensor.device.type == "cpu" and tensor.layout == torch.strided)

    def to_host(self, pairs: Pairs) -> Arrival:
        """From the second of each pair into the first, which nobody touches until the arrival is joined."""
        for into, source in pairs:
            into.copy_(source)
        return Arrival()

    def to_device(self, pairs: Pairs, _: Arrival) -> Arrival:
        """After that arrival, as copies to the host."""
        return self.to_host(pairs)

    def settle(self) -> None:
        """Waits for all copies that were begun."""

    def measured_link(self, host_bytes: int) -> Dict[str, Any]:
        """The link to so much host memory, as profiles have it, by the times of copies."""
        short, long = self._times_ns(SHORT_BYTES), self._times_ns(LONG_BYTES)
        link = {"duplex": self.duplex, "host_memory_bytes": host_bytes}
        for way, least_ns, taken_ns in zip(("to_host", "to_device"), short, long):
            latency_ns = self._latency_ns(least_ns)
            link[f"{way}_latency_ns"] = latency_ns
            link[f"{way}_bytes_per_second"] = max(1, LONG_BYTES * 10**9 // max(1, taken_ns - latency_ns))
        return link

    def _latency_ns(self, least_ns: int) -> int:
        return 0

    def _times_ns(self, size_bytes: int) -> Tuple[int, int]:
        """Of a copy to the host and of one back."""
        memory, host = self.device_memory(size_bytes).zero_(), self.host_memory(size_bytes)
        times_ns: Tuple[List[int], List[int]] = ([], [])
        for _ in range(3):
            begun_ns = self._device.now_ns()
            arrival = self.to_host([(host, memory)])
            arrival.join()
            left_ns = self._device.now_ns()
            self.to_device([(memory, host)], arrival).join()
            times_ns[0].append(left_ns - begun_ns)
            times_ns[1].append(self._device.now_ns() - left_ns)
        return min(times_ns[0]), min(times_ns[1])


class _Event(Arrival):
    """``compute``: the stream at the copies' start; ``now`` finds that of the thread that joins, where a model has several."""

    def __init__(self, event: Any, compute: Any, now: Callable[[], Any]) -> None:
        self.event = event
        self._compute = compute
        self._now = now

    def join(self) -> None:
        self._compute.wait_event(self.event)
        now = self._now()
        if now != self._compute:
            now.wait_event(self.event)


def _unlock(copies: Copies, runtime: Any, address: int) -> None:
    copies.settle()  # a graph that goes in a cycle with its model may have copies under way
    runtime.cudaHostUnregister(address)


class StreamCopies(Copies):
    """Copies that run beside compute, on a stream for each way. The host waits for none of them.

    A copy begins after what compute was asked for before it. Memory is given back, on either side, only once compute comes
    after the copy: whoever has it next comes later still, on whatever stream.
    """

    duplex = "DUPLEX_FULL"

    def __init__(self, device: Accelerator) -> None:
        super().__init__(device)
        self._module = device.module
        self._where = device.where
        self._streams: Dict[str, Any] = {}
        self._locks = hasattr(self._module, "cudart")
        for needed in ("Stream", "current_stream", "stream"):
            if not hasattr(self._module, needed):
                words = f"host_budget: blocks are on {self._where}, of which PyTorch has no {device.type}.{needed}"
                raise InvalidArgument(words)

    def host_memory(self, size_bytes: int) -> torch.Tensor:
        """Page-locked where PyTorch has the call for it: of exactly that size, where its own allocator takes powers of two."""
        memory = system_memory(size_bytes)
        if size_bytes > 0 and self._locks:
            runtime = self._module.cudart()
            with self._module.device(self._where):
                self._locks = int(runtime.cudaHostRegister(memory.data_ptr(), size_bytes, 0)) == 0
                if not self._locks:
                    self._forget_error()
                    words = f"stowage: {size_bytes} bytes of host memory cannot be page-locked: compute waits for copies"
                    warnings.warn(words, stacklevel=2)
            if self._locks:
                weakref.finalize(memory, _unlock, self, runtime, memory.data_ptr()).atexit = False
        return memory

    def _forget_error(self) -> None:
        """Of a call of the runtime, which the next kernel would be blamed for."""
        try:
            torch.zeros(1, device=self._where).add_(1)
        except RuntimeError:
            pass

    def is_here(self, tensor: torch.Tensor) -> bool:
        return bool(tensor.device == self._where and tensor.layout == torch.strided)

    def device_memory(self, size_bytes: int) -> torch.Tensor:
        return torch.empty(size_bytes, dtype=torch.uint8, device=self._where)

    def to_host(self, pairs: Pairs) -> Arrival:
        return self._copy("to_host", pairs)

    def to_device(self, pairs: Pairs, after: Arrival) -> Arrival:
        return self._copy("to_device", pairs, after)

    def settle(self) -> None:
        self._module.synchronize(self._where)

    def _compute(self) -> Any:
        return self._module.current_stream(self._where)

    def _copy(self, way: str, pairs: Pairs, after: Optional[Arrival] = None) -> Arrival:
        compute = self._compute()
        if way not in self._streams:
            self._streams[way] = self._module.Stream(device=self._where)
        stream = self._streams[way]
        stream.wait_stream(compute)
        if isinstance(after, _Event):
            stream.wait_event(after.event)
        with self._module.stream(stream):
            for into, source in pairs:
                into.copy_(source, non_blocking=True)
        return _Event(stream.record_event(), compute, self._compute)

    def _latency_ns(self, least_ns: int) -> int:
        return least_ns


def copies_of(device: Device) -> Copies:
    """Raises InvalidArgument where PyTorch has no streams of the device."""
    return StreamCopies(device) if isinstance(device, Accelerator) else Copies(device)


def slowest_of(links: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """What all of these links can do."""
    full = all(link["duplex"] == StreamCopies.duplex for link in links)
    slowest: Dict[str, Any] = {"duplex": StreamCopies.duplex if full else Copies.duplex}
    for name in links[0].keys() - {"duplex"}:
        of_all = [int(link[name]) for link in links]
        slowest[name] = max(of_all) if name.endswith("_latency_ns") else min(of_all)
    return slowest


class HostPool:
    """Host memory for what is away. What comes back leaves its memory for the next, as far as the limit allows."""

    def __init__(self, limit_bytes: int, copies: Copies) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self.copies = copies
        self.offloaded_bytes = 0  # all that was copied here, and back
        self.prefetched_bytes = 0
        self.has_grown = False  # since somebody has set it
        self._free: Dict[int, List[torch.Tensor]] = {}

    def take(self, size_bytes: int) -> torch.Tensor:
        free = self._free.get(size_bytes)
        if free:
            memory = free.pop()
            if not free:
                del self._free[size_bytes]
            return memory
        while self._held_bytes + size_bytes > self._limit_bytes and self._free:
            largest = max(self._free)
            self._drop(self._free[largest].pop())
            if not self._free[largest]:
                del self._free[largest]
        memory = self.copies.host_memory(size_bytes)
        self._held_bytes += size_bytes
        self.has_grown = True
        return memory

    @property
    def free_bytes(self) -> int:
        return _bytes_of(self._free)

    def give(self, memory: torch.Tensor) -> None:
        if self._held_bytes > self._limit_bytes:  # of forwards that overlapped
            self._drop(memory)
        else:
            self._free.setdefault(memory.numel(), []).append(memory)

    def _drop(self, memory: torch.Tensor) -> None:
        self.copies.settle()
        self._held_bytes -= memory.numel()


def _bytes_of(memories: Mapping[int, Sequence[torch.Tensor]]) -> int:
    return sum(size_bytes * len(of_size) for size_bytes, of_size in memories.items())


class Away:
    """Whole memories that go to the host together and come back together."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool
        self._host: List[torch.Tensor] = []
        self._device: List[torch.Tensor] = []
        self._leaving: List[torch.Tensor] = []
        self._begun: Optional[Arrival] = None  # and not joined
        self._left = Arrival()

    def add(self, memory: torch.Tensor) -> int:
        """Its number."""
        host = self._pool.take(memory.numel())
        self._pool.offloaded_bytes += host.numel()
        self._host.append(host)
        self._leaving.append(memory)
        return len(self._host) - 1

    def leave(self) -> None:
        """Begins the copies of what was added."""
        self._begun = self._left = self._pool.copies.to_host(list(zip(self._host, self._leaving)))
        self._leaving = []

    def fetch(self) -> None:
        """Begins the copies back; all have arrived on the host."""
        self._pool.prefetched_bytes += sum(host.numel() for host in self._host)
        self._device = [self._pool.copies.device_memory(host.numel()) for host in self._host]
        self._begun = self._pool.copies.to_device(list(zip(self._device, self._host)), self._left)

    def join(self) -> None:
        """Compute goes on after the copies that were begun last."""
        if self._begun is not None:
            self._begun.join()
            self._begun = None

    def memory(self, number: int) -> torch.Tensor:
        """On the device again."""
        return self._device[number]

    def let_go(self) -> None:
        """Of the host's memory."""
        self.join()
        for host in self._host:
            self._pool.give(host)
        self._host = []

    def __del__(self) -> None:
        self.let_go()  # of a graph that was thrown away
