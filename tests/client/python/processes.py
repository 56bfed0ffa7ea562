"""Ranks of a job of torch.distributed on this machine, for tests."""

import contextlib
import datetime
import multiprocessing
import os
import pathlib
import re
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

try:
    import torch._dynamo  # optimizers import it, in each rank
except ImportError:
    pass

GROUP_S = 20  # within which a rank that waits for another gives up
DEADLINE_S = 100  # of all ranks together
SEEDS = [3 * int(os.environ.get("STOWAGE_SOAK_RUN", "0")) + number for number in (1, 2, 3)]  # of faults; others in each soak

_start = multiprocessing.get_context("fork")  # torch is imported already; no thread of its own runs yet


@contextlib.contextmanager
def within(seconds):
    """Of a rank: what fails in it fails by then, or the failure is that it hangs."""
    began = time.monotonic()
    try:
        yield
    except BaseException as error:
        if time.monotonic() - began > seconds:
            raise AssertionError(f"it hangs: {time.monotonic() - began:.0f} s until {error!r}") from error
        raise


class Killed(Exception):
    """A rank ended without a word."""


class Failed(Exception):
    """What a rank raised: its type's name, then its text."""


# As stowage says it, and as gloo does: of a connection that it reads, of one that it writes, of one that stands still.
_MISSES = re.compile("another rank is gone|by peer|roken pipe|imed out")


def misses_another(said):
    """Of what a rank ended by, a Failed or its text: whether it ended in time, since another rank does not come."""
    first_line = str(said).partition("\n")[0]
    return "it hangs" not in first_line and _MISSES.search(first_line) is not None


def _rank(function, arguments, rank, ranks, folder, group_s, pipe):
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=ranks,
            timeout=datetime.timedelta(seconds=group_s),
        )
        pipe.send((True, function(rank, *arguments)))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))
    pipe.close()
    os._exit(0)  # nothing of the process that this one is a copy of is to be torn down


def outcomes(ranks, function, *arguments, group_s=GROUP_S, deadline_s=DEADLINE_S):
    """What function(rank, *arguments) returns on each rank, by rank; a Failed or a Killed in its place. None outlives this."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "store").touch()
        started = []
        for rank in range(ranks):
            mine, theirs = _start.Pipe(duplex=False)
            process = _start.Process(target=_rank, args=(function, arguments, rank, ranks, folder, group_s, theirs))
            process.start()
            theirs.close()
            started.append((process, mine))
        until = time.monotonic() + deadline_s
        try:
            return [_outcome(pipe, until) for _, pipe in started]
        finally:
            for process, _ in started:
                process.kill()
                process.join()


def _outcome(pipe, until):
    if not pipe.poll(max(0.0, until - time.monotonic())):
        return Failed("it hangs")
    try:
        well, said = pipe.recv()
    except EOFError:
        return Killed()
    return said if well else Failed(said)


def together(ranks, function, *arguments, **how):
    """As outcomes; raises what a rank failed with."""
    returned = outcomes(ranks, function, *arguments, **how)
    failed = [f"rank {rank}: {type(o).__name__} {o}" for rank, o in enumerate(returned) if isinstance(o, Exception)]
    if failed:
        raise AssertionError("\n".join(failed))
    return returned
