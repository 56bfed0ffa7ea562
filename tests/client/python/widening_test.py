"""Blocks that are given other arguments while the batch's shape stays, and steps that drift from their prediction."""

import copy
import json

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, step_on
from networks import InnerBackward, Mlp
from stowage import _book
from torch import nn

torch.set_num_threads(1)
ROWS = 128


class Masked(nn.Module):
    """What it holds grows with the rows that it is given beside its input."""

    def __init__(self, width=16):
        super().__init__()
        self.mlp, self.side = Mlp(width), nn.Linear(width, width)

    def forward(self, x, side=None):
        if side is None:
            return self.mlp(x)
        weights = torch.softmax(x @ self.side(side).t(), -1)
        return self.mlp(x + nn.functional.dropout(weights, 0.1) @ torch.tanh(side))


class TwoStacks(nn.Module):
    """The second stack's blocks read rows of its own, of any number. ``trains`` : these have gradients, too."""

    def __init__(self, trains=True, kept=False):
        super().__init__()
        self.first = nn.ModuleList([Masked() for _ in range(3)])
        self.second = nn.ModuleList([InnerBackward(16) if kept and number == 1 else Masked() for number in range(4)])
        self.rows = nn.Parameter(torch.randn(64, 16), requires_grad=trains)

    def forward(self, x, count):
        for block in self.first:
            x = block(x)
        side = None if count is None else self.rows[:count] * 2
        for block in self.second:
            x = block(x) if isinstance(block, InnerBackward) else block(x, side)
        return x


def blocks_of(model):
    return [*model.first, *model.second]


def step_of(count):
    def step(model):
        x = torch.linspace(-1, 1, ROWS * 16).view(ROWS, 16).requires_grad_()
        y = model(x, count)
        y.square().mean().backward()
        return [y, x.grad]

    return step


def kinds(model):
    return [event.kind for event in model.stowage.events]


def within_its_plan(model):
    training = model.stowage
    assert sum(training.recomputed) == training.plan.recomputed_forwards > 0
    assert training.measured_peak_bytes <= training.plan.peak_bytes <= training.plan.budget_bytes


@pytest.mark.parametrize("budget", ["60%", "least"])
@pytest.mark.parametrize("how", [{"trains": True}, {"trains": False}, {"kept": True}], ids=["trained", "given", "kept"])
def test_larger_arguments_of_later_blocks_are_planned_for(how, budget):
    torch.manual_seed(0)
    plain = TwoStacks(**how)
    twin = copy.deepcopy(plain)
    model = stowage.wrap(twin, budget, blocks_of(twin))
    for number, count in enumerate([4, 4, 4, 40, 4, 40, 20, None, 40, None, 64, 64, 4]):
        assert_equal(outcome(model, step_of(count), number), outcome(plain, step_of(count), number))
        if number in (0, 3, 7, 10):  # the first ones, larger ones, and ones without
            assert kinds(model)[-1] in ("measured", "note") and ("widened" in kinds(model)) == (number > 0)
        else:
            within_its_plan(model)
            assert kinds(model)[-1] == "planned" or count == 20 or number in (2, 12)
    assert kinds(model).count("widened") == 3 and len(model.stowage._chain.books) == 1
    assert all(book.plan.budget_bytes >= book.plan.peak_bytes for book in model.stowage._chain.books.values())


def test_while_the_plan_is_left_no_more_is_held_than_where_every_block_runs_again():
    torch.manual_seed(0)
    held = []
    for counts in ((4, 4, 4, 64), (64,)):
        twin = TwoStacks()
        model = stowage.wrap(twin, "least", blocks_of(twin))
        for count in counts:
            outcome(model, step_of(count))
        assert model.stowage.recomputed[3:] == [1] * 4
        held.append(model.stowage.measured_peak_bytes)
    assert held[0] <= held[1]


def measured(plain, folder, counts):
    twin = copy.deepcopy(plain)
    model = stowage.wrap(twin, "least", blocks_of(twin), cache=folder)
    for number, count in enumerate(counts):
        assert_equal(outcome(model, step_of(count), number), outcome(plain, step_of(count), number))
    (file,) = folder.glob("*.json")
    return model, json.loads(file.read_text())


