"""Shapes of batches and modes of modules: each has its plan, and what it takes to get there."""

import copy

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, profiled, step_on
from networks import Mlp
from torch import nn

torch.set_num_threads(1)


def test_every_shape_of_batch_has_its_plan():
    plain = nn.Sequential(*[Mlp(16) for _ in range(4)])
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for batch in (4, 8, 4, 8, 4, 4, 4):
        step = step_on(torch.ones(batch, 16))
        assert_equal(outcome(model, step), outcome(plain, step))
    assert len(model.stowage._chain.books) == 2
    small, large = (book.plan for book in model.stowage._chain.books.values())
    assert small.store_all_peak_bytes < large.store_all_peak_bytes


class Counted(Mlp):
    def __init__(self, width):
        super().__init__(width)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_blocks_of_a_kind_are_measured_in_fewer_rounds():
    widths = [64, 64, 64, 64]
    model = stowage.wrap(nn.Sequential(*[Counted(width) for width in widths]), "least")
    step_on(torch.ones(8, 64))(model)
    first, *others = [block.calls for block in model]
    assert first > others[0] and len(set(others)) == 1
    assert first - others[0] == others[0] - 3, "one round more; else the forward, its recompute, and a look at its state"
    model[2].eval()
    for block in model:
        block.calls = 0
    step_on(torch.ones(8, 64))(model)
    assert [block.calls for block in model] == [first, others[0], first, others[0]], "in another mode"


@pytest.mark.parametrize("changed", ["counts", "writes"])
@pytest.mark.parametrize("budget", ["60%", "least"])
def test_blocks_that_no_longer_do_the_same_are_found(changed, budget):
    """Results are plain training's throughout; what cannot be recomputed raises once, and is kept from then on."""
    torch.manual_seed(0)
    plain = nn.Sequential(*[WideFrom(64) for _ in range(6)])
    plain[3].rows = 48
    setattr(plain[3], changed, True)
    model = stowage.wrap(copy.deepcopy(plain), budget)
    raised = 0
    for rows in (32, 32, 64, 64, 64, 64, 64):
        step = step_on(torch.randn(rows, 64))
        try:
            assert_equal(outcome(model, step), outcome(plain, step))
        except stowage.ExecutionError as error:
            raised += 1
            assert "writes over an argument" in str(error)
    assert raised == (changed == "writes") and (4 in model.stowage.kept) == (changed == "writes")
    assert kinds(model).count("drift") == 1 and kinds(model)[-2:] == ["measured", "planned"]
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


def test_what_does_not_fit_by_the_largest_of_blocks_that_were_alike_is_measured_by_each():
    torch.manual_seed(0)
    plain = nn.Sequential(*[WideFrom(64) for _ in range(6)])
    plain[0].rows = 48  # whose costs the others have at first
    wide = profiled(plain, step_on(torch.ones(64, 64)), "least").stowage
    by_each = wide.profile.budget_bytes("least", recompute_only=True)
    model = stowage.wrap(copy.deepcopy(plain), by_each)
    calls = calls_in_the_first_larger_batch(model, plain)
    assert calls[1:] == [2] * 5
    assert kinds(model) == ["measured", "planned", "measured", "drift", "measured", "planned"]
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes <= by_each


def kinds(model):
    return [event.kind for event in model.stowage.events]


class WideFrom(Counted):
    """As the others of its class, until a batch has so many rows: then it saves more, counts, or writes over its input."""

    rows = 1 << 30
    counts = writes = False

    def __init__(self, width):
        super().__init__(width)
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, x):
        is_wide = x.shape[0] >= self.rows
        if is_wide and self.writes:
            x = x.mul_(0.5)
        y = super().forward(x)
        if is_wide and self.counts:
            self.batches += 1
            return y
        for _ in range(8 if is_wide and not self.writes else 0):
            y = y.exp().sin()
        return y


def calls_in_the_first_larger_batch(model, plain):
    """Of each block, after training with 32 rows. Three steps with 64 are as plain ones."""
    calls = []
    for rows in (32, 32, 64, 64, 64):
        step = step_on(torch.randn(rows, 64))
        before = [block.calls for block in model]
        assert_equal(outcome(model, step), outcome(plain, step))
        calls.append([block.calls - was for block, was in zip(model, before)])
    return calls[2]


def test_of_blocks_that_took_the_same_one_is_measured_for_a_larger_batch():
    torch.manual_seed(0)
    plain = nn.Sequential(*[WideFrom(64) for _ in range(6)])
    plain[1].rows = plain[3].rows = 0
    model = stowage.wrap(copy.deepcopy(plain), "60%")
    counted, wide, *others = calls_in_the_first_larger_batch(model, plain)
    assert counted > 2 and wide > 2 and others == [2] * 4, "the forward and its recompute"
    training = model.stowage
    assert [event.kind for event in training.events] == ["measured", "planned", "measured", "planned"]
    assert training.measured_peak_bytes <= training.plan.peak_bytes
    stages = training.profile.to_dict()["chain"]["stages"]
    assert [stage["name"] for stage in stages] == [f"block {number}" for number in range(1, 7)]
    assert [stage["saved_bytes"] for stage in stages] == [stages[number]["saved_bytes"] for number in (0, 1, 0, 1, 0, 0)]
    assert stages[0]["saved_bytes"] < stages[1]["saved_bytes"]
    alone = profiled(plain, step_on(torch.ones(64, 64))).stowage.profile.to_dict()["chain"]["stages"]
    for stage, expected in zip(stages, alone):
        same = {name: value for name, value in expected.items() if not name.endswith("_ns")}
        assert {name: stage[name] for name in same} == same, "what is measured by itself"


