"""Models trained by plans: gradients bit for bit those of plain training, and memory within the plan."""

import contextlib
import copy
import gc
import inspect
import io
import pathlib
import pickle
import random
import types
import warnings

import pytest
import stowage
import torch
from comparing import assert_equal, autocast_step, outcome, profiled, step_on
from networks import MODELS, ConvNorm, Decoder, InnerBackward, Lstm, Mlp, Scale, Tanh, View, WritesInput
from schedules import follow, general, random_schedule, recomputes
from stowage import _device, _joint_version, _steps
from torch import nn

torch.set_num_threads(1)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(12))
def test_random_schedules_of_random_blocks(kind, seed):
    torch.manual_seed(seed)
    blocks, x = MODELS[kind](random.Random(seed), 5)
    plain = nn.Sequential(*blocks)
    step = step_on(x)
    model = profiled(plain, step)
    assert not model.stowage.kept
    saves_nothing = any(isinstance(block, (Scale, View, nn.Identity)) for block in blocks)
    for number in range(6):
        schedule = random_schedule(5, 100 * seed + number)
        plan = follow(model, schedule)
        assert_equal(outcome(model, step), outcome(plain, step))
        counts = list(zip(model.stowage.recomputed, recomputes(schedule, 5)))
        # What leads to no saved tensor at the end of a backward is not recomputed.
        assert all(done == planned or (saves_nothing and done < planned) for done, planned in counts)
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes
        assert model.stowage._chain.restarts == 0


@pytest.mark.parametrize("budget", ["100%", "80%", "60%", "least"])
def test_a_training_by_the_planner(budget):
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    model = stowage.wrap(copy.deepcopy(plain), budget)
    x = torch.randn(32, 64)
    optimizers = [torch.optim.Adam(m.parameters()) for m in (plain, model)]
    for number in range(4):
        assert_equal(outcome(model, step_on(x), number), outcome(plain, step_on(x), number))
        for optimizer in optimizers:
            optimizer.step()
    plan, training = model.stowage.plan, model.stowage
    assert training.measured_peak_bytes <= plan.peak_bytes <= plan.budget_bytes
    assert sum(training.recomputed) == plan.recomputed_forwards
    assert plan.recomputed_forwards == 0 if budget == "100%" else plan.recomputed_forwards > 0


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="PyTorch has no GradScaler of the CPU before 2.3")
@pytest.mark.parametrize("budget", ["60%", "least"])
def test_a_training_with_a_grad_scaler(budget):
    """Scaled losses, gradients that are unscaled and clipped, and steps that the scaler leaves out because one is infinite."""
    torch.manual_seed(1)
    plain = nn.Sequential(*[Mlp(64) for _ in range(6)])
    model = stowage.wrap(copy.deepcopy(plain), budget)
    x, left_out = torch.randn(32, 64), 0
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**10) for _ in range(2)]
    sides = [(m, torch.optim.SGD(m.parameters(), lr=0.1), scaler) for m, scaler in zip((plain, model), scalers)]
    for number in range(6):
        weighs = float("inf") if number in (2, 4) else 1.0
        for side, optimizer, scaler in sides:
            optimizer.zero_grad(set_to_none=True)
            torch.manual_seed(number)
            with torch.autocast("cpu", torch.bfloat16):
                loss = side(x).float().square().mean() * weighs
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(side.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        assert scalers[0].get_scale() == scalers[1].get_scale()
        left_out += weighs != 1.0
        for mine, theirs in zip(model.parameters(), plain.parameters()):
            assert torch.equal(mine, theirs) and torch.equal(mine.grad.nan_to_num(), theirs.grad.nan_to_num())
    assert scalers[1].get_scale() == 2.0 ** (10 - left_out) and sum(model.stowage.recomputed) > 0


class Logs(nn.Module):
    """Notes each of its forwards, and whether it is one that plain training does not have."""

    def __init__(self):
        super().__init__()
        self.mlp, self.forwards, self.fails_again = Mlp(16), [], False

    def forward(self, x):
        self.forwards.append(stowage.is_recomputing())
        if self.fails_again and self.forwards[-1]:
            raise ValueError("gone")
        return self.mlp(x)


def test_a_block_knows_whether_it_runs_again():
    torch.manual_seed(0)
    model = stowage.wrap(nn.Sequential(*[Logs() for _ in range(4)]), "least")
    step = step_on(torch.randn(8, 16))
    for _ in range(3):  # the first of which measures
        for block in model:
            block.forwards.clear()
        step(model)
        assert all(block.forwards.count(False) == 1 for block in model)
    assert sum(block.forwards.count(True) for block in model) == sum(model.stowage.recomputed) > 0
    assert not stowage.is_recomputing()
    # Where a recompute throws, too.
    model[0].fails_again = True
    with pytest.raises((RuntimeError, ValueError), match="gone"):
        step(model)
    assert not stowage.is_recomputing()


def test_the_first_step_is_plain_training_too():
    plain = nn.Sequential(ConvNorm(4), ConvNorm(4), ConvNorm(4))
    x = torch.randn(2, 4, 6, 6)
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for number in range(3):
        assert_equal(outcome(model, step_on(x), number), outcome(plain, step_on(x), number))


class Attention(nn.Module):
    """Of one sequence with itself."""

    def __init__(self, width):
        super().__init__()
        self.heads = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x):
        return x + self.heads(x, x, x, need_weights=False)[0]