def test_what_an_earlier_process_was_not_given_is_measured_in_the_step_that_gives_it(tmp_path):
    torch.manual_seed(0)
    plain = TwoStacks()
    first, before = measured(plain, tmp_path, (16, 16))
    smaller, same = measured(plain, tmp_path, (8, 8))
    assert not smaller.stowage.is_measured_here and kinds(smaller)[:2] == ["recorded", "planned"]
    assert same == before
    larger, after = measured(plain, tmp_path, (32, 32))
    assert kinds(larger) == ["recorded", "planned", "widened", *["measured"] * 4, "planned"]
    assert [len(sets) for sets in after["measured"]["arguments"]] == [1, 1, 1, 2, 2, 2, 2]
    again, _ = measured(plain, tmp_path, (32, 8))
    assert kinds(again) == ["recorded", "planned"] and not again.stowage.notes
    for model in (smaller, larger, again):
        within_its_plan(model)
    assert again.stowage.plan.digest == larger.stowage.plan.digest


class Swelling(nn.Module):
    """Takes as much more as the data say, not their shape."""

    def __init__(self):
        super().__init__()
        self.mlp = Mlp(16)

    def forward(self, x):
        times = int(x.detach().flatten()[0].abs().item() // 1000) + 1
        return self.mlp(torch.cat([x] * times))[: len(x)].clone()


def swelling_step(times):
    def step(model):
        x = torch.ones(ROWS, 16)
        x[0, 0] = 1000.0 * (times - 1)
        y = model(x.requires_grad_())
        y.square().mean().backward()
        return [y, x.grad]

    return step


def test_peaks_that_drift_lead_to_another_plan(monkeypatch):
    monkeypatch.setattr(_book, "DRIFT_STEPS", 3)
    monkeypatch.setattr(_book, "DRIFT_TIME", 1e9)
    torch.manual_seed(0)
    plain = nn.Sequential(Swelling(), *[Mlp(16) for _ in range(4)])
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for number, times in enumerate([1] * 5 + [8] * 8):
        assert_equal(outcome(model, swelling_step(times), number), outcome(plain, swelling_step(times), number))
    within_its_plan(model)
    assert kinds(model) == ["measured", "planned", "drift", "measured", "planned"]
    drift = model.stowage.events[2]
    assert "the median peak of 3 steps" in drift.words and "measured anew" in drift.words and drift.step == 7


@pytest.mark.parametrize("cached", [False, True])
def test_times_that_drift_lead_to_two_more_plans_at_most(monkeypatch, tmp_path, cached):
    monkeypatch.setattr(_book, "DRIFT_STEPS", 3)
    monkeypatch.setattr(_book, "DRIFT_TIME", -1.0)  # any time is off
    torch.manual_seed(0)
    plain = nn.Sequential(*[Mlp(16) for _ in range(4)])
    step = step_on(torch.ones(ROWS, 16))
    model = stowage.wrap(copy.deepcopy(plain), "60%", cache=tmp_path if cached else None)
    for number in range(16):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert kinds(model) == ["measured", "planned", "drift"] * 3 + ["drift"]
    assert "the median time of 3 steps" in model.stowage.events[2].words and "that stays" in model.stowage.events[-1].words
    assert model.stowage.is_measured_here and not model.stowage.notes
    within_its_plan(model)
    assert len(list(tmp_path.glob("*.json"))) == int(cached)


def test_what_is_within_its_prediction_is_no_drift():
    class Predicted:
        peak_bytes, makespan_ns = 1000, 1000

    within, beyond = [(1290, 1040, None), (710, 0, None)], [(1310, 0, "time"), (690, 0, "time"), (1000, 1060, "peak")]
    for time_ns, peak_bytes, word in within + beyond:
        drift = _book.Drift()
        for _ in range(2):
            said = [drift.add(time_ns, peak_bytes, Predicted) for _ in range(_book.DRIFT_STEPS)]
            assert said[:-1] == [None] * (_book.DRIFT_STEPS - 1)
            assert said[-1] is None if word is None else f"the median {word}" in said[-1]


def test_what_memory_tells():
    model = stowage.wrap(nn.Sequential(*[Mlp(32) for _ in range(6)]), "80%")
    assert model.stowage.memory == (None, None, None, None, 0, None) and model.stowage.events == []
    for _ in range(2):
        model(torch.ones(8, 32)).sum().backward()
    memory, plan = model.stowage.memory, model.stowage.plan
    assert memory.measured_peak_bytes <= memory.predicted_peak_bytes == plan.peak_bytes <= memory.budget_bytes
    assert memory.plain_peak_bytes == plan.store_all_peak_bytes
    assert [event.step for event in model.stowage.events] == [1, 2]
