"""What one process measured, and the first step of the next one by it."""

import copy
import json
import os
import subprocess
import sys

import pytest
import stowage
import torch
from comparing import assert_equal, outcome, step_on
from networks import ConvNorm, Decoder, InnerBackward, Mlp
from stowage import _records
from torch import nn
from wrapping_test import decoder_step

torch.set_num_threads(1)


def mlps(count=6, width=64):
    torch.manual_seed(0)
    return nn.Sequential(*[Mlp(width) for _ in range(count)])


def measured(plain, step, budget, folder, **how):
    """A twin that has left a record. Returns it and the file."""
    model = stowage.wrap(copy.deepcopy(plain), budget, cache=folder, **how)
    for number in range(2):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert model.stowage.is_measured_here
    (file,) = folder.glob("*.json")
    return model, file


def changed(file, change):
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


@pytest.mark.parametrize("budget", ["60%", "least"])
@pytest.mark.parametrize("how", [{}, {"host_budget": "1GiB"}], ids=["recompute", "copies"])
def test_the_next_one_trains_by_the_plan_from_its_first_step_on(tmp_path, budget, how):
    plain, step = mlps(), step_on(torch.randn(32, 64))
    first, _ = measured(plain, step, budget, tmp_path, **how)
    model = stowage.wrap(copy.deepcopy(plain), budget, cache=str(tmp_path), **how)
    assert_equal(outcome(model, step), outcome(plain, step))
    training = model.stowage
    assert not training.is_measured_here and not training.notes
    assert training.profile.to_json() == first.stowage.profile.to_json() or how  # the link is measured anew
    assert training.measured_peak_bytes <= training.plan.peak_bytes <= training.plan.budget_bytes
    if not how:
        assert training.plan.digest == first.stowage.plan.digest
        assert sum(training.recomputed) == training.plan.recomputed_forwards > 0


@pytest.mark.parametrize("kind", ["decoder", "buffers", "kept"])
def test_all_that_blocks_are_is_kept(tmp_path, kind):
    torch.manual_seed(0)
    if kind == "decoder":
        plain, step, how = Decoder(), decoder_step, {"blocks": "layers"}
    elif kind == "buffers":
        plain, step, how = nn.Sequential(*[ConvNorm(4) for _ in range(4)]), step_on(torch.randn(2, 4, 6, 6)), {}
    else:
        plain, how = nn.Sequential(Mlp(16), InnerBackward(16), *[Mlp(16) for _ in range(4)]), {}
        step = step_on(torch.randn(4, 16))
    first, _ = measured(plain, step, "least", tmp_path, **how)
    model = stowage.wrap(copy.deepcopy(plain), "least", cache=tmp_path, **how)
    for number in range(2):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert not model.stowage.is_measured_here and not model.stowage.notes
    assert model.stowage.kept == first.stowage.kept
    assert model.stowage.recomputed == first.stowage.recomputed


def test_another_budget_takes_the_same_measurements(tmp_path):
    plain, step = mlps(), step_on(torch.randn(32, 64))
    measured(plain, step, "60%", tmp_path)
    for _ in range(2):
        model = stowage.wrap(copy.deepcopy(plain), "least", cache=tmp_path)
        assert_equal(outcome(model, step), outcome(plain, step))
        assert not model.stowage.is_measured_here and model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes
    (file,) = tmp_path.glob("*.json")
    assert len(json.loads(file.read_text())["plans"]) == 2


def less_saved(record):
    for stage in record["measured"]["stages"]:
        stage["saved_bytes"] = stage["output_bytes"]
    record["plans"].clear()
    record["peaks"].clear()


def no_overheads(record):
    for stage in record["measured"]["stages"]:
        stage.update({field: 0 for field in stage if field.endswith("_overhead_bytes")})
    record["plans"].clear()
    record["peaks"].clear()


@pytest.mark.parametrize("change", [less_saved, no_overheads])
def test_bytes_that_do_not_hold_are_measured_anew(tmp_path, change):
    plain, step = mlps(), step_on(torch.randn(32, 64))
    _, file = measured(plain, step, "60%", tmp_path)
    right = json.loads(file.read_text())
    changed(file, change)
    model = stowage.wrap(copy.deepcopy(plain), "60%", cache=tmp_path)
    with pytest.warns(UserWarning, match="does not hold.*measured anew"):
        assert_equal(outcome(model, step), outcome(plain, step))
    assert not file.exists()
    for number in range(2):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert model.stowage.is_measured_here and model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes
    again = json.loads(file.read_text())
    sizes = [[s["saved_bytes"] for s in record["measured"]["stages"]] for record in (right, again)]
    assert sizes[0] == sizes[1]