OTHER_KERNELS = {
    "lstm": lambda: Lstm(32),
    "encoder": lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).eval(),
    "attention": lambda: Attention(32).eval(),
}


@pytest.mark.parametrize("kind", OTHER_KERNELS)
def test_blocks_that_take_other_kernels_without_gradients(kind):
    torch.manual_seed(4)
    plain = nn.Sequential(*[OTHER_KERNELS[kind]() for _ in range(4)])
    step = step_on(torch.randn(4, 16, 32))
    model = profiled(plain, step)
    for seed in range(1, 24, 2):
        follow(model, random_schedule(4, seed))
        assert_equal(outcome(model, step), outcome(plain, step))


class Factory(nn.Linear):
    """Makes a tensor wherever the caller has new ones go, and notes where that is."""

    def __init__(self, width):
        super().__init__(width, width)
        self.places = []

    def forward(self, x):
        self.places.append(torch.ones(1).device)
        return super().forward(x).tanh()


@pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="PyTorch before 2.0 has no default device")
@pytest.mark.parametrize("of_forward, of_backward", [("meta", None), ("meta", "meta"), ("meta", "cpu")])
def test_a_recompute_makes_tensors_where_its_forward_made_them(of_forward, of_backward):
    def within(place):
        return contextlib.nullcontext() if place is None else torch.device(place)

    torch.manual_seed(6)
    plain = nn.Sequential(*[Factory(8) for _ in range(4)])
    x = torch.randn(2, 8)

    def call(model):
        with within(of_forward):
            loss = model(x).square().mean()
        with within(of_backward):
            loss.backward()
            after = torch.ones(1).device
        assert after == torch.device(of_backward or "cpu")
        return [loss]

    model = profiled(plain, call, "least")
    for block in model:
        block.places.clear()
    assert_equal(outcome(model, call), outcome(plain, call))
    assert sum(model.stowage.recomputed) > 0
    for block, times in zip(model, model.stowage.recomputed):
        assert block.places == [torch.device(of_forward or "cpu")] * (1 + times)


@pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="PyTorch before 2.0 has no default device")
def test_what_is_looked_at_under_a_default_device_is_made_without_it():
    """Outside of a backward, which would leave it behind."""
    torch.manual_seed(6)
    model = profiled(nn.Sequential(*[Factory(8) for _ in range(4)]), step_on(torch.randn(2, 8)), "least")
    model.stowage._chain.last_book.steps = _steps.Steps(_steps.each_block(4), 4)
    made = []
    for block in model:
        block.places.clear()
        block.register_forward_hook(lambda _, __, out: made.append(out))
    model(torch.randn(2, 8))
    for out in list(made):
        with torch.device("meta"):
            looked_at = out.grad_fn._saved_result
            assert torch.ones(1).device.type == "meta"
        assert torch.equal(looked_at, out)
    for block in model:
        assert len(block.places) > 1 and {place.type for place in block.places} == {"cpu"}
    made[-1].sum().backward()


