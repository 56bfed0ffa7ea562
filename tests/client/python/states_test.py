"""What jobs keep in their checkpoints of the plans that they train by, and how they come back with it."""

import json
import warnings

import pytest
import stowage
import torch
from comparing import outcome, step_on
from ddp_test import loss_of
from fsdp_test import MODELS, sharded
from networks import Mlp
from processes import together
from ranks_test import Pair, out_of_memory
from stowage import _joint_version
from stowage._states import name_of
from stowage.planning import Profile
from torch import nn

torch.set_num_threads(1)
WIDTH = 64


def model_of(budget="60%"):
    torch.manual_seed(4)
    return stowage.wrap(nn.Sequential(*[Mlp(WIDTH) for _ in range(6)]), budget)


def trained(model, steps=3):
    step = step_on(torch.randn(32, WIDTH))
    for number in range(steps):
        outcome(model, step, number)
    return model.stowage


def again(state, budget="60%"):
    """As a new process has it."""
    model = model_of(budget)
    model.stowage.load_state(json.loads(json.dumps(state)))
    return trained(model)


def test_a_restart_goes_on_by_its_plan(monkeypatch):
    first = trained(model_of())
    state = first.state()
    (entry,) = state["plans"].values()
    assert (entry["digest"], entry["revision"], state["ranks"]) == (first.plan.digest, first.plan.revision, 1)
    monkeypatch.setattr(Profile, "plan", None)  # whoever solves here fails
    second = again(state)
    assert second.source == "state" and second.plan.digest == first.plan.digest
    assert second.measured_peak_bytes <= second.plan.budget_bytes
    assert second.state()["plans"].keys() == state["plans"].keys()


@pytest.mark.parametrize("share, source", [(0.99, "state"), (1.01, "state"), (0.97, "local"), (1.03, "local")])
def test_what_else_takes_memory_may_differ_a_little(share, source):
    first = trained(model_of())
    state = first.state()
    (entry,) = state["plans"].values()
    entry["budget_bytes"] = int(share * entry["budget_bytes"])
    second = again(state)
    assert second.source == source and second.plan.budget_bytes == first.plan.budget_bytes


def test_another_budget_is_planned_anew():
    first = trained(model_of())
    second = again(first.state(), "80%")
    assert second.source == "local" and second.plan.budget_bytes > first.plan.budget_bytes


@pytest.mark.parametrize("field, value", [("digest", "0" * 64), ("plan", {"schedule": "none"}), ("plan", 5), ("plan", None)])
def test_a_plan_that_is_none_is_made_anew(field, value):
    state = trained(model_of()).state()
    (entry,) = state["plans"].values()
    entry[field] = value
    second = again(state)
    assert second.source == "local" and second.measured_peak_bytes <= second.plan.budget_bytes


def test_after_memory_ran_out_a_restart_takes_less():
    first = trained(model_of("100%"))
    plan = first.plan
    assert first.state(ValueError("something else"))["plans"] == first.state()["plans"]
    state = first.state(out_of_memory())
    second = again(state, "100%")
    assert second.source == "local" and second.plan.budget_bytes <= int(0.9 * plan.peak_bytes)
    third = again(second.state(), "100%")  # and so does the one after it
    assert third.source == "state" and third.plan.digest == second.plan.digest


def test_what_a_restart_is_held_to_holds_for_its_later_plans():
    first = trained(model_of("100%"))
    model = model_of("100%")
    model.stowage.load_state(first.state(out_of_memory()))
    second = trained(model)
    plan, chain = second.plan, second._chain
    chain._note_drift(chain.last_book, "steps are slower")
    third = trained(model)
    assert third.plan is not plan and third.plan.budget_bytes <= int(0.9 * first.plan.peak_bytes)


def test_the_least_limit_is_what_stays():
    training = trained(model_of())
    book = training._chain.last_book
    book.at_most_bytes, book.reduced_bytes = 2000, 1000
    for error in (None, out_of_memory()):
        (entry,) = training.state(error)["plans"].values()
        assert entry["at_most_bytes"] == 1000


@pytest.mark.parametrize("lacking", [0, 1])
def test_shapes_under_one_schedule_have_one_entry(lacking):
    model = model_of()
    trained(model)
    larger = step_on(torch.randn(64, WIDTH))
    outcome(model, larger, 3)
    training = trained(model)
    chain = training._chain
    chain.name_of = lambda profile, shape: name_of(profile, None)
    books = list(chain.books.values())
    assert len(books) == 2
    outcome(model, larger, 4)
    assert all(book.plan is not None for book in books)
    (entry,) = training.state()["plans"].values()
    assert entry["plan"] is not None and entry["at_most_bytes"] is None
    books[lacking].lacked_memory, books[1 - lacking].reduced_bytes = True, 1 << 40
    (entry,) = training.state()["plans"].values()
    assert entry["plan"] is None and entry["at_most_bytes"] == int(0.9 * books[lacking].plan.peak_bytes)


