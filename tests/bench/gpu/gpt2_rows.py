#!/usr/bin/env python3
"""Trains GPT-2 from Python, plain and by the plans of stowage.wrap, and appends what was measured, a row at a time.

usage: gpt2_rows.py --rows=FILE [--device=cuda|cuda:N|test] [--toy]

Rows gpt2_python/recompute/BUDGET, and gpt2_python/joint/BUDGET with copies to host memory; those that the file has are left out. Where this Python cannot train so, one row says why.
"""
import argparse
import functools
import gc
import json
import math
import os
import pathlib
import statistics
import sys
import time
import warnings

NAME = "gpt2_python"
BUDGETS = {"recompute": ["80%", "60%", "40%", "least"], "joint": ["60%", "least"]}
HOST = {"recompute": {}, "joint": {"host_budget": "16GiB"}}


class CannotRun(Exception):
    """What this Python lacks."""


def imported():
    """The package, and PyTorch."""
    try:
        import stowage
        import torch

        return (stowage, torch) if stowage.wrap else None  # what it needs is imported where it is first asked for
    except ImportError as error:
        raise CannotRun(f"{sys.executable}: {error}") from error


class Gpu:
    """A GPU: its memory is the allocator's, its waits what PyTorch warns of as synchronizing calls."""

    rounds = 5

    def __init__(self, torch, name):
        self.torch, self.device, self.module = torch, torch.device(name), torch.cuda
        if not torch.cuda.is_available():
            raise CannotRun("PyTorch sees no GPU")
        torch.cuda.set_device(self.device.index or 0)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or PyTorch refuses cuBLAS in that mode
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True)  # with warnings alone attention sums in any order
        if hasattr(torch.utils, "deterministic"):
            torch.utils.deterministic.fill_uninitialized_memory = False  # a kernel for each new tensor

    def timed(self, step):
        """Nanoseconds of a step that the GPU begins when it is done with the one before, as in training."""
        start, end = (self.module.Event(enable_timing=True) for _ in range(2))
        step()
        start.record()
        step()
        end.record()
        end.synchronize()
        return int(start.elapsed_time(end) * 1e6)

    def waits(self, call):
        self.module.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                call()
        finally:
            self.module.set_sync_debug_mode("default")
        return sum("synchronizing" in str(one.message) for one in said)


class TestDevice:
    """The device of tests/client/device, by the module that its Python tests make of it."""

    rounds = 1

    def __init__(self, torch):
        try:
            import device as testing
        except ImportError as error:
            raise CannotRun(f"the test device was not built for this Python: {error}") from error
        if testing._test_device is None:
            raise CannotRun("the test device was not built for this Python")
        self.device, self.module, self.testing = testing.test_device(), getattr(torch, testing.NAME), testing

    def timed(self, step):
        self.module.synchronize()
        start = time.perf_counter_ns()
        step()
        self.module.synchronize()
        return time.perf_counter_ns() - start

    def waits(self, call):
        before = self.testing.waits()
        call()
        return self.testing.waits() - before


def gpt2(torch, layers, width, heads, length, vocabulary):
    """The network of Radford et al. 2019: blocks that the plans recompute, in a ModuleList, and what is around them."""
    nn, functional = torch.nn, torch.nn.functional

    def attend(q, k, v, later):
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
        return scores.softmax(-1) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)
            self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

        def forward(self, x):
            shape = (*x.shape[:2], heads, width // heads)
            q, k, v = (part.view(shape).transpose(1, 2) for part in self.attention(self.before(x)).split(width, -1))
            x = x + self.dropout(self.projection(attend(q, k, v, self.later).transpose(1, 2).reshape(x.shape)))
            return x + self.dropout(self.down(functional.gelu(self.up(self.between(x)), approximate="tanh")))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)

        def forward(self, words):
            x = self.words(words) + self.places.weight[: words.shape[1]]
            for block in self.blocks:
                x = block(x)
            scores = functional.linear(self.norm(x), self.words.weight)
            return functional.cross_entropy(scores[:, :-1].reshape(-1, vocabulary), words[:, 1:].reshape(-1))

    return Gpt2()