def decoder_step(model):
    words = torch.arange(12).view(2, 6) % 20
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    loss.backward()
    return [loss]


@pytest.mark.parametrize("blocks", [None, "layers", "list"])
def test_blocks_with_keywords_and_tuples(blocks):
    torch.manual_seed(0)
    plain = Decoder()
    twin = copy.deepcopy(plain)
    model = stowage.wrap(twin, "100%", list(twin.layers) if blocks == "list" else blocks)
    outcome(model, decoder_step)
    outcome(model, decoder_step)
    for seed in range(8):
        schedule = random_schedule(4, seed)
        plan = follow(model, schedule)
        assert_equal(outcome(model, decoder_step), outcome(plain, decoder_step))
        assert model.stowage.recomputed == recomputes(schedule, 4)
        assert model.stowage.measured_peak_bytes <= plan.peak_bytes
    assert not model.stowage.notes


class Settings(dict):
    """Has every attribute, as settings of many libraries: None where there is no such key."""

    __getattr__ = dict.get


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([ScaledMlp(16) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, settings=Settings(scale=0.5))
        return x


class ScaledMlp(Mlp):
    def forward(self, x, settings):
        return super().forward(x) * settings.scale


def test_settings_that_blocks_are_given_are_no_tensors():
    torch.manual_seed(0)
    plain, step = Scaled(), step_on(torch.randn(4, 16))
    model = profiled(plain, step, "least")
    assert not model.stowage.kept and sum(model.stowage.recomputed) > 0
    assert_equal(outcome(model, step), outcome(plain, step))


def test_autocast():
    plain = nn.Sequential(*[Mlp(16) for _ in range(4)])
    step = autocast_step(plain, torch.randn(4, 16))
    model = profiled(plain, step)
    for seed in range(6):
        follow(model, random_schedule(4, seed))
        assert_equal(outcome(model, step), outcome(plain, step))


# What must be kept, what is refused, what fails.


@pytest.mark.parametrize("block", [WritesInput, InnerBackward])
def test_blocks_that_must_be_kept_are_found(block):
    torch.manual_seed(2)
    plain = nn.Sequential(Mlp(8), Mlp(8), block(8), Mlp(8), Mlp(8))
    step = step_on(torch.randn(3, 8))
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert list(model.stowage.kept) == [3]
    assert model.stowage.recomputed[2] == 0 and sum(model.stowage.recomputed) > 0


class Bomb(nn.Module):
    calls, at = 0, None

    def __init__(self):
        super().__init__()
        self.mlp = Mlp(8)

    def forward(self, x):
        Bomb.calls += 1
        if Bomb.calls == Bomb.at:
            raise ValueError(f"bomb {Bomb.at}")
        return self.mlp(x)


def test_an_exception_in_a_block_is_itself_and_the_next_step_is_right():
    torch.manual_seed(3)
    plain = nn.Sequential(*[Bomb() for _ in range(4)])
    x = torch.randn(2, 8)
    model = profiled(plain, step_on(x))
    for seed in range(6):
        schedule = general(4, random.Random(seed))
        follow(model, schedule)
        Bomb.calls, Bomb.at = 0, None
        outcome(model, step_on(x))
        for at in range(1, Bomb.calls + 1):
            Bomb.calls, Bomb.at = 0, at
            y = None
            # PyTorch 1.13 makes a RuntimeError of what a backward raises; the text is that of the exception.
            with pytest.raises((ValueError, RuntimeError), match=f"bomb {at}") as raised:
                y = model(x.clone().requires_grad_())
                before = torch.get_rng_state()
                y.sum().backward()
            assert isinstance(model.stowage.last_failure, ValueError)
            if torch.__version__ >= "2":
                assert raised.type is ValueError and pathlib.Path(raised.traceback[-1].path).name == pathlib.Path(__file__).name
            assert y is None or torch.equal(before, torch.get_rng_state())
            assert not [run for run in model.stowage._chain.runs if run.activations]
            if y is not None:
                with pytest.raises(RuntimeError, match="failed before|second time"):
                    y.sum().backward()
            Bomb.at = y = raised = None
            assert not len(model.stowage._chain.runs)
        assert_equal(outcome(model, step_on(x)), outcome(plain, step_on(x)))


def planned_once(schedule_seed=0, length=3):
    model = profiled(nn.Sequential(*[Mlp(8) for _ in range(length)]), step_on(torch.ones(2, 8)))
    follow(model, _steps.each_block(length))
    return model


def test_parameters_written_between_forward_and_backward():
    model = planned_once()
    y = model(torch.ones(2, 8))
    with torch.no_grad():
        model[1].up.weight.mul_(2)
    with pytest.raises(RuntimeError, match="block 2: a parameter was written over"):
        y.sum().backward()


def test_another_mode_between_forward_and_backward():
    model = planned_once()
    y = model(torch.ones(2, 8))
    model.eval()
    with pytest.raises(RuntimeError, match="block 3: train"):
        y.sum().backward()


def test_parameters_and_buffers_put_in_between_forward_and_backward():
    model = planned_once()
    y = model(torch.ones(2, 8))
    replaced_parameters(model)
    with pytest.raises(RuntimeError, match="block 3 .*has other parameters now than in its forward"):
        y.sum().backward()
    torch.manual_seed(6)
    plain = nn.Sequential(*[WeightOnly(8) for _ in range(3)])
    model = profiled(plain, step_on(torch.ones(2, 8)))
    follow(model, _steps.each_block(3))
    y = model(torch.ones(2, 8))
    model[2].scale = model[2].scale * 2
    with pytest.raises(RuntimeError, match="block 3 .*has another buffer scale now"):
        y.sum().backward()
    model[2].scale = model[2].scale / 2
    assert_equal(outcome(model, step_on(torch.ones(2, 8))), outcome(plain, step_on(torch.ones(2, 8))))


class Adapter(nn.Module):
    """Beside a layer that is frozen, as LoRA."""

    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(nn.functional.dropout(self.down(x), 0.1, self.training))


def replaced_parameters(net):
    torch.manual_seed(11)
    for block in net:
        block.up.weight = nn.Parameter(torch.randn_like(block.up.weight))


def assigned_state(net):
    torch.manual_seed(11)
    net.load_state_dict({name: torch.randn_like(value) for name, value in net.state_dict().items()}, assign=True)


def adapters_put_in(net):
    torch.manual_seed(11)
    for block in net:
        block.up = Adapter(block.up)


def frozen_for_good(net):
    for block in list(net)[:2]:
        block.requires_grad_(False)


@pytest.mark.parametrize("change", [replaced_parameters, assigned_state, adapters_put_in, frozen_for_good])
def test_models_that_change_after_they_were_wrapped(change):
    if change is assigned_state and "assign" not in inspect.signature(nn.Module.load_state_dict).parameters:
        pytest.skip("this PyTorch's load_state_dict has no assign")
    torch.manual_seed(8)
    plain = nn.Sequential(*[Mlp(8) for _ in range(5)])
    step = step_on(torch.randn(256, 8))
    model = profiled(plain, step, "60%")
    before = model.stowage.profile.to_json()
    change(plain)
    change(model)
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert change in (replaced_parameters, assigned_state) or model.stowage.profile.to_json() != before
    assert sum(model.stowage.recomputed) == model.stowage.plan.recomputed_forwards > 0
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes
    y = model(torch.ones(2, 8))
    with torch.no_grad():
        next(iter(model[4].parameters())).mul_(2)
    with pytest.raises(RuntimeError, match="block 5: a parameter was written over"):
        y.sum().backward()


class WeightOnly(nn.Module):
    """Eight bits for each weight, and an adapter that trains."""

    def __init__(self, width):
        super().__init__()
        weight = torch.randn(width, width)
        self.register_buffer("scale", weight.abs().amax(1, keepdim=True) / 127)
        self.register_buffer("weight", (weight / self.scale).round().to(torch.int8))
        self.adapter = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(nn.functional.linear(x, self.weight * self.scale) + self.adapter(x))


def quantised(kind, width=8):
    torch.manual_seed(9)
    if kind == "weight only":
        return WeightOnly(width)
    if kind == "dynamic":
        layer = nn.Sequential(nn.Linear(width, width))
        return torch.ao.quantization.quantize_dynamic(layer, {nn.Linear}, torch.qint8)
    block = nn.Sequential(nn.Linear(width, width), nn.ReLU())
    block.qconfig = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
    return torch.ao.quantization.prepare_qat(block.train())


def inputless_step(model):
    loss = model(torch.ones(4, 8)).square().mean()
    loss.backward()
    return [loss]


@pytest.mark.parametrize("kind", ["weight only", "fake", "dynamic"])
@pytest.mark.filterwarnings("ignore")
def test_quantised_blocks(kind):
    if kind != "weight only" and not hasattr(torch.ao.quantization, "prepare_qat"):
        pytest.skip("this PyTorch has no torch.ao.quantization")
    # No gradient passes a dynamic one.
    blocks = [Mlp(8) if kind == "dynamic" and number not in (0, 2) else quantised(kind) for number in range(6)]
    plain = nn.Sequential(*blocks)
    step = step_on(torch.randn(4, 8)) if kind != "dynamic" else inputless_step
    model = stowage.wrap(copy.deepcopy(plain), "least")
    for number in range(4):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    planned = model.stowage.plan.recomputed_forwards
    # What is before the last dynamic one is no part of the backward.
    assert 0 < sum(model.stowage.recomputed) <= planned if kind == "dynamic" else sum(model.stowage.recomputed) == planned > 0
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


class Fickle(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        Fickle.calls += 1
        return torch.tanh(self.linear(x)) if Fickle.calls <= 40 else self.linear(x)


def test_a_recompute_that_saves_other_tensors():
    Fickle.calls = 0
    model = profiled(nn.Sequential(*[Fickle() for _ in range(2)]), step_on(torch.ones(2, 8)))
    follow(model, _steps.each_block(2))
    Fickle.calls = 38
    with pytest.raises(RuntimeError, match="a recompute saves"):
        model(torch.ones(2, 8).requires_grad_()).sum().backward()


def test_infeasible_budgets_say_what_is_needed():
    model = stowage.wrap(nn.Sequential(*[Mlp(64) for _ in range(4)]), 100)
    x = torch.ones(16, 64)
    model(x).sum().backward()
    with pytest.raises(stowage.Infeasible) as raised:
        model(x)
    assert raised.value.proven and raised.value.least_bytes > 100
    again = stowage.wrap(stowage.unwrap(model), raised.value.least_bytes + 4096)
    for _ in range(2):
        again(x).sum().backward()
    assert again.stowage.measured_peak_bytes <= again.stowage.plan.budget_bytes


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ("nothing", "no list of modules"),
        ("0", "no list of modules"),
        ([], "one module or more"),
        ([3], "one module or more"),
        ([nn.Linear(2, 2)], "no part of the model"),
    ],
)
def test_blocks_that_are_none(blocks, words):
    with pytest.raises(stowage.InvalidArgument, match=words):
        stowage.wrap(nn.Sequential(nn.Linear(2, 2)), "60%", blocks)


