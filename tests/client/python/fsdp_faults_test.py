"""What happens to one of two ranks that share parameters (fully_shard): all go on by one plan, bit for bit, or all end in time.

Each fault comes with several seeds, on another rank, in another step and block.
"""

import signal
import time

import pytest
import torch
from fsdp_test import Net, sharded
from processes import SEEDS, Failed, Killed, misses_another, outcomes, together, within
from ranks_test import (
    FAULT_STEPS,
    GIVES_UP_S,
    SLACK_S,
    WIDTH,
    Ill,
    NoRoomForGradients,
    Pair,
    check_new_shape,
    check_other_version,
    check_server_away,
    comes,
    killed,
    new_shape_on_one,
    other_version,
    out_of_memory,
    slow,
    step_of,
    too_slow,
)
from states_test import resumed
from stowage import _joint_version

torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(not _joint_version.is_here(), reason="fully_shard is tested on PyTorch from 2.11 on")
LIMITS = {"group_s": GIVES_UP_S, "deadline_s": 60}
BUDGETS = {"forward": "100%", "recompute": "70%", "backward": "70%"}


class Frail(Ill):
    """Memory may run out in its backward, too."""

    def __init__(self):
        super().__init__()
        self.told = False

    def forward(self, x):
        return super().forward(NoRoomForGradients.apply(x, self.told))


class Shared(Pair):
    """A model with plans and its twin without, of parameters that the ranks share."""

    def __init__(self, rank, budget="70%", **how):
        super().__init__(rank, budget, **how)

    def twins(self):
        return [sharded(lambda: Net(WIDTH, lambda _: Frail())) for _ in range(2)]

    def parallel_of(self, model):
        return model

    @property
    def blocks(self):
        return list(self.model.layers)

    def lacks(self, where, seed):
        """Has memory run out in the next step."""
        if where == "backward":
            self.block_of("forward", seed).told = True
        else:
            self.block_of(where, seed).raises(out_of_memory(), 1 if where == "forward" else 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_rank_that_is_killed_ends_the_other(how, seed):
    found = outcomes(2, killed, seed, how, Shared, **LIMITS)
    assert isinstance(found[seed % 2], Killed)
    assert misses_another(found[1 - seed % 2]), found


def lacks_memory(rank, where, seed):
    """What this rank ended by, the steps before it, and what is left for a restart."""
    pair = Shared(rank, BUDGETS[where])
    equal = []
    try:
        for step in range(FAULT_STEPS):
            if comes(rank, step, seed):
                pair.lacks(where, seed)
            with within(GIVES_UP_S + SLACK_S):
                equal.append(pair.step())
    except BaseException as error:
        if pair.training.plan is None:
            raise
        plan = pair.training.plan
        return f"{type(error).__name__}: {error}", equal, plan.digest, plan.peak_bytes, pair.training.state(error)
    raise AssertionError("no rank has ended")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("where", BUDGETS)
def test_memory_that_runs_out_on_one_rank_ends_all_and_a_restart_takes_less(where, seed):
    found = together(2, lacks_memory, where, seed, **LIMITS)
    said = [of_rank[0] for of_rank in found]
    assert "out of memory" in said[seed % 2]
    assert misses_another(said[1 - seed % 2]), said
    assert all(equal == [True] * step_of(seed) for _, equal, *_ in found)
    before = {(digest, peak_bytes) for _, _, digest, peak_bytes, _ in found}
    assert len(before) == 1
    ((_, peak_bytes),) = before
    again = together(2, resumed, [of_rank[-1] for of_rank in found], BUDGETS[where], Shared)
    assert all(well and budget_bytes < peak_bytes for well, _, budget_bytes, _ in again)
    assert len({digest for *_, digest in again}) == 1


def lacks_memory_while_measured(rank, seed):
    pair, failed_at = Shared(rank), []

    def lack():
        failed_at.append(time.monotonic())
        raise out_of_memory()

    if rank == seed % 2:
        pair.block_of("forward", seed).does(lack, 4)
    with within(GIVES_UP_S + SLACK_S):  # the other one waits within the forward, and hears nothing
        try:
            pair.step()
        finally:
            assert not failed_at or time.monotonic() - failed_at[0] < GIVES_UP_S - 1, "it was late"


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_that_runs_out_while_one_rank_measures_is_its_error_at_once(seed):
    found = outcomes(2, lacks_memory_while_measured, seed, **LIMITS)
    lacking, other = found[seed % 2], found[1 - seed % 2]
    assert "out of memory" in str(lacking).partition("\n")[0], found
    assert isinstance(other, Failed) and misses_another(other), found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_shape_on_one_rank_is_measured_by_all(seed):
    check_new_shape(*together(2, new_shape_on_one, seed, Shared))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_rank_is_waited_for(seed):
    found = together(2, slow, seed, Shared)
    assert all(all(equal) and fits for equal, _, fits in found)
    assert len({digest for _, digest, _ in found}) == 1


def test_a_rank_that_stands_still_is_given_up(tmp_path):
    for outcome in outcomes(2, too_slow, str(tmp_path), Shared, **LIMITS):
        assert isinstance(outcome, Failed) and misses_another(outcome), outcome


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_of_different_versions_are_refused(seed):
    check_other_version(outcomes(2, other_version, seed % 2, Shared), seed % 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_is_there_is_away_for_one_rank(seed):
    check_server_away(2, seed % 2, Shared)