def test_blocks_that_no_longer_take_the_same_are_found_by_the_first_step():
    torch.manual_seed(0)
    plain = nn.Sequential(*[WideFrom(64) for _ in range(6)])
    plain[3].rows = 48
    model = stowage.wrap(copy.deepcopy(plain), "100%")
    calls = calls_in_the_first_larger_batch(model, plain)
    assert calls[1:] == [2] * 5
    kinds = [event.kind for event in model.stowage.events]
    assert kinds == ["measured", "planned", "measured", "planned", "drift", "measured"]
    step = step_on(torch.randn(64, 64))
    assert_equal(outcome(model, step), outcome(plain, step))
    training = model.stowage
    stages = training.profile.to_dict()["chain"]["stages"]
    assert stages[3]["saved_bytes"] > stages[2]["saved_bytes"]
    assert training.measured_peak_bytes <= training.plan.peak_bytes


@pytest.mark.parametrize("budget", ["80%", "least"])
def test_a_smaller_batch_trains_twice_by_the_plan_for_a_larger_one(budget):
    torch.manual_seed(0)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    model = stowage.wrap(copy.deepcopy(plain), budget)

    def train(rows):
        step = step_on(torch.randn(rows, 64))
        assert_equal(outcome(model, step), outcome(plain, step))
        return model.stowage

    for rows in (48, 48, 32, 32, 32, 32):  # the smaller one is measured in its third step
        training = train(rows)
    assert kinds(model) == ["measured", "planned", "by larger", "measured", "planned"]
    medium = training.plan
    for _ in range(2):
        training = train(24)
        assert training.plan is medium, "the smallest that is larger"
        assert sum(training.recomputed) == medium.recomputed_forwards
        assert training.measured_peak_bytes <= medium.peak_bytes
    train(24)
    assert kinds(model)[5:] == ["by larger", "measured"]
    training = train(24)
    assert training.plan.store_all_peak_bytes < medium.store_all_peak_bytes
    assert training.measured_peak_bytes <= training.plan.peak_bytes


def test_a_smaller_batch_is_measured_where_no_larger_one_is_like_it():
    plain = nn.Sequential(*[Mlp(64) for _ in range(4)])
    model = profiled(plain, step_on(torch.ones(16, 64)))
    for net in (plain, model):
        net.eval()
    step = step_on(torch.ones(8, 64))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert kinds(model)[2:] == ["measured"], "in another mode"
    for net in (plain, model):
        net.train()
    step = step_on(torch.ones(4, 2, 64))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert kinds(model)[3:] == ["measured"], "of another rank"


def test_steps_by_the_plan_for_a_larger_batch_are_not_taken_for_drift():
    model = profiled(nn.Sequential(*[Mlp(64) for _ in range(4)]), step_on(torch.ones(64, 64)))
    book = model.stowage._chain.last_book
    before = len(book.drift._times_ns)
    for rows in (1, 1, 2, 2):
        step_on(torch.ones(rows, 64))(model)
    assert len(book.drift._times_ns) == before and book.was_watched
    step_on(torch.ones(64, 64))(model)
    assert len(book.drift._times_ns) == before + 1


def modes_of_all(net):
    net.eval()


def mode_of_one_module(net):
    net[3].eval()


def larger_inputs(net):
    net.x = torch.linspace(-1, 1, 64 * 64).view(64, 64)


@pytest.mark.parametrize("change", [modes_of_all, mode_of_one_module, larger_inputs])
def test_what_takes_other_bytes_is_measured_anew(change):
    torch.manual_seed(0)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    plain.x = torch.randn(32, 64)
    model = copy.deepcopy(plain)

    def step(net):
        return step_on(net.x)(net)

    stowage.wrap(model, "least")
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    before = model.stowage.profile.to_dict()["chain"]["stages"][3]["saved_bytes"]
    for _ in range(2):  # and back
        change(plain)
        change(model)
        for number in range(3):
            assert_equal(outcome(model, step, number), outcome(plain, step, number))
        training = model.stowage
        assert training.measured_peak_bytes <= training.plan.peak_bytes
        assert sum(training.recomputed) == training.plan.recomputed_forwards
        assert training.profile.to_dict()["chain"]["stages"][3]["saved_bytes"] != before
        for net in (plain, model):
            net.train()
            net.x = net.x[:32]
        outcome(model, step)
        assert training.profile.to_dict()["chain"]["stages"][3]["saved_bytes"] == before
    assert len(model.stowage._chain.books) == 2