def test_what_cannot_be_wrapped():
    outer = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2))
    with pytest.raises(stowage.InvalidArgument, match="contains another block"):
        stowage.wrap(outer, "60%", [outer[0], outer[0][0]])
    with pytest.raises(stowage.InvalidArgument, match="no list of equal blocks"):
        stowage.wrap(nn.Linear(2, 2), "60%")
    with pytest.raises(stowage.InvalidArgument, match="budget"):
        stowage.wrap(outer, "lots")
    with pytest.raises(stowage.InvalidArgument, match="TorchScript"):
        scripted = nn.Sequential(torch.jit.script(nn.Linear(2, 2)), nn.Linear(2, 2))
        stowage.wrap(scripted, "60%")
    stowage.wrap(outer, "60%")
    with pytest.raises(stowage.FailedPrecondition, match="wrapped already"):
        stowage.wrap(outer, "60%")
    with pytest.raises(stowage.NotFound):
        stowage.unwrap(outer[0])


# What stays as it is.


def test_a_wrapped_model_is_the_same_model():
    plain = Decoder()
    model = stowage.wrap(copy.deepcopy(plain), "80%")
    assert type(model) is Decoder
    assert [n for n, _ in model.named_modules()] == [n for n, _ in plain.named_modules()]
    assert list(model.state_dict()) == list(plain.state_dict())
    assert inspect.signature(model.layers[0].forward) == inspect.signature(plain.layers[0].forward)
    outcome(model, decoder_step)
    outcome(model, decoder_step)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    load = (
        {"weights_only": False}
        if "weights_only" in inspect.signature(torch.load).parameters and torch.__version__ >= "2"
        else {}
    )
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(buffer, **load),
        copy.deepcopy(copy.deepcopy(model)),
    ):
        assert other.stowage is None
        assert other.layers[0].forward.__self__ is other.layers[0]
        assert_equal(outcome(other, decoder_step), outcome(plain, decoder_step))
    assert model.stowage.plan is not None
    stowage.unwrap(model)
    assert "stowage" not in model.__dict__ and "forward" not in model.layers[0].__dict__
    assert_equal(outcome(model, decoder_step), outcome(plain, decoder_step))