class Measurement:
    """Plain training and training by a plan of two twins."""

    def __init__(self, stowage, torch, site, toy):
        self.stowage, self.torch, self.site = stowage, torch, site
        sizes = {"layers": 24, "width": 1024, "heads": 16, "length": 1024, "vocabulary": 50257}
        if toy:
            sizes = {"layers": 5, "width": 32, "heads": 4, "length": 16, "vocabulary": 100}
        self.batch = 2 if toy else 8
        words = torch.arange(self.batch * sizes["length"]).view(self.batch, -1) * 7 % sizes["vocabulary"]
        self.words = words.to(site.device)
        self.plain, self.twin = (self._made(sizes) for _ in range(2))
        self.plain_outcome = self._outcome(self.plain)
        self.plain_repeats = self._equal(self._outcome(self.plain), self.plain_outcome)

    def _made(self, sizes):
        self.torch.manual_seed(0)
        return gpt2(self.torch, **sizes).to(self.site.device).train()

    def _step(self, model):
        model.zero_grad(set_to_none=True)
        loss = model(self.words)
        loss.backward()
        return loss

    def _outcome(self, model, seed=7):
        """Loss, gradients and random states, on the host."""
        self.torch.manual_seed(seed)
        self.site.module.manual_seed_all(seed)
        loss = self._step(model).detach()
        left = [loss, *(parameter.grad for parameter in model.parameters()), self.site.module.get_rng_state()]
        return [*(tensor.cpu() for tensor in left), self.torch.get_rng_state()]

    def _equal(self, one, other):
        return all(self.torch.equal(a, b) for a, b in zip(one, other))

    def row(self, kind, budget):
        row = {"row": f"{NAME}/{kind}/{budget}"}
        model = self.stowage.wrap(self.twin, budget, **HOST[kind])
        try:
            self._step(model)  # measures the blocks
            gc.collect()
            equal = self._equal(self._outcome(model), self.plain_outcome)  # the first by the plan, whose peak is measured
            training, plan = model.stowage, model.stowage.plan
            peak, reserved = training.measured_peak_bytes, self.site.module.memory_stats().get("reserved_bytes.all.peak", 0)
            waits = self.site.waits(lambda: self._step(model)) - self.site.waits(lambda: self._step(self.plain))
            steps = [functools.partial(self._step, one) for one in (self.plain, model)]
            pairs = [tuple(self.site.timed(step) for step in steps) for _ in range(self.site.rounds)]
            ratios = [plain / planned for plain, planned in pairs]
            row.update(
                form="blocks", solver=plan.solver, batch=self.batch, budget_bytes=plan.budget_bytes, predicted_peak_bytes=plan.peak_bytes,
                peak_bytes=peak, peak_of_prediction=peak / plan.peak_bytes, reserved_peak_bytes=reserved,
                plain_peak_bytes=plan.store_all_peak_bytes, recomputed=sum(training.recomputed), planned_recomputes=plan.recomputed_forwards,
                offloaded_bytes=training.offloaded_bytes,
                equal=equal, plain_repeats=self.plain_repeats, waits_beyond_plain=waits,
                step_ns=int(statistics.median(planned for _, planned in pairs)),
                plain_step_ns=int(statistics.median(plain for plain, _ in pairs)),
                throughput_of_plain=statistics.median(ratios), throughput_low=min(ratios), throughput_high=max(ratios),
            )
        except self.stowage.Infeasible as error:
            row["no_plan"] = f"the least is {error.least_bytes} bytes"
        finally:
            self.stowage.unwrap(model)
        return row


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=pathlib.Path, required=True, help="file that rows are appended to")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or test, the test device (default: %(default)s)")
    parser.add_argument("--toy", action="store_true", help="a small network, and one round: to see that all of it runs")
    options = parser.parse_args(arguments)
    lines = options.rows.read_text().splitlines() if options.rows.exists() else []
    known = {row["row"] for row in map(json.loads, lines) if "error" not in row}

    def append(row):
        with options.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")

    try:
        stowage, torch = imported()
        torch.set_num_threads(1)
        site = TestDevice(torch) if options.device == "test" else Gpu(torch, options.device)
    except CannotRun as why:
        append({"row": NAME, "skipped": str(why)})
        print(f"{NAME}: skipped: {why}")
        return 0
    wanted = [(kind, budget) for kind, budgets in BUDGETS.items() for budget in budgets if f"{NAME}/{kind}/{budget}" not in known]
    measurement = Measurement(stowage, torch, site, options.toy) if wanted else None
    failed = False
    for kind, budget in wanted:
        try:
            append(measurement.row(kind, budget))
        except Exception as error:  # the next row may do
            failed = True
            append({"row": f"{NAME}/{kind}/{budget}", "error": f"{type(error).__name__}: {error}"})
    return 1 if failed else 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Autograd's thread for the device may let go of a graph that Python has made after the interpreter has ended, which aborts.
    os._exit(code)