def test_buffers_that_a_record_does_not_know_are_restored_all_the_same(tmp_path):
    torch.manual_seed(0)
    plain, step = nn.Sequential(*[ConvNorm(4) for _ in range(4)]), step_on(torch.randn(2, 4, 6, 6))
    _, file = measured(plain, step, "least", tmp_path)
    changed(file, lambda record: record.update(state=[[]] * 4))
    model = stowage.wrap(copy.deepcopy(plain), "least", cache=tmp_path)
    with pytest.warns(UserWarning, match="changes other buffers"):
        assert_equal(outcome(model, step), outcome(plain, step))
    assert sum(model.stowage.recomputed) > 0
    for number in range(2):
        assert_equal(outcome(model, step, number), outcome(plain, step, number))
    assert model.stowage.is_measured_here


def test_a_record_by_which_nothing_fits_is_measured_anew(tmp_path):
    plain, step = mlps(), step_on(torch.randn(32, 64))
    first, file = measured(plain, step, "60%", tmp_path)

    def more(record):
        record["measured"]["bytes"][2] += 1 << 30

    changed(file, more)
    model = stowage.wrap(copy.deepcopy(plain), first.stowage.plan.budget_bytes, cache=tmp_path)
    with pytest.warns(UserWarning, match="nothing can be planned"):
        assert_equal(outcome(model, step), outcome(plain, step))
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.is_measured_here


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"measured": {"stages": []}, "state": []}', "\0"])
def test_files_that_are_no_records(tmp_path, text):
    plain, step = mlps(3), step_on(torch.randn(8, 64))
    _, file = measured(plain, step, "100%", tmp_path)
    file.write_text(text)
    model, _ = measured(plain, step, "100%", tmp_path)
    assert not model.stowage.notes


def test_plans_of_a_file_are_judged(tmp_path):
    plain, step = mlps(), step_on(torch.randn(32, 64))
    first, file = measured(plain, step, "60%", tmp_path)

    def all_kept(record):
        schedule = first.stowage.profile.plan("100%").to_dict()
        record["plans"] = {name: {**schedule, "budget_bytes": 1} for name in record["plans"]}

    changed(file, all_kept)
    model = stowage.wrap(copy.deepcopy(plain), "60%", cache=tmp_path)
    assert_equal(outcome(model, step), outcome(plain, step))
    assert model.stowage.plan.digest == first.stowage.plan.digest
    assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes


def key(model, *args, blocks=None, **kwargs):
    return _records.key_of(model, list(model) if blocks is None else blocks, args, kwargs, {"model": "cpu"}, "train")


def test_the_key_is_of_what_the_model_is():
    x = torch.ones(4, 64)
    expected = key(mlps(), x)
    with torch.no_grad():
        other = mlps()
        other[0].up.weight.mul_(2)
    assert key(other, x) == expected and len(expected) == 64
    frozen, dropping, evaluated, wider = mlps(), mlps(), mlps(), mlps(width=32)
    frozen[1].up.weight.requires_grad_(False)
    dropping[2].dropout = 0.5
    evaluated[3].eval()
    hooked = mlps()
    hooked[0].register_forward_hook(lambda *_: None)
    replaced = mlps()
    replaced[4].forward = lambda x: x
    keys = [key(m, x) for m in (frozen, dropping, evaluated, wider, hooked, replaced, mlps(5))]
    inputs = [torch.ones(5, 64), torch.ones(64, 4).t(), x.double(), x.clone().requires_grad_()]
    keys += [key(mlps(), other) for other in inputs] + [key(mlps(), x, scale=2)]
    assert len({expected, *keys}) == len(keys) + 1


def test_the_key_is_of_the_sources_too(tmp_path, monkeypatch):
    source = "import torch\nclass Block(torch.nn.Linear):\n    def forward(self, x):\n        return {}\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    keys = []
    for what in ("x * 2", "x + 2"):
        (tmp_path / "own_blocks.py").write_text(source.format(what))
        sys.modules.pop("own_blocks", None)
        keys.append(key(nn.Sequential(__import__("own_blocks").Block(4, 4)), torch.ones(2, 4)))
    assert keys[0] != keys[1]


PROGRAM = """
import torch
from records_test import key, mlps
model = torch.nn.Sequential(torch.nn.utils.spectral_norm(torch.nn.Linear(4, 4)), *mlps())
print(key(model, torch.ones(4, 4), names={"a", "b", "c"}))
"""


def test_the_key_is_the_same_in_every_process():
    said = {
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True, env=env).stdout
        for env in ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    }
    assert len(said) == 1


def test_the_environment_names_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STOWAGE_CACHE", str(tmp_path / "deep" / "in"))
    plain, step = mlps(3), step_on(torch.randn(8, 64))
    for expected in (True, False):
        model = stowage.wrap(copy.deepcopy(plain), "100%")
        outcome(model, step)
        outcome(model, step)
        assert model.stowage.is_measured_here is expected


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "in", 7):
        with pytest.raises(stowage.InvalidArgument, match="cache"):
            stowage.wrap(mlps(2), "60%", cache=folder)