def test_forwards_of_blocks_own_are_kept():
    model = nn.Sequential(Mlp(8), Mlp(8))
    own = model[0].forward
    model[0].forward = lambda x: own(x) * 2
    expected = model[0].forward
    stowage.wrap(model, "least")
    step = step_on(torch.ones(2, 8))
    for _ in range(2):
        outcome(model, step)
    stowage.unwrap(model)
    assert model[0].forward is expected


def test_hooks_of_modules_run_as_in_plain_training():
    plain = nn.Sequential(*[Mlp(8) for _ in range(3)])
    model = profiled(plain, step_on(torch.ones(2, 8)), "least")

    def counts(net):
        seen = []
        hooks = [block.register_forward_hook(lambda *_: seen.append("f")) for block in net]
        hooks += [block.register_full_backward_hook(lambda *_: seen.append("b")) for block in net]
        result = outcome(net, step_on(torch.ones(2, 8)))
        for hook in hooks:
            hook.remove()
        return seen, result

    (mine, got), (theirs, expected) = counts(model), counts(plain)
    assert mine == theirs
    assert_equal(got, expected)


def test_evaluation_is_plain():
    plain = nn.Sequential(*[Mlp(8) for _ in range(3)])
    model = profiled(plain, step_on(torch.ones(2, 8)), "least")
    for net in (plain, model):
        net.eval()
    with torch.no_grad():
        assert torch.equal(model(torch.ones(5, 8)), plain(torch.ones(5, 8)))
    assert len(model.stowage._chain.books) == 1