def test_what_is_no_state_is_refused():
    model = model_of()
    for wrong in ({}, {"version": 1, "ranks": 1, "plans": {"a": 3}}, {"version": 1, "ranks": "x", "plans": {}}, 7):
        with pytest.raises(stowage.InvalidArgument, match="state"):
            model.stowage.load_state(wrong)
    with pytest.raises(stowage.InvalidArgument, match="version = 2"):
        model.stowage.load_state({"version": 2, "ranks": 1, "plans": {}})
    trained(model, 1)
    with pytest.raises(stowage.FailedPrecondition, match="has begun"):
        model.stowage.load_state({"version": 1, "ranks": 1, "plans": {}})


# -------------------------------------------------------------------- ranks


def job(rank, states, steps=4):
    """Equal to plain training; the state, and how many plans this rank has made."""
    made = []
    solve = Profile.plan
    Profile.plan = lambda *args, **how: made.append(1) or solve(*args, **how)
    pair = Pair(rank, "60%")
    if states is not None:
        pair.training.load_state(states[rank])
    equal = [pair.step() for _ in range(steps)]
    plan = pair.training.plan
    return all(equal) and pair.fits, pair.training.state(), len(made), pair.training.source, plan.digest


def test_ranks_come_back_to_their_plan():
    first = together(2, job, None)
    second = together(2, job, [state for _, state, *_ in first])
    assert all(well for well, *_ in first + second)
    assert [made for _, _, made, *_ in second] == [0, 0]
    assert {source for *_, source, _ in second} == {"state"}
    assert len({digest for *_, digest in first + second}) == 1


@pytest.mark.parametrize("before, after", [(3, 2), (2, 3)])
def test_another_number_of_ranks_plans_once(before, after):
    states = [state for _, state, *_ in together(before, job, None)]
    found = together(after, job, [states[rank % before] for rank in range(after)])
    assert all(well for well, *_ in found)
    # The plan of all, and that for the slowest rank at most.
    assert found[0][2] >= 1 and sum(made for _, _, made, *_ in found) <= 2
    assert {source for *_, source, _ in found} == {"local"} and len({digest for *_, digest in found}) == 1


def lacks_memory_once(rank):
    pair = Pair(rank, "100%")
    for _ in range(3):
        pair.step()
    peak_bytes = pair.training.plan.peak_bytes
    if rank == 1:
        pair.model[2].raises(out_of_memory(), 1)
    for _ in range(3):
        pair.step()
    return peak_bytes, pair.training.state()


def resumed(rank, states, budget="100%", make=Pair):
    pair = make(rank, budget)
    pair.training.load_state(states[rank])
    equal = [pair.step() for _ in range(4)]
    plan = pair.training.plan
    return all(equal) and pair.fits, pair.training.source, plan.budget_bytes, plan.digest


def test_another_number_of_ranks_takes_no_more_than_was_left():
    before = together(3, lacks_memory_once)
    for well, source, budget_bytes, _ in together(2, resumed, [state for _, state in before[1:]]):
        assert well and source == "local" and budget_bytes <= int(0.9 * before[1][0])


def lacks_memory_sharded(rank, at, states):
    """A rank that runs out of memory ends; the others end, too, when they miss it."""
    warnings.simplefilter("ignore")
    make, words = MODELS["vectors"]
    model = stowage.wrap(sharded(make), "100%")
    if states is not None:
        model.stowage.load_state(states[rank])
    layer = model.layers[2]
    inner, calls = layer.up.forward, []

    def forward(x):
        if model.stowage.plan is not None:
            calls.append(1)
        if rank == 1 and len(calls) == at:
            raise out_of_memory()
        return inner(x)

    layer.up.forward = forward
    try:
        for step in range(5):
            loss_of(model(words(step, rank))).backward()
        return model.stowage.plan.digest, model.stowage.plan.peak_bytes, model.stowage.state()
    except BaseException as error:
        if model.stowage.plan is None:
            raise
        return str(error), model.stowage.plan.peak_bytes, model.stowage.state(error)


@pytest.mark.skipif(not _joint_version.is_here(), reason="fully_shard is tested on PyTorch from 2.11 on")
def test_memory_that_runs_out_under_fully_shard():
    first, second = together(2, lacks_memory_sharded, 2, None)
    assert "out of memory" in second[0] and "out of memory" not in first[0]
    before = second[1]
    third, fourth = together(2, lacks_memory_sharded, -1, [first[2], second[2]])
    assert third[0] == fourth[0] and third[1] == fourth[1] <= 0.9 * before