def test_blocks_out_of_order_are_left_alone_and_said_once():
    plain = nn.Sequential(*[Mlp(8) for _ in range(3)])
    model = profiled(plain, step_on(torch.ones(2, 8)), "least")

    def backwards(net):
        y = torch.ones(2, 8)
        for block in reversed(net):
            y = block(y)
        y.sum().backward()
        return [y]

    with pytest.warns(UserWarning, match="out of order"):
        got = outcome(model, backwards)
    assert_equal(got, outcome(plain, backwards))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome(model, backwards)
    assert_equal(outcome(model, step_on(torch.ones(2, 8))), outcome(plain, step_on(torch.ones(2, 8))))


class CallsAnother(nn.Module):
    """Has another block in a tuple, so that it is no submodule, and calls it within its own forward."""

    def __init__(self, width):
        super().__init__()
        self.mlp, self.others = Mlp(width), ()

    def forward(self, x):
        for other in self.others:
            x = other(x)
        return self.mlp(x)


@pytest.mark.parametrize(("calling", "called"), [(1, 3), (3, 1), (0, 4), (1, 0), (4, 0)])
def test_a_block_that_calls_another_one_is_refused(calling, called):
    """What it saves would be that of two blocks, and the gradients wrong: (1, 0) and (4, 0) had those before."""
    torch.manual_seed(4)
    plain = nn.Sequential(*[CallsAnother(16) for _ in range(5)])
    plain[calling].others = (plain[called],)
    model = copy.deepcopy(plain)
    assert model[calling].others[0] is model[called]
    stowage.wrap(model, "70%")
    step = step_on(torch.randn(256, 16))
    for number in range(2):
        with pytest.raises(stowage.FailedPrecondition, match="a block calls CallsAnother, which is another block"):
            outcome(model, step, number)
    model[calling].others = ()  # as the model is now, it is planned
    plain[calling].others = ()
    for number in range(3):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert sum(model.stowage.recomputed) == model.stowage.plan.recomputed_forwards > 0
    model[calling].others = (model[called],)  # in a planned step, where nothing is measured any more
    with pytest.raises(stowage.FailedPrecondition, match="a block calls CallsAnother, which is another block"):
        outcome(model, step)


def test_a_forward_that_ends_early():
    plain = nn.Sequential(*[Mlp(8) for _ in range(4)])
    model = profiled(plain, step_on(torch.ones(2, 8)))

    def half(net):
        y = net[1](net[0](torch.ones(2, 8).requires_grad_()))
        y.square().sum().backward()
        return [y]

    for seed in range(8):
        follow(model, random_schedule(4, seed))
        assert_equal(outcome(model, half), outcome(plain, half))


def test_nothing_is_left_behind():
    from stowage import _torch

    torch.manual_seed(0)
    model = profiled(nn.Sequential(*[Mlp(16) for _ in range(4)]), step_on(torch.ones(4, 16)), "least")
    step = step_on(torch.ones(4, 16))
    gc.collect()
    gc.disable()
    try:
        held = []
        for _ in range(20):
            outcome(model, step)
            held.append(_torch.current_bytes())
        assert len(set(held[2:])) == 1
        assert not len(model.stowage._chain.runs)
        y = model(torch.ones(4, 16))
        assert len(model.stowage._chain.runs) == 1
        del y
        assert not len(model.stowage._chain.runs)
    finally:
        gc.enable()


def test_what_training_tells():
    model = stowage.wrap(nn.Sequential(*[Mlp(32) for _ in range(6)]), "80%")
    assert model.stowage.plan is None and model.stowage.budget == "80%"
    with pytest.raises(stowage.FailedPrecondition, match="no plan yet"):
        model.stowage.explain()
    for _ in range(2):
        outcome(model, step_on(torch.ones(8, 32)))
    assert "block 1" in model.stowage.explain() and "head and loss" in model.stowage.explain()
    assert model.stowage.report().lstrip().startswith("<!")
    assert model.stowage.predicted_peak_bytes >= model.stowage.measured_peak_bytes
    assert "80%" in repr(model.stowage)


def test_what_the_page_shows(capsys):
    page = pathlib.Path(__file__).parents[3] / "client/python/README.md"
    blocks = [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]
    training, compiling, planning, _ = blocks  # rpc_test has the last one
    for block in [training.replace("512", "64"), planning] + [compiling] * _joint_version.is_here():
        exec(block, {})
    assert "plan: found" in capsys.readouterr().out


def test_a_block_that_saves_its_output_alone():
    plain = nn.Sequential(*[Tanh() for _ in range(4)])
    step = step_on(torch.randn(3, 8))
    model = profiled(plain, step)
    for seed in range(12):
        follow(model, random_schedule(4, seed))
        assert_equal(outcome(model, step), outcome(plain, step))


@pytest.mark.parametrize(
    ("part", "words"),
    [(None, "--no-build-isolation"), (types.SimpleNamespace(BUILT_WITH="1.0.1"), "was built for PyTorch 1.0.1, this is")],
    ids=["none", "other"],
)
def test_a_package_for_another_pytorch_is_refused(monkeypatch, part, words):
    monkeypatch.setattr(_device, "_torch", part)
    model = nn.Sequential(*[Mlp(8) for _ in range(3)])
    with pytest.raises(stowage.FailedPrecondition, match=words):
        stowage.wrap(model, "60%")
    assert "stowage" not in model.__dict__ and not any("forward" in block.__dict__ for block in model)
